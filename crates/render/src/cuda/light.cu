// Lights, surfaces and what a ray that leaves a surface finds: the formulas of lights.rs, bsdf.rs, view.rs, mesh.rs and
// lit_scene.rs.

#define FLOOR_Z -1.0f
#define WORLD_RADIANCE 0.05f
#define SUN_STRENGTH 1.5f
#define SUN_FLOOR_IRRADIANCE (1.5f * 2.0f * (1.41421356f - 1.0f))
#define LAMP_RADIUS 0.25f
#define LIFT 2e-4f
#define OPEN (SUN_FLOOR_IRRADIANCE + PI * WORLD_RADIANCE)
#define COARSE_CELLS 48
#define COARSE_HALF 4.0f
#define CONE_ANGLES 160
#define CONE_DISTANCES 24
#define CONE_MAX_SIN 0.34f
#define CONE_NEAREST 1.8f
#define CONE_FARTHEST 12.0f

struct SurfacePoint {
    float3 position, face, normal;
    float2 uv;
    float footprint;
    u32 material, behind;
};

/// The surface at a hit of a ray with the world direction `direction`, seen from the ray's side.
DEVICE SurfacePoint surface_point(const View& view, const Hit& hit, float3 direction) {
    const Shading& s = view.shading[hit.triangle];
    float w = 1.0f - hit.u - hit.v;
    float3 face = vec(s.face);
    float3 normal = normalized(w * vec(s.normals) + hit.u * vec(s.normals + 3) + hit.v * vec(s.normals + 6), face);
    if (dot(normal, face) < 0.0f) normal = -normal;
    SurfacePoint point;
    point.position = to_world(view, vec(s.corner) + hit.u * vec(s.edge1) + hit.v * vec(s.edge2));
    face = normal_to_world(view, face);
    normal = normal_to_world(view, normal);
    bool away = dot(face, direction) > 0.0f;
    point.behind = s.behind[away ? 1 : 0];
    point.face = away ? -face : face;
    point.normal = away ? -normal : normal;
    point.uv = uv_at(s, hit.u, hit.v);
    point.footprint = 0.0f;
    point.material = s.material;
    return point;
}

/// Area in the object over area in the world, of a surface with this normal in the world, where the object is deformed.
/// Called, not inlined: few are.
static __device__ __noinline__ float area_ratio(const View& view, float3 face) {
    const float* r = view.world_from_object;
    float3 turned = vec(r[0] * face.x + r[3] * face.y + r[6] * face.z, r[1] * face.x + r[4] * face.y + r[7] * face.z,
                        r[2] * face.x + r[5] * face.y + r[8] * face.z);
    return view.object_volume * root(dot(turned, turned));
}

/// Where rays leave from, object frame.
DEVICE float3 ray_start(const View& view, float3 position, float3 face) {
    return to_object(view, position + LIFT * face);
}

/// Irradiance of the unobstructed sun on a surface whose normal has this z component.
DEVICE float sun_irradiance(const Batch* b, float normal_z) {
    float x = (clamp(normal_z, -1.0f, 1.0f) + 1.0f) * 128.0f;
    int i = (int)x;
    return mix(b->sun_table[i], b->sun_table[i + 1], x - (float)i);
}

DEVICE float2 cone_lookup(const Batch* b, float cos_axis, float distance) {
    float sine = root(fmaxf(1.0f - cos_axis * cos_axis, 0.0f));
    if (cos_axis <= 0.0f || sine >= CONE_MAX_SIN) return make_float2(0.0f, 0.0f);
    const float low = 1.0f / CONE_FARTHEST, scale = (CONE_DISTANCES - 1) / (1.0f / CONE_NEAREST - low);
    float x = sine * ((CONE_ANGLES - 1) / CONE_MAX_SIN);
    float y = clamp((quotient(1.0f, distance) - low) * scale, 0.0f, (CONE_DISTANCES - 1) - 1e-3f);
    int i = min((int)x, CONE_ANGLES - 2), j = (int)y;
    float fx = x - (float)i, fy = y - (float)j;
    const float2* at = b->cone_table + i * CONE_DISTANCES + j;
    float2 near = at[0] + fy * (at[1] - at[0]);
    float2 far = at[CONE_DISTANCES] + fy * (at[CONE_DISTANCES + 1] - at[CONE_DISTANCES]);
    return near + fx * (far - near);
}

/// Irradiance of the spot per unit intensity on a surface that faces the lamp, nothing in between.
DEVICE float spot_facing_irradiance(const Batch* b, const View& view, float3 point) {
    float3 to_lamp = vec(view.spot_position) - point;
    float square = fmaxf(dot(to_lamp, to_lamp), 1e-12f);
    float distance = root(square);
    return quotient(cone_lookup(b, quotient(-dot(to_lamp, vec(view.spot_axis)), distance), distance).x, square);
}

/// Irradiance of the spot per unit intensity, nothing in between and the whole lamp above the horizon.
DEVICE float spot_irradiance(const Batch* b, const View& view, float3 point, float3 normal) {
    float3 to_lamp = vec(view.spot_position) - point, axis = vec(view.spot_axis);
    float square = fmaxf(dot(to_lamp, to_lamp), 1e-12f);
    float distance = root(square);
    float3 facing = quotient(1.0f, distance) * to_lamp;
    float cos_axis = -dot(facing, axis);
    float2 cone = cone_lookup(b, cos_axis, distance);
    if (cone.x == 0.0f) return 0.0f;
    float3 outward = normalized(axis + cos_axis * facing, splat(0.0f));
    return quotient(fmaxf(cone.x * dot(normal, facing) + cone.y * dot(normal, outward), 0.0f), square);
}

#define SPOT_COS 0.9807853f
#define SPOT_SMOOTH (0.15f * (1.0f - SPOT_COS))

/// Whether no part of the lamp sees a point outside the beam or in its soft edge.
DEVICE bool spot_is_inside(const View& view, float3 point) {
    float3 from_lamp = point - vec(view.spot_position), axis = vec(view.spot_axis);
    float along = dot(from_lamp, axis);
    float3 off = from_lamp - along * axis;
    float across = root(dot(off, off)) + LAMP_RADIUS;
    return along > (SPOT_COS + SPOT_SMOOTH) * root(along * along + across * across);
}

/// What the beam's edge leaves of the light of a point of the lamp, of 1.
DEVICE float spot_edge(const View& view, float3 point, float3 lamp) {
    float3 from_lamp = point - lamp;
    float cosine = quotient(dot(from_lamp, vec(view.spot_axis)), fmaxf(root(dot(from_lamp, from_lamp)), 1e-6f));
    float x = clamp((cosine - SPOT_COS) * (1.0f / SPOT_SMOOTH), 0.0f, 1.0f);
    return x * x * (3.0f - 2.0f * x);
}

/// Radiance of the coarse floor; that of the open floor far away.
DEVICE float3 coarse_radiance(const View& view, const float4* grid, float x, float y) {
    const float inverse_step = COARSE_CELLS / (2.0f * COARSE_HALF);
    float px = (x - (view.centre[0] - COARSE_HALF)) * inverse_step;
    float py = (y - (view.centre[1] - COARSE_HALF)) * inverse_step;
    if (!(px >= 0.0f && py >= 0.0f && px < COARSE_CELLS && py < COARSE_CELLS))
        return (OPEN * INVERSE_PI) * vec(view.floor_albedo);
    int i = (int)px, j = (int)py;
    float fx = px - (float)i, fy = py - (float)j;
    const float4* at = grid + j * (COARSE_CELLS + 1) + i;
    float3 top = mix(xyz(at[0]), xyz(at[1]), fx);
    float3 bottom = mix(xyz(at[COARSE_CELLS + 1]), xyz(at[COARSE_CELLS + 2]), fx);
    return mix(top, bottom, fy);
}

/// Radiance of the object at a hit of a ray with the world direction `direction`, number `turn` of its set; to be called
/// by whole warps. Sun and spot are looked at through one shadow ray each; the rest of the light there is estimated from
/// the floor below and the world, and what is reflected of it is in `indirect`.
#define RAY_SPACING 0.25f
template <bool CLEAR>
DEVICE float3 object_radiance(const Batch* b, const View& view, int index, const float4* floor, const Hit& hit,
                              bool is_hit, float3 direction, int turn, u32& rays, float3& indirect) {
    const Both& sun = sun_set(b, index)[turn * 7 % b->sun_count];
    const Both& lamp = lamp_set(b, index)[turn * 5 % b->lamp_count];
    float3 position = splat(0.0f), normal = vec(0.0f, 0.0f, 1.0f), origin = splat(0.0f), leaving = splat(0.0f);
    float3 own = splat(0.0f);
    float spot = 0.0f, alpha = 1.0f;
    u32 sun_behind = NONE, lamp_behind = NONE;
    bool sunlit = false;
    if (is_hit) {
        SurfacePoint point = surface_point(view, hit, direction);
        position = point.position;
        normal = point.normal;
        origin = ray_start(view, point.position, point.face);
        sunlit = dot(normal, xyz(sun.world)) > 0.0f;
        spot = spot_irradiance(b, view, position, normal);
        // Normals may face a light that the surface does not.
        if (dot(point.face, xyz(sun.world)) > 0.0f) sun_behind = point.behind;
        if (dot(point.face, xyz(lamp.world) - position) > 0.0f) lamp_behind = point.behind;
        const Material& material = view.materials[point.material];
        if (has_maps(material)) {
            float spacing = RAY_SPACING * hit.t;
            point.footprint = uv_density(view.shading[hit.triangle]) * spacing * spacing;
            if (!view.is_rigid) point.footprint *= area_ratio(view, point.face);
        }
        leaving = albedo(b, view, material, point.uv, point.footprint);
        alpha = opacity(view, material, point.uv, point.footprint);
        if (view.has_emission) own = emission(b, view, material, point.uv, point.footprint);
    }
    rays += (sunlit ? 1 : 0) + (spot > 0.0f ? 1 : 0);
    // One after the other through the same code: walks are long.
    float sun_open = 0.0f;
    float lamp_open = 0.0f;
#pragma unroll 1
    for (int light = 0; light < 2; light++) {
        bool is_lamp = light != 0;
        float3 from = is_lamp ? xyz(lamp.object) : origin, along = is_lamp ? origin - from : xyz(sun.object);
        float open = transmitted<true, true, CLEAR>(view, from, along, is_lamp ? 1.0f : INFINITE,
                                             is_lamp ? spot > 0.0f : sunlit, is_lamp ? lamp_behind : sun_behind);
        (is_lamp ? lamp_open : sun_open) = open;
    }
    float3 below = coarse_radiance(view, floor, position.x, position.y);
    float3 ambient = splat(0.5f * (1.0f + normal.z) * WORLD_RADIANCE) + 0.5f * (1.0f - normal.z) * below;
    // A surface turned away from the sampled part of the sun still sees some other part of it.
    float sun_share = sunlit ? sun_open : 1.0f;
    float3 direct = splat(sun_irradiance(b, normal.z) * sun_share) + (spot * lamp_open) * vec(view.spot_intensity);
    // Behind a transparent surface there is, more often than not, the same as around it.
    float3 behind = direction.z < 0.0f ? below : splat(WORLD_RADIANCE);
    indirect = alpha * (leaving * ambient);
    return alpha * (INVERSE_PI * (leaving * direct) + own) + (1.0f - alpha) * behind;
}
