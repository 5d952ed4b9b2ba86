// Light at the chosen points, a warp's worth at a time: the algorithm of points.rs in three kernels. All lanes look in one
// direction (or at one lamp point) at a time.

#define NARROW_LOBE 0.2f
#define LAMP_LOBE (0.5f * LAMP_RADIUS / 4.0f)

struct Point {
    float3 position, normal, face, view, origin;
    float n_dot_v, roughness, reflectance, base, eta_squared, alpha, metallic;
    bool has_lobe;
    u32 behind;
};

DEVICE float schlick(float x) {
    float m = clamp(1.0f - x, 0.0f, 1.0f);
    return m * m * (m * m) * m;
}

/// What lobes reflect: x in white, y per unit albedo (metals).
DEVICE float2 fresnel(const Point& p, float l_dot_h) {
    float c = fabsf(l_dot_h), g = root(fmaxf(p.eta_squared - 1.0f + c * c, 0.0f));
    // Both polarisations over one denominator: divisions are dear.
    float a = g - c, b = g + c, q = b * c - 1.0f, r = a * c + 1.0f;
    float both = quotient(0.5f * a * a * (r * r + q * q), fmaxf(b * b * (r * r), 1e-12f));
    float rise = clamp(quotient(both - p.base, 1.0f - p.base), 0.0f, 1.0f);
    return make_float2(p.reflectance * (1.0f - rise) + rise, p.metallic * (1.0f - rise));
}

DEVICE float smith(float cosine, float alpha_squared) {
    float square = cosine * cosine;
    return quotient(2.0f * cosine, cosine + root(square + alpha_squared * fmaxf(1.0f - square, 0.0f)));
}

/// The surface of a sample; where it lies and how it is seen is not set.
DEVICE void load_surface(const View& view, const Sample& sample, Point& p) {
    const Material& material = view.materials[__float_as_uint(sample.normal.w)];
    float specular = material.specular;
    p.roughness = material.roughness;
    p.metallic = material.metallic;
    if (material.surface_map.width != 0) {
        u32 bytes = __float_as_uint(sample.albedo.w);
        specular *= (float)(bytes & 255) * (1.0f / 255.0f);
        p.roughness *= (float)(bytes >> 8 & 255) * (1.0f / 255.0f);
        p.metallic *= (float)(bytes >> 16 & 255) * (1.0f / 255.0f);
    }
    p.has_lobe = specular > 0.0f || p.metallic > 0.0f;
    p.reflectance = 0.08f * specular * (1.0f - p.metallic);
    p.base = clamp(0.08f * specular, 0.0f, 0.99f);
    float eta = quotient(2.0f, 1.0f - root(p.base)) - 1.0f;
    p.eta_squared = eta * eta;
    p.alpha = fmaxf(p.roughness * p.roughness, MIN_ALPHA);
}

DEVICE Point load_point(const Batch* b, const View& view, u32 slot) {
    const Sample& sample = b->samples[view.sample_start + slot];
    Point p;
    p.position = xyz(sample.position);
    p.normal = xyz(sample.normal);
    p.face = xyz(sample.face);
    p.behind = __float_as_uint(sample.face.w);
    p.view = normalized(camera_position(view) - p.position, vec(0.0f, 0.0f, 1.0f));
    p.origin = ray_start(view, p.position, p.face);
    p.n_dot_v = dot(p.normal, p.view);
    load_surface(view, sample, p);
    return p;
}

/// The diffuse terms of a direction; returns whether it can light the point.
DEVICE bool evaluate(const Point& p, float3 l, float& cosine, float& diffuse) {
    float n_dot_l = dot(p.normal, l), l_dot_v = dot(p.view, l);
    float fl = schlick(n_dot_l), fv = schlick(p.n_dot_v), retro = p.roughness * (1.0f + l_dot_v);
    float burley = (1.0f - 0.5f * fl) * (1.0f - 0.5f * fv) + retro * (fl + fv + fl * fv * (retro - 1.0f));
    cosine = fmaxf(n_dot_l, 0.0f);
    diffuse = INVERSE_PI * cosine * burley;
    return n_dot_l > 0.0f && dot(p.face, l) > 0.0f;
}

/// What does not change from direction to direction in a lobe of this alpha.
struct Lobe {
    float a2, view;
};
DEVICE Lobe lobe_of(const Point& p, float alpha) {
    float a2 = alpha * alpha;
    return {a2, p.n_dot_v > 0.0f ? 0.25f * quotient(smith(p.n_dot_v, a2), fmaxf(p.n_dot_v, 1e-6f)) : 0.0f};
}

/// The GGX lobe times `n.l`: in white, and per unit albedo. `spread` is its distribution times pi.
DEVICE float2 lobe(const Point& p, float3 l, const Lobe& of, float& spread) {
    float n_dot_l = dot(p.normal, l), l_dot_v = dot(p.view, l);
    spread = 0.0f;
    if (!(n_dot_l > 0.0f && p.n_dot_v > 0.0f && p.has_lobe)) return make_float2(0.0f, 0.0f);
    float scale = rsqrtf(fmaxf(2.0f + 2.0f * l_dot_v, 1e-6f));
    float n_dot_h = (n_dot_l + p.n_dot_v) * scale;
    float d = n_dot_h * n_dot_h * (of.a2 - 1.0f) + 1.0f;
    spread = quotient(of.a2, d * d);
    return INVERSE_PI * spread * smith(n_dot_l, of.a2) * of.view * fresnel(p, (1.0f + l_dot_v) * scale);
}

/// How likely Cycles is to continue a path along the lobe instead of the diffuse part: see bsdf.rs.
DEVICE float lobe_chance(const Batch* b, const View& view, u32 slot, const Point& p) {
    if (!p.has_lobe || p.n_dot_v <= 0.0f) return 0.0f;
    float4 albedo = b->samples[view.sample_start + slot].albedo;
    float mean = (albedo.x + albedo.y + albedo.z) * (1.0f / 3.0f);
    float2 seen = fresnel(p, p.n_dot_v);
    float lobe = seen.x + seen.y * mean;
    return quotient(lobe, fmaxf(lobe + mean * (1.0f - p.metallic), 1e-6f));
}

/// The world, and, in a narrow lobe, the sun, as the lobe reflects them (visible normals: Heitz, 2018).
DEVICE float2 gleam(const Batch* b, const Point& p, float sun_share) {
    bool narrow = p.alpha < NARROW_LOBE;
    float3 s, t, a, c;
    frame(p.normal, s, t);
    float3 view = normalized(vec(p.alpha * dot(p.view, s), p.alpha * dot(p.view, t), p.n_dot_v), vec(0, 0, 1));
    frame(view, a, c);
    float2 sum = make_float2(0.0f, 0.0f);
    for (int i = 0; i < b->lobe_count; i++) {
        float4 u = b->lobe[i];
        float x = u.x * u.y, blend = 0.5f * (1.0f + view.z);
        float y = (1.0f - blend) * root(fmaxf(1.0f - x * x, 0.0f)) + blend * u.x * u.z;
        float z = root(fmaxf(1.0f - x * x - y * y, 0.0f));
        float3 local = x * a + y * c + z * view;
        float3 half = normalized(vec(p.alpha * local.x, p.alpha * local.y, fmaxf(local.z, 0.0f)), vec(0, 0, 1));
        half = half.x * s + half.y * t + half.z * p.normal;
        float3 l = normalized(2.0f * dot(p.view, half) * half - p.view, p.normal);
        float n_dot_l = dot(p.normal, l);
        if (!(l.z > 0.0f && dot(l, p.face) > 0.0f && n_dot_l > 0.0f && p.n_dot_v > 0.0f)) continue;
        float sun = narrow && l.z > SQRT_HALF ? sun_share * SUN_STRENGTH / (PI * l.z * l.z * l.z) : 0.0f;
        float3 middle = normalized(l + p.view, p.normal);
        sum = sum + (WORLD_RADIANCE + sun) * smith(n_dot_l, p.alpha * p.alpha) * fresnel(p, dot(l, middle));
    }
    return 1.0f / (float)b->lobe_count * sum;
}

/// What a surface with a lobe narrower than LAMP_LOBE mirrors of the lamp, nothing in between: see points.rs, lights.rs.
static __device__ __noinline__ float3 lamp_mirrored(const Batch* b, const View& view, const Sample& sample) {
    Point p;
    p.position = xyz(sample.position);
    p.normal = xyz(sample.normal);
    p.view = normalized(camera_position(view) - p.position, vec(0.0f, 0.0f, 1.0f));
    p.n_dot_v = dot(p.normal, p.view);
    load_surface(view, sample, p);
    float3 l = 2.0f * p.n_dot_v * p.normal - p.view, to_lamp = vec(view.spot_position) - p.position;
    float square = dot(to_lamp, to_lamp), along = dot(to_lamp, l), n_dot_l = dot(p.normal, l);
    if (p.alpha >= LAMP_LOBE || along <= 0.0f || n_dot_l <= 0.0f || p.n_dot_v <= 0.0f) return splat(0.0f);
    float distance = root(square);
    float3 off = quotient(square, along) * l - to_lamp;
    float offset = root(dot(off, off)) * (1.0f / LAMP_RADIUS);
    float blur = fmaxf(2.0f * p.alpha * distance * (1.0f / LAMP_RADIUS), 0.1f);
    float half = quotient(0.5f * LAMP_RADIUS, distance);
    float share = quotient(half * half, half * half + p.alpha * p.alpha);
    float covered = clamp(quotient(1.0f + blur - offset, 2.0f * blur), 0.0f, 1.0f) * share;
    float lamp = spot_facing_irradiance(b, view, p.position) * covered * square * (1.0f / (PI * LAMP_RADIUS * LAMP_RADIUS));
    float3 middle = normalized(l + p.view, p.normal);
    float2 reflected = smith(n_dot_l, p.alpha * p.alpha) * fresnel(p, dot(l, middle));
    return lamp * (vec(view.spot_intensity) * (splat(reflected.x) + reflected.y * xyz(sample.albedo)));
}

/// Runs its last argument with `p`, `active` and `shade` for the points of a view, a warp's worth at a time; `group` lanes
/// share a point.
#define FOR_POINTS(group, ...)                                                                        \
    int index = blockIdx.y;                                                                           \
    const View& view = b->views[index];                                                               \
    int count = view.is_empty ? 0 : b->derived[index].point_count;                                    \
    u32 rays = 0;                                                                                     \
    for (int start = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * (WARP / group); start < count;  \
         start += gridDim.x * blockDim.x / group) {                                                   \
        int item = start + lane_index() / group;                                                      \
        bool active = item < count;                                                                   \
        u32 slot = b->point_sample[view.sample_start + min(item, count - 1)];                         \
        Point p = load_point(b, view, slot);                                                          \
        float4* shade = b->shades + 2 * (view.sample_start + item);                                   \
        __VA_ARGS__                                                                                   \
    }                                                                                                 \
    count_rays(b, rays);

/// The sun, and what the lobe reflects of it and of the world.
TRACE_KERNEL_OF_BOTH(shade_sun) {
    FOR_POINTS(1, {
        const Both* sun = sun_set(b, index);
        float total = 0.0f;
        float visible = 0.0f;
        float light = 0.0f;
        float2 shine = make_float2(0.0f, 0.0f);
        Lobe of = lobe_of(p, p.alpha);
        for (int i = 0; i < b->sun_count; i++) {
            float cosine;
            float diffuse;
            float spread;
            float3 l = xyz(sun[i].world);
            bool lit = evaluate(p, l, cosine, diffuse) && active;
            rays += lit ? 1 : 0;
            float open = transmitted<false, true, CLEAR>(view, p.origin, xyz(sun[i].object), INFINITE, lit, p.behind);
            total += cosine;
            visible += open * cosine;
            light += open * diffuse;
            if (open > 0.0f && p.has_lobe) shine = shine + open * lobe(p, l, of, spread);
        }
        if (active) {
            float share = total > 0.0f ? visible / total : 0.0f;
            float diffuse = total > 0.0f ? sun_irradiance(b, p.normal.z) * light / total : 0.0f;
            // A lobe narrower than the spacing of the directions would sparkle: `gleam` has it.
            float2 specular = p.alpha >= NARROW_LOBE ? SUN_STRENGTH / (float)b->sun_count * shine : make_float2(0.0f, 0.0f);
            if (p.has_lobe) specular = specular + gleam(b, p, share);
            shade[0] = extend(splat(diffuse * (1.0f - p.metallic) + specular.y), 0.0f);
            shade[1] = extend(splat(specular.x), 0.0f);
        }
    })
}

TRACE_KERNEL_OF_BOTH(shade_spot) {
    FOR_POINTS(SPOT_GROUP, {
        float irradiance = active ? spot_irradiance(b, view, p.position, p.normal) : 0.0f;
        active = irradiance > 0.0f;
        if (ballot(active) == 0) continue;
        const Both* lamp = lamp_set(b, index);
        // Where the beam ends, only a part of the lamp shines.
        bool is_inside = spot_is_inside(view, p.position);
        float total = 0.0f;
        float visible = 0.0f;
        float light = 0.0f;
        float lit_points = 0.0f;
        float2 shine = make_float2(0.0f, 0.0f);
        Lobe of = lobe_of(p, p.alpha);
        for (int first = 0; first < b->lamp_count; first += SPOT_GROUP) {
            float cosine;
            float diffuse;
            float spread;
            int i = first + lane_index() % SPOT_GROUP;
            bool counts = i < b->lamp_count;
            i = counts ? i : 0;
            float3 to_lamp = xyz(lamp[i].world) - p.position;
            float3 l = rsqrtf(fmaxf(dot(to_lamp, to_lamp), 1e-12f)) * to_lamp;
            bool lit = evaluate(p, l, cosine, diffuse) && active && counts;
            rays += lit ? 1 : 0;
            float3 origin = xyz(lamp[i].object);
            float open = transmitted<true, true, CLEAR>(view, origin, p.origin - origin, 1.0f, lit, p.behind);
            float weight = !counts ? 0.0f : is_inside ? 1.0f : spot_edge(view, p.position, xyz(lamp[i].world));
            open *= weight;
            total += weight * cosine;
            visible += open * cosine;
            light += open * diffuse;
            lit_points += weight;
            if (open > 0.0f && p.has_lobe) shine = shine + open * lobe(p, l, of, spread);
        }
        total = group_sum(total, SPOT_GROUP);
        light = group_sum(light, SPOT_GROUP);
        visible = group_sum(visible, SPOT_GROUP);
        lit_points = group_sum(lit_points, SPOT_GROUP);
        shine.x = group_sum(shine.x, SPOT_GROUP);
        shine.y = group_sum(shine.y, SPOT_GROUP);
        if (active && lane_index() % SPOT_GROUP == 0) {
            float3 intensity = vec(view.spot_intensity);
            float diffuse = total > 0.0f ? irradiance * light / total : 0.0f;
            float facing = spot_facing_irradiance(b, view, p.position) / fmaxf(lit_points, 1e-6f);
            // A lobe narrower than the lamp mirrors it sample by sample: see resolve.cu.
            bool is_mirror = p.alpha < LAMP_LOBE && total > 0.0f;
            float2 specular = is_mirror ? make_float2(0.0f, 0.0f) : facing * shine;
            float lamp_share = is_mirror ? visible / total : 0.0f;
            shade[0] = extend(xyz(shade[0]) + (diffuse * (1.0f - p.metallic) + specular.y) * intensity, 0.0f);
            shade[1] = extend(xyz(shade[1]) + specular.x * intensity, lamp_share);
        }
    })
}

/// A hit of a gathered ray whose light is still to be found: what of it counts per unit albedo, and in white.
struct Found {
    float t, u, v, weight, white;
    u32 triangle, ray;  // the ray: its direction's number, and the lane of its point
};

#define ENCLOSURE 0.7f

__shared__ Found found_hits[BLOCK / WARP][2 * WARP];
/// Sums of the lanes' points, here because registers are few: light of hits, of it what is indirect there, and light in white.
__shared__ float gathered[BLOCK / WARP][9][WARP];

DEVICE void gather(int first, int lane, float3 value) {
    float(*sums)[WARP] = gathered[threadIdx.x / WARP];
    sums[first][lane] += value.x;
    sums[first + 1][lane] += value.y;
    sums[first + 2][lane] += value.z;
}
DEVICE float3 gathered_sum(int first) {
    float(*sums)[WARP] = gathered[threadIdx.x / WARP];
    int lane = lane_index();
    return vec(sums[first][lane], sums[first + 1][lane], sums[first + 2][lane]);
}
DEVICE float3 of_lane(float3 value, int lane) {
    return vec(__shfl_sync(FULL, value.x, lane), __shfl_sync(FULL, value.y, lane), __shfl_sync(FULL, value.z, lane));
}

/// The light of the first hits of the warp's queue, one a lane, added to the points they belong to.
template <bool CLEAR>
DEVICE void add_found(const Batch* b, const View& view, int index, const float4* floor, int count, u32& rays) {
    int warp = threadIdx.x / WARP, lane = lane_index();
    bool is_hit = lane < count;
    Found found = found_hits[warp][is_hit ? lane : 0];
    Hit hit = {found.t, found.u, found.v, found.triangle};
    int turn = (int)(found.ray >> 8);
    float3 indirect;
    float3 radiance = object_radiance<CLEAR>(b, view, index, floor, hit, is_hit, xyz(sphere_set(b, index)[turn].world), turn,
                                             rays, indirect);
    // Read again: nothing of it is kept over the walks.
    found = found_hits[warp][is_hit ? lane : 0];
    float3 white = found.white * (radiance + indirect);
    radiance = found.weight * radiance;
    indirect = found.weight * indirect;
    // The first of the hits of a point adds all of them, in the order of the queue.
    int owner = is_hit ? (int)(found.ray & 0xff) : WARP + lane;
    u32 left = __match_any_sync(FULL, owner);
    if (!is_hit || (left & ((1u << lane) - 1)) != 0) left = 0;
    while (ballot(left != 0) != 0) {
        int from = left != 0 ? __ffs(left) - 1 : lane;
        float3 a = of_lane(radiance, from), c = of_lane(indirect, from), d = of_lane(white, from);
        if (left != 0) {
            gather(0, owner, a);
            gather(3, owner, c);
            gather(6, owner, d);
        }
        left &= left - 1;
    }
    sync_warp();
}

/// What the world, the floor and the object itself send from every direction. Few rays meet the object: their hits queue
/// until there is one for every lane.
TRACE_KERNEL_OF_BOTH(shade_indirect) {
    FOR_POINTS(1, {
        const Both* sphere = sphere_set(b, index);
        const float4* floor = b->coarse_floor + (u64)index * (COARSE_CELLS + 1) * (COARSE_CELLS + 1);
        Found* queue = found_hits[threadIdx.x / WARP];
        Lobe of = lobe_of(p, p.alpha);
        float chance = lobe_chance(b, view, slot, p);
        for (int k = 0; k < 9; k++) gathered[threadIdx.x / WARP][k][lane_index()] = 0.0f;
        int queued = 0;
        float total = 0.0f;
        float enclosed = 0.0f;
        float3 light = splat(0.0f);
        for (int i = 0; i <= b->sphere_count; i++) {
            bool is_end = i == b->sphere_count;
            if (!is_end) {
                float cosine;
                float diffuse;
                float3 l = xyz(sphere[i].world);
                bool lit = evaluate(p, l, cosine, diffuse) && active;
                total += cosine;
                if (ballot(lit) == 0) continue;
                rays += lit ? 1 : 0;
                float limit = l.z < 0.0f && p.position.z > FLOOR_Z ? quotient(FLOOR_Z - p.position.z, l.z) : INFINITE;
                Hit hit = nearest<true>(view, p.origin, xyz(sphere[i].object), limit, lit, p.behind);
                bool is_hit = hit.triangle != MISS;
                float weight = (1.0f - p.metallic) * diffuse;
                float white = 0.0f;
                // Light of the world counts wholly, and the lobe's part of it is in `gleam`.
                if (p.has_lobe && (is_hit || (lit && l.z < 0.0f))) {
                    // The share of the light from a surface that Cycles counts without glossy bounces.
                    float spread;
                    float2 reflected = lobe(p, l, of, spread);
                    float even = (1.0f - chance) * cosine;
                    float share = quotient(even, fmaxf(even + chance * of.view * spread, 1e-12f));
                    reflected = share * reflected;
                    weight = share * weight + reflected.y;
                    white = reflected.x;
                }
                if (lit && !is_hit) {
                    float3 incoming = splat(WORLD_RADIANCE);
                    if (l.z < 0.0f) {
                        incoming = coarse_radiance(view, floor, p.position.x + limit * l.x, p.position.y + limit * l.y);
                    }
                    light = light + weight * incoming;
                    if (white > 0.0f) gather(6, lane_index(), white * incoming);
                }
                u32 hits = ballot(is_hit);
                if (is_hit) {
                    enclosed += cosine;
                    Found found = {hit.t, hit.u, hit.v, weight, white, hit.triangle, (u32)i << 8 | (u32)lane_index()};
                    queue[queued + __popc(hits & ((1u << lane_index()) - 1))] = found;
                }
                queued += __popc(hits);
                sync_warp();
            }
            if (queued >= WARP || (is_end && queued > 0)) {
                int taken = min(queued, WARP);
                add_found<CLEAR>(b, view, index, floor, taken, rays);
                queued -= taken;
                if (lane_index() < queued) queue[lane_index()] = queue[WARP + lane_index()];
                sync_warp();
            }
        }
        if (active && total > 0.0f) {
            // Where a point sees much of the object, what it sees does too, and so gets less light from around.
            float open = fmaxf(1.0f - ENCLOSURE * enclosed / total, 0.0f);
            float4 old = shade[1];
            shade[0] = extend(xyz(shade[0]) + (PI / total) * (light + gathered_sum(0) + open * gathered_sum(3)), 0.0f);
            shade[1] = extend(xyz(old) + (PI / total) * gathered_sum(6), old.w);
        }
    })
}
