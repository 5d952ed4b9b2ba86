// Rays against the hierarchy, every lane on its own. A warp's rays start or go side by side, so its lanes mostly read the
// same nodes.

#define MISS NONE
#define MIN_T 1e-6f
#define EDGE 2e-6f
#define TINY 1e-12f
/// References: the number of a node, or LEAF with the number of triangles (4 bits) and the first triangle (27 bits).
#define LEAF 0x80000000u
#define FIRST_BITS 27
/// Nothing is left to visit.
#define DONE 0xffffffffu

struct Hit {
    float t, u, v;
    u32 triangle;
};

struct Ray {
    float3 origin, direction, inverse, scaled;
};

DEVICE float reciprocal(float d) { return __fdividef(1.0f, fabsf(d) < TINY ? copysignf(TINY, d) : d); }

DEVICE Ray make_ray(float3 origin, float3 direction) {
    Ray ray;
    ray.origin = origin;
    ray.direction = direction;
    ray.inverse = vec(reciprocal(direction.x), reciprocal(direction.y), reciprocal(direction.z));
    ray.scaled = origin * ray.inverse;
    return ray;
}

#ifndef EMULATED
DEVICE void unpack(u32 halves, float& low, float& high) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(low), "=f"(high)
        : "r"(halves));
}
#endif

/// Whether a ray meets the box of a child before `limit`; and where.
DEVICE bool enters(const Ray& ray, const uint4& child, float limit, float& near) {
    float mx, my, mz, hx, hy, hz;
    unpack(child.x, mx, my);
    unpack(child.y, mz, hx);
    unpack(child.z, hy, hz);
    float x = mx * ray.inverse.x - ray.scaled.x, dx = hx * fabsf(ray.inverse.x);
    float y = my * ray.inverse.y - ray.scaled.y, dy = hy * fabsf(ray.inverse.y);
    float z = mz * ray.inverse.z - ray.scaled.z, dz = hz * fabsf(ray.inverse.z);
    near = fmaxf(fmaxf(x - dx, y - dy), fmaxf(z - dz, 0.0f));
    float far = fminf(fminf(x + dx, y + dy), fminf(z + dz, limit));
    return near <= far;
}

DEVICE bool meets(const Ray& ray, const Triangle& triangle, float limit, float& t, float& u, float& v) {
    float3 normal = xyz(triangle.plane);
    t = __fdividef(-(dot(normal, ray.origin) + triangle.plane.w), dot(normal, ray.direction));
    float3 point = ray.origin + t * ray.direction;
    u = dot(xyz(triangle.u), point) + triangle.u.w;
    v = dot(xyz(triangle.v), point) + triangle.v.w;
    return u >= -EDGE && v >= -EDGE && u + v <= 1.0f + EDGE && t > MIN_T && t < limit;
}

/// Walks the nodes that a ray enters before `limit`, nearer ones first; `MEET(slot)` runs for the triangles of leaves and
/// may lower `limit`, to less than 0 in order to stop. First all lanes go down to a leaf, then all look at its triangles.
#define WALK(view, ray, limit, MEET)                                                            \
    u32 entries[64];                                                                            \
    entries[0] = DONE;                                                                          \
    int height = 1;                                                                             \
    u32 current = 0;                                                                            \
    for (;;) {                                                                                  \
        while (!(current & LEAF)) {                                                             \
            const Node& node = (view).nodes[current];                                           \
            uint4 box0 = node.child0, box1 = node.child1;                                       \
            float near0, near1;                                                                 \
            bool in0 = enters(ray, box0, limit, near0);                                         \
            bool in1 = enters(ray, box1, limit, near1);                                         \
            u32 child0 = box0.w, child1 = box1.w;                                               \
            if (in0 && in1) {                                                                   \
                bool is_swapped = near1 < near0;                                                \
                entries[height++] = is_swapped ? child0 : child1;                               \
                current = is_swapped ? child1 : child0;                                         \
            } else if (in0 || in1) {                                                            \
                current = in0 ? child0 : child1;                                                \
            } else {                                                                            \
                current = entries[--height];                                                    \
            }                                                                                   \
        }                                                                                       \
        if (current == DONE) break;                                                             \
        u32 first = current & ((1u << FIRST_BITS) - 1), end = first + (current >> FIRST_BITS & 15); \
        for (u32 slot = first; slot < end; slot++) { MEET(slot) }                               \
        if (limit < 0.0f) break;                                                                \
        current = entries[--height];                                                            \
    }

/// Nearest hit before `limit`.
static __device__ __noinline__ Hit nearest(const View& view, float3 origin, float3 direction, float limit, bool active) {
    Hit hit = {limit, 0.0f, 0.0f, MISS};
    if (active) {
        Ray ray = make_ray(origin, direction);
#define NEAREST(slot)                                       \
    float t, u, v;                                          \
    if (meets(ray, view.triangles[slot], limit, t, u, v)) { \
        limit = t;                                          \
        hit.t = t;                                          \
        hit.u = u;                                          \
        hit.v = v;                                          \
        hit.triangle = slot;                                \
    }
        WALK(view, ray, limit, NEAREST)
    }
    sync_warp();
    return hit;
}

/// Share of the light that arrives along a ray, 0 where it is not active.
static __device__ __noinline__ float transmitted(const View& view, float3 origin, float3 direction, float limit,
                                                 bool active) {
    float left = active ? 1.0f : 0.0f;
    if (active) {
        Ray ray = make_ray(origin, direction);
#define FILTERED(slot)                                                        \
    float t, u, v;                                                            \
    if (meets(ray, view.triangles[slot], limit, t, u, v)) {                   \
        left = view.has_transparency ? left * view.transparency[slot] : 0.0f; \
        if (left == 0.0f) {                                                   \
            limit = -1.0f;                                                    \
            break;                                                            \
        }                                                                     \
    }
        WALK(view, ray, limit, FILTERED)
    }
    sync_warp();
    return left;
}
