// Light at the chosen points, a warp's worth at a time: the algorithm of points.rs in three kernels. All lanes look in one
// direction (or at one lamp point) at a time.

#define NARROW_LOBE 0.2f
#define LAMP_LOBE (0.5f * LAMP_RADIUS / 4.0f)
#define MIN_ALPHA 1e-3f

struct Point {
    float3 position, normal, face, view, origin;
    float n_dot_v, roughness, reflectance, eta, alpha;
    u32 behind;
};

DEVICE float schlick(float x) {
    float m = clamp(1.0f - x, 0.0f, 1.0f);
    return m * m * (m * m) * m;
}

DEVICE Point load_point(const Batch* b, const View& view, u32 slot) {
    const Sample& sample = b->samples[view.sample_start + slot];
    Point p;
    p.position = xyz(sample.position);
    p.normal = xyz(sample.normal);
    p.face = xyz(sample.face);
    p.behind = __float_as_uint(sample.face.w);
    p.view = normalized(camera_position() - p.position, vec(0.0f, 0.0f, 1.0f));
    p.origin = ray_start(view, p.position, p.face);
    p.n_dot_v = dot(p.normal, p.view);
    const Material& material = view.materials[__float_as_uint(sample.normal.w)];
    p.roughness = material.roughness;
    p.reflectance = 0.08f * material.specular;
    p.eta = quotient(2.0f, 1.0f - root(clamp(p.reflectance, 0.0f, 0.99f))) - 1.0f;
    p.alpha = fmaxf(p.roughness * p.roughness, MIN_ALPHA);
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

DEVICE float fresnel(const Point& p, float l_dot_h) {
    float eta = p.eta, c = fabsf(l_dot_h);
    float g = root(fmaxf(eta * eta - 1.0f + c * c, 0.0f));
    float a = quotient(g - c, fmaxf(g + c, 1e-6f));
    float q = quotient((g + c) * c - 1.0f, (g - c) * c + 1.0f);
    float ratio = quotient(eta - 1.0f, eta + 1.0f), base = ratio * ratio;
    float rise = clamp(quotient(0.5f * a * a * (1.0f + q * q) - base, 1.0f - base), 0.0f, 1.0f);
    return p.reflectance * (1.0f - rise) + rise;
}

DEVICE float smith(float cosine, float alpha_squared) {
    float square = cosine * cosine;
    float tangent = quotient(fmaxf(1.0f - square, 0.0f), fmaxf(square, 1e-8f));
    return quotient(2.0f, 1.0f + root(1.0f + alpha_squared * tangent));
}

/// The GGX lobe times `n.l`.
DEVICE float lobe(const Point& p, float3 l, float alpha) {
    float n_dot_l = dot(p.normal, l), l_dot_v = dot(p.view, l);
    if (!(n_dot_l > 0.0f && p.n_dot_v > 0.0f && p.reflectance > 0.0f)) return 0.0f;
    float scale = rsqrtf(fmaxf(2.0f + 2.0f * l_dot_v, 1e-6f));
    float n_dot_h = (n_dot_l + p.n_dot_v) * scale, a2 = alpha * alpha;
    float d = n_dot_h * n_dot_h * (a2 - 1.0f) + 1.0f;
    float distribution = quotient(a2 * INVERSE_PI, d * d);
    float masking = smith(n_dot_l, a2) * smith(p.n_dot_v, a2);
    return fresnel(p, (1.0f + l_dot_v) * scale) * distribution * masking * quotient(0.25f, fmaxf(p.n_dot_v, 1e-6f));
}

/// The world, and, in a narrow lobe, the sun, as the lobe reflects them (visible normals: Heitz, 2018).
DEVICE float gleam(const Batch* b, const Point& p, float sun_share) {
    bool narrow = p.alpha < NARROW_LOBE;
    float3 s, t, a, c;
    frame(p.normal, s, t);
    float3 view = normalized(vec(p.alpha * dot(p.view, s), p.alpha * dot(p.view, t), p.n_dot_v), vec(0, 0, 1));
    frame(view, a, c);
    float sum = 0.0f;
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
        sum += (WORLD_RADIANCE + sun) * fresnel(p, dot(l, middle)) * smith(n_dot_l, p.alpha * p.alpha);
    }
    return sum / (float)b->lobe_count;
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
        Point p = load_point(b, view, b->point_sample[view.sample_start + min(item, count - 1)]);     \
        float4* shade = b->shades + 2 * (view.sample_start + item);                                   \
        __VA_ARGS__                                                                                   \
    }                                                                                                 \
    count_rays(b, rays);

/// The sun, and what the lobe reflects of it and of the world.
TRACE_KERNEL shade_sun(const Batch* b, int unused) {
    FOR_POINTS(1, {
        const Both* sun = sun_set(b, index);
        float total = 0.0f;
        float visible = 0.0f;
        float light = 0.0f;
        float shine = 0.0f;
        for (int i = 0; i < b->sun_count; i++) {
            float cosine;
            float diffuse;
            float3 l = xyz(sun[i].world);
            bool lit = evaluate(p, l, cosine, diffuse) && active;
            rays += lit ? 1 : 0;
            float open = transmitted<false, true>(view, p.origin, xyz(sun[i].object), INFINITE, lit, p.behind);
            total += cosine;
            visible += open * cosine;
            light += open * diffuse;
            if (open > 0.0f && p.reflectance > 0.0f) shine += open * lobe(p, l, p.alpha);
        }
        if (active) {
            float share = total > 0.0f ? visible / total : 0.0f;
            float diffuse = total > 0.0f ? sun_irradiance(b, p.normal.z) * light / total : 0.0f;
            // A lobe narrower than the spacing of the directions would sparkle: `gleam` has it.
            float specular = p.alpha >= NARROW_LOBE ? SUN_STRENGTH / (float)b->sun_count * shine : 0.0f;
            if (p.reflectance > 0.0f) specular += gleam(b, p, share);
            shade[0] = extend(splat(diffuse), 0.0f);
            shade[1] = extend(splat(specular), 0.0f);
        }
    })
}

TRACE_KERNEL shade_spot(const Batch* b, int unused) {
    FOR_POINTS(SPOT_GROUP, {
        float irradiance = active ? spot_irradiance(b, view, p.position, p.normal) : 0.0f;
        active = irradiance > 0.0f;
        if (ballot(active) == 0) continue;
        const Both* lamp = lamp_set(b, index);
        float total = 0.0f;
        float light = 0.0f;
        float shine = 0.0f;
        for (int first = 0; first < b->lamp_count; first += SPOT_GROUP) {
            float cosine;
            float diffuse;
            int i = first + lane_index() % SPOT_GROUP;
            bool counts = i < b->lamp_count;
            i = counts ? i : 0;
            float3 to_lamp = xyz(lamp[i].world) - p.position;
            float3 l = rsqrtf(fmaxf(dot(to_lamp, to_lamp), 1e-12f)) * to_lamp;
            bool lit = evaluate(p, l, cosine, diffuse) && active && counts;
            rays += lit ? 1 : 0;
            float3 origin = xyz(lamp[i].object);
            float open = transmitted<true, true>(view, origin, p.origin - origin, 1.0f, lit, p.behind);
            total += counts ? cosine : 0.0f;
            light += open * diffuse;
            if (open > 0.0f && p.reflectance > 0.0f) shine += open * lobe(p, l, fmaxf(p.alpha, LAMP_LOBE));
        }
        total = group_sum(total, SPOT_GROUP);
        light = group_sum(light, SPOT_GROUP);
        shine = group_sum(shine, SPOT_GROUP);
        if (active && lane_index() % SPOT_GROUP == 0) {
            float3 intensity = vec(view.spot_intensity);
            float diffuse = total > 0.0f ? irradiance * light / total : 0.0f;
            float facing = spot_facing_irradiance(b, view, p.position);
            shade[0] = extend(xyz(shade[0]) + diffuse * intensity, 0.0f);
            shade[1] = extend(xyz(shade[1]) + (facing * shine / (float)b->lamp_count) * intensity, 0.0f);
        }
    })
}

/// A hit of a gathered ray whose light is still to be found.
struct Found {
    float u, v, weight;
    u32 triangle, ray;  // the ray: its direction's number, and the lane of its point
};

__shared__ Found found_hits[BLOCK / WARP][2 * WARP];
__shared__ float4 found_light[BLOCK / WARP][WARP];

/// The light of the first hits of the warp's queue, one a lane, added to the points they belong to.
DEVICE void add_found(const Batch* b, const View& view, int index, const float4* floor, int count, float3& light,
                      u32& rays) {
    int warp = threadIdx.x / WARP, lane = lane_index();
    bool is_hit = lane < count;
    Found found = found_hits[warp][is_hit ? lane : 0];
    Hit hit = {0.0f, found.u, found.v, found.triangle};
    int turn = (int)(found.ray >> 8);
    float3 direction = xyz(sphere_set(b, index)[turn].world);
    float3 radiance = object_radiance(b, view, index, floor, hit, is_hit, direction, turn, rays);
    found_light[warp][lane] = extend(found.weight * radiance, __uint_as_float(is_hit ? found.ray & 0xff : NONE));
    sync_warp();
    for (int i = 0; i < count; i++) {
        float4 value = found_light[warp][i];
        if (__float_as_uint(value.w) == (u32)lane) light = light + xyz(value);
    }
    sync_warp();
}

/// What the world, the floor and the object itself send from every direction. Few rays meet the object: their hits queue
/// until there is one for every lane.
TRACE_KERNEL shade_indirect(const Batch* b, int unused) {
    FOR_POINTS(1, {
        const Both* sphere = sphere_set(b, index);
        const float4* floor = b->coarse_floor + (u64)index * (COARSE_CELLS + 1) * (COARSE_CELLS + 1);
        Found* queue = found_hits[threadIdx.x / WARP];
        int queued = 0;
        float total = 0.0f;
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
                if (lit && !is_hit) {
                    float3 incoming = splat(WORLD_RADIANCE);
                    if (l.z < 0.0f) {
                        incoming = coarse_radiance(view, floor, p.position.x + limit * l.x, p.position.y + limit * l.y);
                    }
                    light = light + diffuse * incoming;
                }
                u32 hits = ballot(is_hit);
                if (is_hit) {
                    Found found = {hit.u, hit.v, diffuse, hit.triangle, (u32)i << 8 | (u32)lane_index()};
                    queue[queued + __popc(hits & ((1u << lane_index()) - 1))] = found;
                }
                queued += __popc(hits);
                sync_warp();
            }
            if (queued >= WARP || (is_end && queued > 0)) {
                int taken = min(queued, WARP);
                add_found(b, view, index, floor, taken, light, rays);
                queued -= taken;
                if (lane_index() < queued) queue[lane_index()] = queue[WARP + lane_index()];
                sync_warp();
            }
        }
        if (active && total > 0.0f) shade[0] = extend(xyz(shade[0]) + (PI / total) * light, 0.0f);
    })
}
