// Light at the chosen points, a warp's worth at a time: the algorithm of points.rs in three kernels. All lanes look in one
// direction (or at one lamp point) at a time.

#define NARROW_LOBE 0.2f
#define LAMP_LOBE (0.5f * LAMP_RADIUS / 4.0f)
#define MIN_ALPHA 1e-3f

struct Point {
    float3 position, normal, face, view, origin;
    float n_dot_v, roughness, reflectance, eta, alpha;
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
    p.view = normalized(camera_position() - p.position, vec(0.0f, 0.0f, 1.0f));
    p.origin = ray_start(view, p.position, p.face);
    p.n_dot_v = dot(p.normal, p.view);
    const Material& material = view.materials[__float_as_uint(sample.normal.w)];
    p.roughness = material.roughness;
    p.reflectance = 0.08f * material.specular;
    p.eta = 2.0f / (1.0f - sqrtf(clamp(p.reflectance, 0.0f, 0.99f))) - 1.0f;
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
    float g = sqrtf(fmaxf(eta * eta - 1.0f + c * c, 0.0f));
    float a = (g - c) / fmaxf(g + c, 1e-6f);
    float q = ((g + c) * c - 1.0f) / ((g - c) * c + 1.0f);
    float base = (eta - 1.0f) / (eta + 1.0f) * ((eta - 1.0f) / (eta + 1.0f));
    float rise = clamp((0.5f * a * a * (1.0f + q * q) - base) / (1.0f - base), 0.0f, 1.0f);
    return p.reflectance * (1.0f - rise) + rise;
}

DEVICE float smith(float cosine, float alpha_squared) {
    float square = cosine * cosine;
    return 2.0f / (1.0f + sqrtf(1.0f + alpha_squared * fmaxf(1.0f - square, 0.0f) / fmaxf(square, 1e-8f)));
}

/// The GGX lobe times `n.l`.
DEVICE float lobe(const Point& p, float3 l, float alpha) {
    float n_dot_l = dot(p.normal, l), l_dot_v = dot(p.view, l);
    if (!(n_dot_l > 0.0f && p.n_dot_v > 0.0f && p.reflectance > 0.0f)) return 0.0f;
    float scale = 1.0f / sqrtf(fmaxf(2.0f + 2.0f * l_dot_v, 1e-6f));
    float n_dot_h = (n_dot_l + p.n_dot_v) * scale, a2 = alpha * alpha;
    float d = n_dot_h * n_dot_h * (a2 - 1.0f) + 1.0f;
    float distribution = a2 * INVERSE_PI / (d * d);
    float masking = smith(n_dot_l, a2) * smith(p.n_dot_v, a2);
    return fresnel(p, (1.0f + l_dot_v) * scale) * distribution * masking * 0.25f / fmaxf(p.n_dot_v, 1e-6f);
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
        float y = (1.0f - blend) * sqrtf(fmaxf(1.0f - x * x, 0.0f)) + blend * u.x * u.z;
        float z = sqrtf(fmaxf(1.0f - x * x - y * y, 0.0f));
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

/// Runs its argument with `p`, `active` and `shade` for the points of a view, a warp's worth at a time.
#define FOR_POINTS(...)                                                                               \
    int index = blockIdx.y;                                                                           \
    const View& view = b->views[index];                                                               \
    int count = view.is_empty ? 0 : b->derived[index].point_count;                                    \
    u32 rays = 0;                                                                                     \
    for (int start = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * WARP; start < count;            \
         start += gridDim.x * blockDim.x) {                                                           \
        int item = start + lane_index();                                                              \
        bool active = item < count;                                                                   \
        Point p = load_point(b, view, b->point_sample[view.sample_start + min(item, count - 1)]);     \
        float4* shade = b->shades + 2 * (view.sample_start + item);                                   \
        __VA_ARGS__                                                                                        \
    }                                                                                                 \
    count_rays(b, rays);

/// The sun, and what the lobe reflects of it and of the world.
TRACE_KERNEL shade_sun(const Batch* b, int unused) {
    FOR_POINTS({
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
            float open = transmitted(view, p.origin, xyz(sun[i].object), INFINITE, lit);
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
    FOR_POINTS({
        float irradiance = active ? spot_irradiance(b, view, p.position, p.normal) : 0.0f;
        active = irradiance > 0.0f;
        if (ballot(active) == 0) continue;
        const Both* lamp = lamp_set(b, index);
        float total = 0.0f;
        float light = 0.0f;
        float shine = 0.0f;
        for (int i = 0; i < b->lamp_count; i++) {
            float cosine;
            float diffuse;
            float3 to_lamp = xyz(lamp[i].world) - p.position;
            float3 l = (1.0f / sqrtf(fmaxf(dot(to_lamp, to_lamp), 1e-12f))) * to_lamp;
            bool lit = evaluate(p, l, cosine, diffuse) && active;
            rays += lit ? 1 : 0;
            float3 origin = xyz(lamp[i].object);
            float open = transmitted(view, origin, p.origin - origin, 1.0f, lit);
            total += cosine;
            light += open * diffuse;
            if (open > 0.0f && p.reflectance > 0.0f) shine += open * lobe(p, l, fmaxf(p.alpha, LAMP_LOBE));
        }
        if (active) {
            float3 intensity = vec(view.spot_intensity);
            float diffuse = total > 0.0f ? irradiance * light / total : 0.0f;
            float facing = spot_facing_irradiance(b, view, p.position);
            shade[0] = extend(xyz(shade[0]) + diffuse * intensity, 0.0f);
            shade[1] = extend(xyz(shade[1]) + (facing * shine / (float)b->lamp_count) * intensity, 0.0f);
        }
    })
}

/// What the world, the floor and the object itself send from every direction.
TRACE_KERNEL shade_indirect(const Batch* b, int unused) {
    FOR_POINTS({
        const Both* sphere = sphere_set(b, index);
        const float4* floor = b->coarse_floor + (u64)index * (COARSE_CELLS + 1) * (COARSE_CELLS + 1);
        float total = 0.0f;
        float3 light = splat(0.0f);
        for (int i = 0; i < b->sphere_count; i++) {
            float cosine;
            float diffuse;
            float3 l = xyz(sphere[i].world);
            bool lit = evaluate(p, l, cosine, diffuse) && active;
            total += cosine;
            if (ballot(lit) == 0) continue;
            rays += lit ? 1 : 0;
            float limit = l.z < 0.0f && p.position.z > FLOOR_Z ? (FLOOR_Z - p.position.z) / l.z : INFINITE;
            Hit hit = nearest(view, p.origin, xyz(sphere[i].object), limit, lit);
            bool is_hit = hit.triangle != MISS;
            float3 incoming = splat(WORLD_RADIANCE);
            if (lit && !is_hit && l.z < 0.0f) {
                incoming = coarse_radiance(view, floor, p.position.x + limit * l.x, p.position.y + limit * l.y);
            }
            object_radiance(b, view, index, floor, hit, is_hit, l, i, incoming, rays);
            if (lit) light = light + diffuse * incoming;
        }
        if (active && total > 0.0f) shade[0] = extend(xyz(shade[0]) + (PI / total) * light, 0.0f);
    })
}
