// Camera rays around the object, and which of their hits get light computed: the algorithm of image.rs. A ray has
// `layers` slots for the surfaces it crosses; `own` tells of every slot what it is.

#define SQRT_HALF 0.707106781f
#define FOCAL 1.388889f
#define MIN_WEIGHT 0.1f
#define LIKENESS_STEPS 16.0f
#define MIRROR 0.01f
#define MIN_ALPHA 1e-3f
/// Share of a ray that is not followed any farther.
#define LEAST 0.005f
/// Values of `own`: nothing there; light interpolated on the lattice; else the number of an extra point of the group of
/// cells, with OWNER where that point is this sample.
#define EMPTY 0xffffffffu
#define INTERPOLATED 0xfffffffeu
#define OWNER 0x80000000u

DEVICE float3 camera_position(const View& view) { return vec(0.0f, view.camera_ahead, view.camera_height); }

/// Direction through image-plane coordinates, not normalized; to the last bit that of the CPU.
DEVICE float3 camera_direction(const View& view, float u, float v) {
    float sine = view.camera_sine, cosine = view.camera_cosine;
    return vec(-u, -__fadd_rn(__fmul_rn(FOCAL, cosine), __fmul_rn(v, sine)),
               __fsub_rn(__fmul_rn(v, cosine), __fmul_rn(FOCAL, sine)));
}
/// Direction of camera ray (x, y) of a view, `scale` apart; the same.
DEVICE float3 ray_direction(const Batch* b, const View& view, int x, int y, float scale) {
    float size = (float)b->size, along = __fmul_rn((float)x + 0.5f, scale), down = __fmul_rn((float)y + 0.5f, scale);
    return camera_direction(view, __fsub_rn(__fadd_rn(__fdiv_rn((float)view.x0, size), along), 0.5f),
                            __fsub_rn(__fsub_rn(0.5f, __fdiv_rn((float)view.y0, size)), down));
}
/// Where a camera ray is at the distance `t`, object frame; the same.
DEVICE float3 ray_from(const View& view, float3 direction, float t) {
    float3 p = vec(__fmul_rn(t, direction.x), __fadd_rn(view.camera_ahead, __fmul_rn(t, direction.y)),
                   __fadd_rn(view.camera_height, __fmul_rn(t, direction.z)));
    return exact_turn_to_object(view, p) - vec(view.translation);
}

/// The normal in the plane of `face` and `n` whose reflection of `v` has the height `threshold` above the face: see bsdf.rs.
static __device__ __noinline__ float3 turned_normal(float3 face, float3 v, float3 n, float threshold) {
    float3 across = normalized(n - dot(n, face) * face, splat(0.0f));
    float x = dot(v, across), z = dot(v, face), square = x * x + z * z;
    float a = sqrtf(fmaxf(x * x * (square - threshold * threshold), 0.0f)), b = z * threshold + square;
    float factor = 0.5f / fmaxf(square, 1e-12f), first = factor * (b + a), second = factor * (b - a);
    bool is_first = first > 1e-5f && first <= 1.0f + 1e-5f, is_second = second > 1e-5f && second <= 1.0f + 1e-5f;
    if (!is_first && !is_second) return face;
    if (is_first && is_second) {
        float y1 = sqrtf(first), x1 = sqrtf(fmaxf(1.0f - first, 0.0f));
        float y2 = sqrtf(second), x2 = sqrtf(fmaxf(1.0f - second, 0.0f));
        float r1 = 2.0f * (x1 * x + y1 * z) * y1 - z, r2 = 2.0f * (x2 * x + y2 * z) * y2 - z;
        is_first = (r1 < r2) == (r1 >= 1e-5f && r2 >= 1e-5f);
    }
    float height = is_first ? first : second;
    return normalized(sqrtf(fmaxf(1.0f - height, 0.0f)) * across + sqrtf(fmaxf(height, 0.0f)) * face, face);
}

/// The normal as the map of normals turns it, seen from the side of `face`: see mesh.rs.
static __device__ __noinline__ float3 mapped_normal(const View& view, const Hit& hit, const SurfacePoint& point,
                                                    float3 direction) {
    const Shading& s = view.shading[hit.triangle];
    const Material& m = view.materials[point.material];
    float3 face = vec(s.face);
    float w = 1.0f - hit.u - hit.v;
    float3 n = normalized(w * vec(s.normals) + hit.u * vec(s.normals + 3) + hit.v * vec(s.normals + 6), face);
    if (dot(n, face) < 0.0f) n = -n;
    float ax = s.uvs[2] - s.uvs[0], ay = s.uvs[3] - s.uvs[1], bx = s.uvs[4] - s.uvs[0], by = s.uvs[5] - s.uvs[1];
    float turn = ax * by - ay * bx < 0.0f ? -1.0f : 1.0f;
    float3 across = turn * (by * vec(s.edge1) - ay * vec(s.edge2));
    float3 tangent = normalized(across - dot(across, n) * n, splat(0.0f));
    if (dot(tangent, tangent) == 0.0f) return point.normal;
    float4 value = map_lookup(view, m.normal_map, point.uv, map_level(m.normal_map, point.footprint));
    float x = value.x * (2.0f / 255.0f) - 1.0f, y = value.y * (2.0f / 255.0f) - 1.0f, z = value.z * (2.0f / 255.0f) - 1.0f;
    float3 mapped = normalized(x * tangent + y * (turn * cross(n, tangent)) + z * n, n);
    float3 normal = normalized(n + m.normal_strength * (mapped - n), n);
    if (dot(normal, face) <= 0.0f) return point.normal;
    normal = normal_to_world(view, normal);
    return dot(normal_to_world(view, face), direction) > 0.0f ? -normal : normal;
}

/// The surface at a hit of a camera ray whose neighbours pass at the distance `spacing`.
DEVICE SurfacePoint camera_point(const View& view, const Hit& hit, float3 direction, float spacing) {
    SurfacePoint point = surface_point(view, hit, direction);
    float3 v = normalized(-direction, point.face);
    const Material& material = view.materials[point.material];
    if (has_maps(material)) {
        float cosine = dot(v, point.face);
        point.footprint = uv_density(view.shading[hit.triangle]) * spacing * spacing / fmaxf(cosine, 0.05f);
        if (!view.is_rigid) point.footprint *= area_ratio(view, point.face);
        if (material.normal_map.width != 0) point.normal = mapped_normal(view, hit, point, direction);
    }
    float3 reflected = 2.0f * dot(point.normal, v) * point.normal - v;
    float threshold = fminf(0.9f * dot(v, point.face), 0.01f);
    if (!(dot(point.face, reflected) >= threshold)) point.normal = turned_normal(point.face, v, point.normal, threshold);
    return point;
}

/// Bytes of the map of specular, roughness and metallic at a point, as bits.
DEVICE float surface_bytes(const View& view, const Material& m, const SurfacePoint& point) {
    if (m.surface_map.width == 0) return 0.0f;
    float4 value = map_lookup(view, m.surface_map, point.uv, map_level(m.surface_map, point.footprint));
    u32 bytes = (u32)(value.x + 0.5f) | (u32)(value.y + 0.5f) << 8 | (u32)(value.z + 0.5f) << 16;
    return __uint_as_float(bytes);
}

/// A camera ray that goes on behind a surface: which, how many surfaces it has met and how many of them are samples, where
/// it starts, and what of it is left.
struct Following {
    u32 ray, met;
    float start, left;
};
__shared__ Following following_rays[BLOCK / WARP][2 * WARP];
/// Neighbouring tiles of rays whose warp traces those of them together that go on.
#define CLEAR_TILES 8

/// Rays that go on behind transparent surfaces queue until there is one for every lane.
TRACE_KERNEL_OF_BOTH(trace_camera) {
    int index = blockIdx.y;
    const View& view = b->views[index];
    // A warp's rays go through 8 x 4 neighbouring places.
    int tiles = (view.width + 7) / 8, end = view.is_empty ? 0 : tiles * ((view.height + 3) / 4);
    const int run = CLEAR ? CLEAR_TILES : 1;
    float scale = 1.0f / ((float)b->supersampling * (float)b->size);
    u32 rays = 0;
    Following* queue = following_rays[threadIdx.x / WARP];
    int queued = 0, lane = lane_index(), tile = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * run;
    while (tile < end || queued > 0) {
        bool is_first = !CLEAR || (tile < end && queued < WARP), active;
        int x, y;
        float left = 1.0f, start = 0.0f;
        u32 met = 0;
        if (is_first) {
            x = tile % tiles * 8 + lane % 8;
            y = tile / tiles * 4 + lane / 8;
            active = x < view.width && y < view.height;
            tile++;
            if (tile % run == 0) tile += (gridDim.x * blockDim.x / WARP - 1) * run;
        } else {
            active = lane < queued;
            Following following = queue[active ? lane : 0], later = queue[WARP + lane];
            x = following.ray & 0xffff;
            y = following.ray >> 16;
            start = following.start;
            left = following.left;
            met = following.met;
            queued = max(queued - WARP, 0);
            sync_warp();
            if (lane < queued) queue[lane] = later;
            sync_warp();
        }
        int used = (int)(met >> 16);
        bool is_inside = active;
        float3 direction = ray_direction(b, view, x, y, scale);
        float limit = direction.z < 0.0f ? (FLOOR_Z - view.camera_height) / direction.z : INFINITE;
        float3 along = exact_turn_to_object(view, direction);
        u64 place = (u64)(y * view.width + x), slot = view.sample_start + place * view.layers;
        rays += active ? 1 : 0;
        Hit hit = nearest_seen(view, ray_from(view, direction, start), along, limit - start, active, is_first);
        active = active && hit.triangle != MISS;
        float3 emitted = splat(0.0f);
        if (active) {
            float distance = start + hit.t;
            SurfacePoint point = camera_point(view, hit, direction, scale * distance);
            const Material& material = view.materials[point.material];
            float alpha = opacity(view, material, point.uv, point.footprint);
            // Of what is hardly left the surface takes all: nothing bright may shine through it.
            float behind = left * (1.0f - alpha);
            if (!(behind > LEAST)) behind = 0.0f;
            float weight = behind > 0.0f ? left * alpha : left;
            // Holes show nothing of their surface.
            if (alpha > 0.0f) {
                Sample sample;
                sample.position = extend(point.position, weight);
                sample.normal = extend(point.normal, __uint_as_float(point.material));
                sample.face = extend(point.face, __uint_as_float(point.behind));
                sample.albedo = extend(albedo(b, view, material, point.uv, point.footprint),
                                       surface_bytes(view, material, point));
                b->samples[slot + used] = sample;
                b->own[slot + used] = INTERPOLATED;
                used++;
                if (view.has_emission) emitted = weight * emission(b, view, material, point.uv, point.footprint);
            }
            left = behind;
            start = distance + 1e-4f;
        }
        if (is_inside && view.has_emission) {
            float4* radiance = b->radiance + view.sample_start + place;
            *radiance = extend(is_first ? emitted : xyz(*radiance) + emitted, 0.0f);
        }
        u32 layer = (met & 0xffff) + 1;
        bool goes_on = CLEAR && active && left > 0.0f && layer < (u32)view.layers;
        if (is_inside && !goes_on) {
            for (; used < view.layers; used++) b->own[slot + used] = EMPTY;
        }
        if (CLEAR) {
            u32 all = ballot(goes_on);
            if (goes_on) {
                Following following = {(u32)y << 16 | (u32)x, (u32)used << 16 | layer, start, left};
                queue[queued + __popc(all & ((1u << lane) - 1))] = following;
            }
            queued += __popc(all);
            sync_warp();
        }
    }
    count_rays(b, rays);
}

/// How far a sample looks for a point to share: see place.rs.
DEVICE int reach_of(const View& view, const Sample& sample) {
    float weight = sample.position.w;
    if (2.0f * weight >= SHARING) return 0;
    const Material& material = view.materials[__float_as_uint(sample.normal.w)];
    float specular = material.specular, roughness = material.roughness, metallic = material.metallic;
    if (material.surface_map.width != 0) {
        u32 bytes = __float_as_uint(sample.albedo.w);
        specular *= (float)(bytes & 255);
        roughness *= (float)(bytes >> 8 & 255) * (1.0f / 255.0f);
        metallic *= (float)(bytes >> 16 & 255);
    }
    bool has_lobe = specular > 0.0f || metallic > 0.0f;
    if (has_lobe && fmaxf(roughness * roughness, MIN_ALPHA) < MIRROR) return 0;
    return 4.0f * weight < SHARING ? 2 : 1;
}

/// How much of the light at `other`, which is as far away as a `reach` allows, a point may take for its own.
DEVICE float likeness(const Sample& point, const Sample& other, float tolerance, int reach) {
    float least = reach == 0 ? 0.9f : reach == 1 ? 0.8f : 0.6f;
    float rise = reach == 0 ? 1.0f / (1.0f - 0.9f) : reach == 1 ? 1.0f / (1.0f - 0.8f) : 1.0f / (1.0f - 0.6f);
    float cosine = dot(xyz(point.normal), xyz(other.normal));
    if (cosine <= least) return 0.0f;
    float offset = fabsf(dot(xyz(other.position) - xyz(point.position), xyz(point.face)));
    float flatness = 1.0f - quotient(offset, tolerance * (float)(1 << reach));
    float alike = flatness <= 0.0f ? 0.0f : (cosine - least) * rise * flatness;
    return reach == 0 ? alike : (float)(int)(LIKENESS_STEPS * alike + 0.5f) * (1.0f / LIKENESS_STEPS);
}

/// Slot of the camera ray whose hit is the lattice point of a cell; NONE where there is none.
DEVICE u64 lattice_slot(const Batch* b, const View& view, int cx, int cy) {
    int x = cx * b->shading_step + b->shading_step / 2, y = cy * b->shading_step + b->shading_step / 2;
    if (x >= view.width || y >= view.height) return ~0ull;
    u64 slot = view.sample_start + (u64)(y * view.width + x) * view.layers;
    return b->own[slot] == EMPTY ? ~0ull : slot;
}

/// The lattice points a sample may take its light from, and their weights; returns the sum of the weights.
DEVICE float lattice_weights(const Batch* b, const View& view, const Sample& sample, u64 own_slot, int x, int y,
                             int cells[4], float weights[4]) {
    int step = b->shading_step;
    float inverse = 1.0f / (float)step, tolerance = 0.012f * (float)step / (float)b->supersampling;
    int sx = x - step / 2 + step, sy = y - step / 2 + step;  // one cell to the right, so that division rounds down
    int cx = sx / step - 1, cy = sy / step - 1;
    float fx = (float)(sx % step) * inverse, fy = (float)(sy % step) * inverse, total = 0.0f;
    for (int k = 0; k < 4; k++) {
        int nx = cx + (k & 1), ny = cy + (k >> 1);
        float weight = (k & 1 ? fx : 1.0f - fx) * (k >> 1 ? fy : 1.0f - fy);
        cells[k] = -1;
        weights[k] = 0.0f;
        if (weight <= 0.0f || nx < 0 || ny < 0 || nx >= view.columns || ny >= view.rows) continue;
        u64 other = lattice_slot(b, view, nx, ny);
        if (other == ~0ull) continue;
        cells[k] = ny * view.columns + nx;
        weights[k] = other == own_slot ? weight : weight * likeness(sample, b->samples[other], tolerance, 0);
        total += weights[k];
    }
    return total;
}

/// Cells of the lattice, along each axis, whose samples share their extra points: see place.rs.
DEVICE int group_of(const View& view) { return view.layers > 1 ? GROUP : 1; }

/// Whether no lattice point resembles a sample.
DEVICE bool is_alone(const Batch* b, const View& view, const Sample& sample, u64 slot, int x, int y) {
    int cells[4];
    float weights[4];
    return lattice_weights(b, view, sample, slot, x, y, cells, weights) < MIN_WEIGHT;
}

/// What a warp keeps of the extra points of its group: position and cell in the group, normal.
struct Extra {
    float4 position, normal;
};
__shared__ Extra warp_extras[BLOCK / WARP][MOST_EXTRAS];

/// Samples of the extra points of a group of cells of a transparent object, until points are numbered: in memory for the
/// light, of which 64 such numbers belong to a camera ray.
DEVICE u32* extras_of(const Batch* b, const View& view, int group) {
    return (u32*)(b->shades + 2 * view.sample_start) + group * MOST_EXTRAS;
}

/// One warp a group of cells of a transparent object. The samples of its rays are looked at side by side, those that get
/// or share an extra point one after the other, in the order of 4 x 4 blocks of rays, compared with all points that are
/// there at once. Returns how many there are.
DEVICE int place_group(const Batch* b, const View& view, int group, int cx, int cy) {
    float tolerance = 0.012f * (float)b->shading_step / (float)b->supersampling;
    Extra* extras = warp_extras[threadIdx.x / WARP];
    u32* slots = extras_of(b, view, group);
    int step = b->shading_step, side = GROUP * step, blocks = side / 4, count = 0, lane = lane_index();
    for (int start = 0; start < side * side; start += WARP) {
        int i = start + lane, dx = i / 16 % blocks * 4 + i % 4, dy = i / 16 / blocks * 4 + i % 16 / 4;
        int x = cx * step + dx, y = cy * step + dy;
        bool is_ray = dy < side && x < view.width && y < view.height;
        u64 first = view.sample_start + (u64)(y * view.width + x) * view.layers;
        u32 alone = 0;
        for (int layer = 0; is_ray && layer < view.layers && b->own[first + layer] != EMPTY; layer++) {
            if (is_alone(b, view, b->samples[first + layer], first + layer, x, y)) alone |= 1u << layer;
        }
        u32 cell = (u32)(dx / step | dy / step << 2);
        for (u32 lanes = ballot(alone != 0); lanes != 0; lanes &= lanes - 1) {
            int from = __ffs(lanes) - 1;
            u32 here = __shfl_sync(FULL, cell, from);
            u64 ray = __shfl_sync(FULL, first, from);
            for (u32 left = __shfl_sync(FULL, alone, from); left != 0; left &= left - 1) {
                u64 slot = ray + __ffs(left) - 1;
                Sample sample = b->samples[slot];
                bool is_full = count == MOST_EXTRAS;
                int reach = reach_of(view, sample);
                // What has to be the same of the cells.
                u32 near = is_full || reach == 2 ? 0 : reach == 1 ? 10 : 15;
                // The best so far, and its likeness as bits, above 0.
                u32 best = 0, chosen = 0;
                for (int k = lane; k < count; k += WARP) {
                    Sample other;
                    other.position = extras[k].position;
                    other.normal = extras[k].normal;
                    if ((__float_as_uint(other.position.w) ^ here) & near) continue;
                    float alike = likeness(sample, other, tolerance, reach);
                    u32 bits = is_full || alike > MIN_WEIGHT ? __float_as_uint(alike) + 1 : 0;
                    if (bits != 0 && bits >= best) {
                        best = bits;
                        chosen = (u32)k;
                    }
                }
                // Of equals, the last.
                u32 most = __reduce_max_sync(FULL, best);
                chosen = __reduce_max_sync(FULL, best == most ? chosen : 0);
                if (most == 0) {
                    if (lane == 0) {
                        extras[count].position = extend(xyz(sample.position), __uint_as_float(here));
                        extras[count].normal = sample.normal;
                        slots[count] = (u32)(slot - view.sample_start);
                    }
                    count++;
                }
                if (lane == 0) b->own[slot] = most == 0 ? OWNER | (u32)(count - 1) : chosen;
                sync_warp();
            }
        }
    }
    return count;
}

/// Samples that no lattice point resembles get points of their own, shared within the cell, or farther the less they
/// count: see place.rs. One thread a cell, or one warp a group of cells.
KERNEL place_points(const Batch* b, int unused) {
    const View& view = b->views[blockIdx.y];
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (view.is_empty) return;
    u32* cell_extras = b->cell_extras + view.cell_start;
    if (group_of(view) != 1) {
        int across = (view.columns + GROUP - 1) / GROUP, groups = across * ((view.rows + GROUP - 1) / GROUP);
        for (int group = index / WARP; group < groups; group += gridDim.x * blockDim.x / WARP) {
            int cx = group % across * GROUP, cy = group / across * GROUP;
            int count = place_group(b, view, group, cx, cy);
            // The first cell of a group has them all.
            int x = cx + lane_index() % GROUP, y = cy + lane_index() / GROUP;
            bool is_cell = lane_index() < GROUP * GROUP && x < view.columns && y < view.rows;
            if (is_cell) cell_extras[y * view.columns + x] = lane_index() == 0 ? (u32)count : 0;
        }
        return;
    }
    if (index >= view.columns * view.rows) return;
    int step = b->shading_step, x0 = index % view.columns * step, y0 = index / view.columns * step;
    int x1 = min(x0 + step, view.width), y1 = min(y0 + step, view.height), count = 0;
    float tolerance = 0.012f * (float)step / (float)b->supersampling;
    u64 extras[STEP * STEP];
    for (int block = 0, wide = (x1 + 3) / 4 - x0 / 4; block < wide * ((y1 + 3) / 4 - y0 / 4); block++) {
        int bx = x0 / 4 + block % wide, by = y0 / 4 + block / wide;
        for (int y = max(4 * by, y0); y < min(4 * by + 4, y1); y++) {
            for (int x = max(4 * bx, x0); x < min(4 * bx + 4, x1); x++) {
                u64 slot = view.sample_start + (u64)(y * view.width + x);
                if (b->own[slot] == EMPTY) continue;
                Sample sample = b->samples[slot];
                if (!is_alone(b, view, sample, slot, x, y)) continue;
                float best = MIN_WEIGHT;
                int chosen = -1;
                for (int k = count - 1; k >= 0; k--) {
                    float alike = likeness(sample, b->samples[extras[k]], tolerance, 0);
                    if (alike > best) {
                        best = alike;
                        chosen = k;
                    }
                }
                b->own[slot] = chosen >= 0 ? (u32)chosen : OWNER | (u32)count;
                if (chosen < 0) extras[count++] = slot;
            }
        }
    }
    cell_extras[index] = (u32)count;
}

/// One block a view: numbers the points, neighbours together. A cell's points follow one another, its lattice point
/// first.
KERNEL number_points(const Batch* b, int unused) {
    int index = blockIdx.x, count = 0;
    const View& view = b->views[index];
    if (view.is_empty) return;
    int tiles = (view.columns + 7) / 8, step = b->shading_step;
    int total = tiles * ((view.rows + 3) / 4) * 32;
    for (int start = 0; start < total; start += blockDim.x) {
        int i = start + threadIdx.x;
        int cx = (i / 32 % tiles) * 8 + i % 8, cy = (i / 32 / tiles) * 4 + i % 32 / 8;
        bool is_inside = i < total && cx < view.columns && cy < view.rows;
        u64 cell = view.cell_start + (u64)(cy * view.columns + cx);
        u64 regular = is_inside ? lattice_slot(b, view, cx, cy) : ~0ull;
        u32 extras = is_inside ? b->cell_extras[cell] : 0;
        int added;
        int place = count + block_scan((regular != ~0ull ? 1 : 0) + (int)extras, added);
        count += added;
        if (is_inside) b->cell_point[cell] = (u32)place;
        u32* points = b->point_sample + view.sample_start + place;
        if (regular != ~0ull) *points++ = (u32)(regular - view.sample_start);
        if (group_of(view) != 1) {
            int group = cy / GROUP * ((view.columns + GROUP - 1) / GROUP) + cx / GROUP;
            for (u32 lanes = ballot(extras != 0); lanes != 0; lanes &= lanes - 1) {
                int from = __ffs(lanes) - 1, number = __shfl_sync(FULL, (int)extras, from);
                const u32* slots = extras_of(b, view, __shfl_sync(FULL, group, from));
                u32* to = (u32*)__shfl_sync(FULL, (u64)points, from);
                for (int k = lane_index(); k < number; k += WARP) to[k] = slots[k];
            }
            continue;
        }
        for (int y = cy * step; extras != 0 && y < min(cy * step + step, view.height); y++) {
            for (int x = cx * step; x < min(cx * step + step, view.width); x++) {
                u32 slot = (u32)(y * view.width + x), own = b->own[view.sample_start + slot];
                if (own != EMPTY && own != INTERPOLATED && own & OWNER) points[own & ~OWNER] = slot;
            }
        }
    }
    if (threadIdx.x == 0) b->derived[index].point_count = count;
}
