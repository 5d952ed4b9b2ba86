// Light on the floor: the sets of directions of a view, the two grids (refined level by level) and the coarse floor;
// the algorithm of floor.rs and grid.rs.

#define FADE 0.2f
#define CUT_BOXES 128

/// One block a view: directions in the object frame, where the spot's shadow can fall.
KERNEL prepare(const Batch* b, int unused) {
    int index = blockIdx.x;
    const View& view = b->views[index];
    Both* directions = b->directions + (u64)index * b->direction_count;
    int counts[4] = {b->sun_count, b->sphere_count, b->floor_sun_count, b->hemisphere_count};
    int places[4] = {0, b->sun_count + b->lamp_count, b->sun_count + b->lamp_count + b->sphere_count,
                     b->sun_count + b->lamp_count + b->sphere_count + b->floor_sun_count};
    const float4* source = b->sphere_sets;
    for (int set = 0; set < 4; set++) {
        for (int i = threadIdx.x; i < counts[set]; i += blockDim.x) {
            directions[places[set] + i].world = source[i];
            directions[places[set] + i].object = extend(turn_to_object(view, xyz(source[i])), 0.0f);
        }
        source += counts[set];
    }
    float3 s, t, lamp = vec(view.spot_position), axis = vec(view.spot_axis);
    frame(-axis, s, t);
    for (int i = threadIdx.x; i < b->lamp_count + b->floor_lamp_count; i += blockDim.x) {
        float2 disc = b->lamp_sets[i];
        float3 world = lamp + disc.x * s + disc.y * t;
        int place = i < b->lamp_count ? b->sun_count + i : b->direction_count - b->floor_lamp_count + i - b->lamp_count;
        directions[place].world = extend(world, 0.0f);
        directions[place].object = extend(to_object(view, world), 0.0f);
    }
    Derived& derived = b->derived[index];
    if (threadIdx.x == 0) {
        derived.has_shadow = 0;
        derived.node_count = 0;
        derived.point_count = 0;
    }
    if (view.is_empty) return;
    // Boxes on the floor that contain the spot's shadow, penumbra included.
    __shared__ float4 boxes[CUT_BOXES];
    for (int i = threadIdx.x; i < view.cut_count; i += blockDim.x) {
        float4 box = make_float4(INFINITE, INFINITE, -INFINITE, -INFINITE);
        for (int corner = 0; corner < 8; corner++) {
            const float* cut = view.cut + 6 * i;
            float3 point = to_world(view, vec(cut[corner & 1 ? 3 : 0], cut[corner & 2 ? 4 : 1], cut[corner & 4 ? 5 : 2]));
            point.z = clamp(point.z, FLOOR_Z, lamp.z - 0.5f);
            float scale = (lamp.z - FLOOR_Z) / (lamp.z - point.z);
            float3 ray = point - lamp;
            float3 shadow = lamp + scale * ray;
            float slant = sqrtf(dot(ray, ray)) / (lamp.z - point.z);
            float penumbra = 1.1f * LAMP_RADIUS * (scale - 1.0f) * slant;
            box = make_float4(fminf(box.x, shadow.x - penumbra), fminf(box.y, shadow.y - penumbra),
                              fmaxf(box.z, shadow.x + penumbra), fmaxf(box.w, shadow.y + penumbra));
        }
        boxes[i] = box;
    }
    u8* touched = b->touched + (u64)index * b->shadow_cells * b->shadow_cells;
    for (int i = threadIdx.x; i < b->shadow_cells * b->shadow_cells / 16; i += blockDim.x) {
        ((float4*)touched)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    __syncthreads();
    float4 all = make_float4(INFINITE, INFINITE, -INFINITE, -INFINITE);
    for (int i = 0; i < view.cut_count; i++) {
        all = make_float4(fminf(all.x, boxes[i].x), fminf(all.y, boxes[i].y), fmaxf(all.z, boxes[i].z),
                          fmaxf(all.w, boxes[i].w));
    }
    // What the spot lights at all.
    frame(axis, s, t);
    float4 pool = make_float4(INFINITE, INFINITE, -INFINITE, -INFINITE);
    for (int i = 0; i < 32; i++) {
        float3 direction = axis + 0.275f * (b->pool[i].x * s + b->pool[i].y * t);
        float reach = (FLOOR_Z - lamp.z) / fminf(direction.z, -1e-3f);
        float x = lamp.x + reach * direction.x, y = lamp.y + reach * direction.y;
        pool = make_float4(fminf(pool.x, x), fminf(pool.y, y), fmaxf(pool.z, x), fmaxf(pool.w, y));
    }
    float x0 = fmaxf(all.x, pool.x), y0 = fmaxf(all.y, pool.y), x1 = fminf(all.z, pool.z), y1 = fminf(all.w, pool.w);
    float side = fmaxf(x1 - x0, y1 - y0);
    if (!(x1 > x0 && y1 > y0 && side < INFINITE)) return;
    // A margin of one coarse cell, so that the border is in full light.
    float margin = side / 14.0f;
    x0 -= margin;
    y0 -= margin;
    side += 2.0f * margin;
    if (threadIdx.x == 0) {
        derived.has_shadow = 1;
        derived.shadow_origin[0] = x0;
        derived.shadow_origin[1] = y0;
        derived.shadow_side = side;
    }
    float step = side / (float)b->shadow_cells, last = (float)b->shadow_cells - 1.0f;
    for (int i = threadIdx.x / WARP; i < view.cut_count; i += blockDim.x / WARP) {
        int lx = (int)clamp((boxes[i].x - x0) / step, 0.0f, last), ly = (int)clamp((boxes[i].y - y0) / step, 0.0f, last);
        int hx = (int)clamp((boxes[i].z - x0) / step, 0.0f, last), hy = (int)clamp((boxes[i].w - y0) / step, 0.0f, last);
        for (int y = ly; y <= hy; y++) {
            for (int x = lx + lane_index(); x <= hx; x += WARP) touched[y * b->shadow_cells + x] = 1;
        }
    }
}

/// Whether a shadow's box touches any of the finest cells of a square.
DEVICE bool shadow_near(const Batch* b, int index, int x0, int y0, int size) {
    const u8* touched = b->touched + (u64)index * b->shadow_cells * b->shadow_cells;
    for (int y = y0; y < min(y0 + size, b->shadow_cells); y++) {
        for (int x = x0; x < min(x0 + size, b->shadow_cells); x++) {
            if (touched[y * b->shadow_cells + x]) return true;
        }
    }
    return false;
}

DEVICE float difference(float a, float b) { return fabsf(a - b); }
DEVICE float difference(float4 a, float4 b) {
    float x = a.x + a.y + a.z, y = b.x + b.y + b.z;
    return fabsf(x - y) / fmaxf(fmaxf(x, y), 1e-6f);
}
DEVICE float mean(float a, float b) { return (a + b) * 0.5f; }
DEVICE float4 mean(float4 a, float4 b) {
    return make_float4((a.x + b.x) * 0.5f, (a.y + b.y) * 0.5f, (a.z + b.z) * 0.5f, 0.0f);
}

/// Whether a cell of `size` finest cells needs its middle nodes computed.
template <typename T>
DEVICE bool is_refined(const Batch* b, int index, const T* values, int cells, int coarse, float tolerance,
                       bool is_shadow, int x, int y, int size) {
    int width = cells + 1;
    T a = values[y * width + x], c = values[y * width + x + size];
    T d = values[(y + size) * width + x], e = values[(y + size) * width + x + size];
    if (difference(a, c) > tolerance || difference(a, d) > tolerance || difference(a, e) > tolerance ||
        difference(c, d) > tolerance)
        return true;
    return is_shadow && size > coarse / 2 && shadow_near(b, index, x, y, size);
}

/// One block a view: lists the nodes `step` cells apart that are to be computed, neighbours together, and
/// interpolates the others. At the coarsest level all are computed.
template <typename T>
DEVICE void select_nodes(const Batch* b, int index, T* values, int cells, float tolerance, bool is_shadow, int step) {
    int coarse = cells / 16, side = cells / step + 1, width = cells + 1;
    u32* list = b->nodes + (u64)index * b->node_capacity;
    int tiles = (side + 7) / 8, count = 0;
    int total = tiles * ((side + 3) / 4) * 32;
    for (int start = 0; start < total; start += blockDim.x) {
        int i = start + threadIdx.x;
        int x = (i / 32 % tiles) * 8 + i % 8, y = (i / 32 / tiles) * 4 + i % 32 / 8;
        bool needed = false;
        if (i < total && x < side && y < side) {
            if (step == coarse) {
                needed = true;
            } else if ((x | y) & 1) {
                int size = 2 * step, ax = x / 2 * size, ay = y / 2 * size;  // the cell above and right of the node
                // Cells that share the node: on a vertical edge the left one too, on a horizontal edge the lower one.
                int left = x & 1 ? 0 : 1, down = y & 1 ? 0 : 1;
                for (int dx = 0; dx <= left; dx++) {
                    for (int dy = 0; dy <= down; dy++) {
                        int cx = ax - dx * size, cy = ay - dy * size;
                        if (cx >= 0 && cy >= 0 && cx < cells && cy < cells) {
                            needed = needed || is_refined(b, index, values, cells, coarse, tolerance, is_shadow, cx, cy,
                                                          size);
                        }
                    }
                }
                T* row = values + y * step * width + x * step;
                if (!needed) {
                    int h = step, v = step * width;
                    if (x & 1 && y & 1) {
                        *row = mean(mean(row[-h - v], row[h - v]), mean(row[v - h], row[h + v]));
                    } else {
                        *row = x & 1 ? mean(row[-h], row[h]) : mean(row[-v], row[v]);
                    }
                }
            }
        }
        int added;
        int place = block_scan(needed ? 1 : 0, added);
        if (needed) list[count + place] = (u32)(y * step) << 16 | (u32)(x * step);
        count += added;
    }
    if (threadIdx.x == 0) b->derived[index].node_count = count;
}

KERNEL select_irradiance(const Batch* b, int step) {
    int index = blockIdx.x, width = b->irradiance_cells + 1;
    if (b->views[index].is_empty) return;
    select_nodes(b, index, b->irradiance + (u64)index * width * width, b->irradiance_cells, b->irradiance_tolerance,
                 false, step);
}

KERNEL select_shadow(const Batch* b, int step) {
    int index = blockIdx.x, width = b->shadow_cells + 1;
    if (b->views[index].is_empty) return;
    if (!b->derived[index].has_shadow) {
        if (threadIdx.x == 0) b->derived[index].node_count = 0;
        return;
    }
    select_nodes(b, index, b->shadow + (u64)index * width * width, b->shadow_cells, b->shadow_tolerance, true, step);
}

/// Nodes whose irradiance a warp finds together.
#define FLOOR_NODES ((WARP + 3) / 4)
__shared__ float4 floor_origins[BLOCK / WARP][FLOOR_NODES];
__shared__ u32 entering_rays[BLOCK / WARP][2 * WARP];  // of which node, and the number of the direction
__shared__ float4 entering_light[BLOCK / WARP][WARP];

/// Listed nodes of a view: irradiance of sun, world and object, by what the object changes about that of the open floor. Few
/// rays come near the object: they queue until there is one for every lane.
TRACE_KERNEL_OF_BOTH(trace_irradiance) {
    int index = blockIdx.y, width = b->irradiance_cells + 1;
    const View& view = b->views[index];
    int count = view.is_empty ? 0 : b->derived[index].node_count;
    u32 rays = 0;
    const float4* floor = b->open_floor + (u64)index * (COARSE_CELLS + 1) * (COARSE_CELLS + 1);
    float step = view.irradiance_side / (float)b->irradiance_cells;
    int warp = threadIdx.x / WARP, lane = lane_index();
    float4* origins = floor_origins[warp];
    u32* queue = entering_rays[warp];
    float4* found = entering_light[warp];
    for (int start = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * FLOOR_NODES; start < count;
         start += gridDim.x * blockDim.x / WARP * FLOOR_NODES) {
        // The first lanes have a node each.
        int nodes = min(FLOOR_NODES, count - start);
        u32 node = b->nodes[(u64)index * b->node_capacity + start + min(lane, nodes - 1)];
        float x = view.irradiance_origin[0] + step * (float)(node & 0xffff);
        float y = view.irradiance_origin[1] + step * (float)(node >> 16);
        if (lane < nodes) origins[lane] = extend(to_object(view, vec(x, y, FLOOR_Z + LIFT)), 0.0f);
        sync_warp();
        float blocked = 0.0f;
        float3 light = splat(0.0f);
        for (int set = 0; set < 2; set++) {
            bool is_sun = set == 0;
            const Both* directions = is_sun ? floor_sun_set(b, index) : hemisphere_set(b, index);
            int many = is_sun ? b->floor_sun_count : b->hemisphere_count;
            int rounds = (many + WARP - 1) / WARP, end = nodes * rounds, queued = 0;
            for (int round = 0; round <= end; round++) {
                if (round < end) {
                    int place = round / rounds, i = round % rounds * WARP + lane;
                    float3 direction = xyz(directions[min(i, many - 1)].object);
                    bool enters = i < many && enters_root(view, xyz(origins[place]), direction);
                    rays += i < many ? 1 : 0;
                    u32 all = ballot(enters);
                    if (enters) queue[queued + __popc(all & ((1u << lane) - 1))] = (u32)place << 16 | (u32)i;
                    queued += __popc(all);
                    sync_warp();
                }
                if (queued == 0 || (queued < WARP && round < end)) continue;
                int taken = min(queued, WARP);
                bool active = lane < taken;
                u32 ray = queue[active ? lane : 0];
                u32 later = queue[WARP + lane];
                int i = (int)(ray & 0xffff);
                float3 origin = xyz(origins[ray >> 16]);
                const Both& direction = directions[i];
                float3 change = splat(0.0f);
                if (is_sun) {
                    float open = transmitted<false, false, CLEAR>(view, origin, xyz(direction.object), INFINITE, active);
                    change.x = (1.0f - open) * direction.world.z;
                } else {
                    Hit hit = nearest<false>(view, origin, xyz(direction.object), INFINITE, active);
                    bool is_hit = hit.triangle != MISS;
                    if (ballot(is_hit) != 0) {
                        float3 indirect;
                        float3 object = object_radiance<CLEAR>(b, view, index, floor, hit, is_hit, xyz(direction.world), i,
                                                               rays, indirect);
                        if (is_hit) change = object + indirect - splat(WORLD_RADIANCE);
                    }
                }
                found[lane] = extend(change, __uint_as_float(ray >> 16));
                sync_warp();
                for (int k = 0; k < taken; k++) {
                    float4 other = found[k];
                    if (__float_as_uint(other.w) != (u32)lane) continue;
                    if (is_sun) {
                        blocked += other.x;
                    } else {
                        light = light + xyz(other);
                    }
                }
                queued -= taken;
                if (lane < queued) queue[lane] = later;
                sync_warp();
            }
        }
        if (lane < nodes) {
            float sun = SUN_FLOOR_IRRADIANCE * (1.0f - blocked / b->floor_sun_total);
            float3 value = splat(sun + PI * WORLD_RADIANCE) + (PI / (float)b->hemisphere_count) * light;
            b->irradiance[(u64)index * width * width + (node >> 16) * width + (node & 0xffff)] = extend(value, 0.0f);
        }
        sync_warp();
    }
    count_rays(b, rays);
}

/// Listed nodes of a view: share of the spot that arrives. Groups of lanes have a node each, their lanes points of the lamp.
TRACE_KERNEL_OF_BOTH(trace_shadow) {
    int index = blockIdx.y, width = b->shadow_cells + 1;
    const View& view = b->views[index];
    int count = view.is_empty ? 0 : b->derived[index].node_count;
    const Derived& derived = b->derived[index];
    const Both* lamp = floor_lamp_set(b, index);
    float step = derived.shadow_side / (float)b->shadow_cells;
    u32 rays = 0;
    const int groups = WARP / SHADOW_GROUP;
    int group = lane_index() / SHADOW_GROUP, lane = lane_index() % SHADOW_GROUP;
    for (int start = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * groups; start < count;
         start += gridDim.x * blockDim.x / WARP * groups) {
        int item = start + group;
        u32 node = b->nodes[(u64)index * b->node_capacity + min(item, count - 1)];
        int nx = node & 0xffff, ny = node >> 16;
        // Nodes that no box's shadow comes near are open.
        int cx = min(max(nx, 1), b->shadow_cells - 1) - 1, cy = min(max(ny, 1), b->shadow_cells - 1) - 1;
        bool near = item < count && shadow_near(b, index, cx, cy, 2);
        float3 place = vec(derived.shadow_origin[0] + step * (float)nx, derived.shadow_origin[1] + step * (float)ny, FLOOR_Z);
        float3 end = to_object(view, vec(place.x, place.y, FLOOR_Z + LIFT));
        // Where the beam ends, only a part of the lamp shines.
        bool is_inside = spot_is_inside(view, place);
        float arriving = 0.0f;
        float total = 0.0f;
        if (ballot(near) != 0) {
            for (int first = 0; first < b->floor_lamp_count; first += SHADOW_GROUP) {
                bool active = near && first + lane < b->floor_lamp_count;
                const Both& point = lamp[min(first + lane, b->floor_lamp_count - 1)];
                float3 origin = xyz(point.object);
                float weight = is_inside ? 1.0f : spot_edge(view, place, xyz(point.world));
                arriving += weight * transmitted<false, false, CLEAR>(view, origin, end - origin, 1.0f, active);
                total += active ? weight : 0.0f;
                rays += active ? 1 : 0;
            }
        }
        arriving = group_sum(arriving, SHADOW_GROUP);
        total = group_sum(total, SHADOW_GROUP);
        if (item < count && lane == 0) {
            float share = near && total > 0.0f ? arriving / total : 1.0f;
            b->shadow[(u64)index * width * width + ny * width + nx] = share;
        }
    }
    count_rays(b, rays);
}

/// Position in a grid, false outside.
DEVICE bool locate(float x, float y, const float* origin, float side, int cells, int& node, float& fx, float& fy) {
    float inverse = (float)cells / side;
    float px = (x - origin[0]) * inverse, py = (y - origin[1]) * inverse;
    if (!(px >= 0.0f && py >= 0.0f && px < (float)cells && py < (float)cells)) return false;
    int i = (int)px, j = (int)py;
    fx = px - (float)i;
    fy = py - (float)j;
    node = j * (cells + 1) + i;
    return true;
}

/// Radiance of the floor; `with_object` says whether the grids count.
DEVICE float3 floor_radiance(const Batch* b, int index, float x, float y, bool with_object) {
    const View& view = b->views[index];
    float3 irradiance = splat(OPEN);
    with_object = with_object && !view.is_empty;
    int node;
    float fx, fy;
    int cells = b->irradiance_cells;
    if (with_object && locate(x, y, view.irradiance_origin, view.irradiance_side, cells, node, fx, fy)) {
        const float4* at = b->irradiance + (u64)index * (cells + 1) * (cells + 1) + node;
        float3 value = mix(mix(xyz(at[0]), xyz(at[1]), fx), mix(xyz(at[cells + 1]), xyz(at[cells + 2]), fx), fy);
        float half = 0.5f * view.irradiance_side;
        float offset = fmaxf(fabsf(x - view.irradiance_origin[0] - half), fabsf(y - view.irradiance_origin[1] - half));
        irradiance = mix(irradiance, value, fminf((1.0f - offset / half) * (1.0f / FADE), 1.0f));
    }
    float spot = spot_irradiance(b, view, vec(x, y, FLOOR_Z), vec(0.0f, 0.0f, 1.0f));
    if (spot > 0.0f) {
        const Derived& derived = b->derived[index];
        float open = 1.0f;
        cells = b->shadow_cells;
        if (with_object && derived.has_shadow &&
            locate(x, y, derived.shadow_origin, derived.shadow_side, cells, node, fx, fy)) {
            const float* at = b->shadow + (u64)index * (cells + 1) * (cells + 1) + node;
            open = mix(mix(at[0], at[1], fx), mix(at[cells + 1], at[cells + 2], fx), fy);
        }
        irradiance = irradiance + (spot * open) * vec(view.spot_intensity);
    }
    return INVERSE_PI * (vec(view.floor_albedo) * irradiance);
}

/// What the floor sends up on a coarse grid: without the object (0) for the light on the floor, with it (1) for the
/// object.
KERNEL fill_coarse_floor(const Batch* b, int with_object) {
    const int width = COARSE_CELLS + 1;
    int index = blockIdx.y, node = blockIdx.x * blockDim.x + threadIdx.x;
    const View& view = b->views[index];
    if (view.is_empty || node >= width * width) return;
    const float step = 2.0f * COARSE_HALF / COARSE_CELLS;
    float x = view.centre[0] - COARSE_HALF + step * (float)(node % width);
    float y = view.centre[1] - COARSE_HALF + step * (float)(node / width);
    float4* grid = with_object ? b->coarse_floor : b->open_floor;
    grid[(u64)index * width * width + node] = extend(floor_radiance(b, index, x, y, with_object != 0), 0.0f);
}
