// Rays against the hierarchy. A warp's rays start or go side by side, so they walk the tree together: a node is
// visited if any of them enters it, and read once for all.

#define MISS NONE
#define MIN_T 1e-6f
#define EDGE 2e-6f
#define TINY 1e-12f

struct Hit {
    float t, u, v;
    u32 triangle;
};

struct Ray {
    float3 origin, direction, inverse, scaled;
};

DEVICE float reciprocal(float d) { return 1.0f / (fabsf(d) < TINY ? copysignf(TINY, d) : d); }

DEVICE Ray make_ray(float3 origin, float3 direction) {
    Ray ray;
    ray.origin = origin;
    ray.direction = direction;
    ray.inverse = vec(reciprocal(direction.x), reciprocal(direction.y), reciprocal(direction.z));
    ray.scaled = origin * ray.inverse;
    return ray;
}

DEVICE bool enters(const Ray& ray, const Node& node, float limit) {
    float ax = node.low.x * ray.inverse.x - ray.scaled.x, bx = node.high.x * ray.inverse.x - ray.scaled.x;
    float ay = node.low.y * ray.inverse.y - ray.scaled.y, by = node.high.y * ray.inverse.y - ray.scaled.y;
    float az = node.low.z * ray.inverse.z - ray.scaled.z, bz = node.high.z * ray.inverse.z - ray.scaled.z;
    float near = fmaxf(fmaxf(fminf(ax, bx), fminf(ay, by)), fmaxf(fminf(az, bz), 0.0f));
    float far = fminf(fminf(fmaxf(ax, bx), fmaxf(ay, by)), fminf(fmaxf(az, bz), limit));
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

/// The nodes still to be visited by a warp. The hierarchy is at most 60 deep.
#ifdef EMULATED
struct Stack {
    u32 entries[64];
    int height = 0;
    void push(u32 value) { entries[height++] = value; }
    u32 pop() { return entries[--height]; }
};
#else
/// Lane `i` keeps entries `i` and `32 + i`.
struct Stack {
    u32 low = 0, high = 0;
    int height = 0;
    __device__ __forceinline__ void push(u32 value) {
        if (height < 32) {
            if (lane_index() == height) low = value;
        } else if (lane_index() == height - 32) {
            high = value;
        }
        height++;
    }
    __device__ __forceinline__ u32 pop() {
        height--;
        return height < 32 ? __shfl_sync(FULL, low, height) : __shfl_sync(FULL, high, height - 32);
    }
};
#endif

/// Walks the tree; `LEAF(triangle index)` runs for the triangles of entered leaves, and `limit` may shrink in it.
#define WALK(view, ray, limit, active, LEAF)                                                              \
    u32 awake = ballot(active);                                                                           \
    if (awake != 0 && ballot(enters(ray, (view).nodes[0], limit)) != 0) {                                 \
        int lead = __ffs(awake) - 1;                                                                      \
        int signs = (ray.direction.x < 0.0f) | (ray.direction.y < 0.0f) << 1 | (ray.direction.z < 0.0f) << 2; \
        signs = from_lane(signs, lead);                                                                   \
        Stack stack;                                                                                      \
        u32 first = __float_as_uint((view).nodes[0].low.w), kind = __float_as_uint((view).nodes[0].high.w); \
        for (;;) {                                                                                        \
            u32 next = NONE;                                                                              \
            if ((kind & 0xffff) == 0) {                                                                   \
                u32 near = first + (signs >> (kind >> 16) & 1), far = near ^ 1;                           \
                bool in_near = ballot(enters(ray, (view).nodes[near], limit)) != 0;                       \
                bool in_far = ballot(enters(ray, (view).nodes[far], limit)) != 0;                         \
                if (in_near && in_far) stack.push(far);                                                   \
                next = in_near ? near : in_far ? far : NONE;                                              \
            } else {                                                                                      \
                for (u32 slot = first; slot < first + kind; slot++) { LEAF(slot) }                        \
                if (ballot(limit > 0.0f) == 0) break;                                                     \
            }                                                                                             \
            if (next == NONE) {                                                                           \
                if (stack.height == 0) break;                                                             \
                next = stack.pop();                                                                       \
            }                                                                                             \
            first = __float_as_uint((view).nodes[next].low.w);                                            \
            kind = __float_as_uint((view).nodes[next].high.w);                                            \
        }                                                                                                 \
    }

/// Nearest hit before `limit`; to be called by whole warps.
static __device__ __noinline__ Hit nearest(const View& view, float3 origin, float3 direction, float limit,
                                           bool active) {
    Hit hit = {limit, 0.0f, 0.0f, MISS};
    Ray ray = make_ray(origin, direction);
    limit = active ? limit : -1.0f;
#define NEAREST(slot)                                   \
    float t, u, v;                                      \
    if (meets(ray, view.triangles[slot], limit, t, u, v)) { \
        limit = t;                                      \
        hit.t = t;                                      \
        hit.u = u;                                      \
        hit.v = v;                                      \
        hit.triangle = slot;                            \
    }
    WALK(view, ray, limit, active, NEAREST)
    return hit;
}

/// Share of the light that arrives along a ray, 0 where it is not active; to be called by whole warps.
static __device__ __noinline__ float transmitted(const View& view, float3 origin, float3 direction, float limit,
                                                 bool active) {
    float left = active ? 1.0f : 0.0f;
    Ray ray = make_ray(origin, direction);
    limit = active ? limit : -1.0f;
    if (view.has_transparency) {
#define FILTERED(slot)                                      \
    float t, u, v;                                          \
    if (meets(ray, view.triangles[slot], limit, t, u, v)) { \
        left *= view.transparency[slot];                    \
        if (left == 0.0f) limit = -1.0f;                    \
    }
        WALK(view, ray, limit, active, FILTERED)
    } else {
#define BLOCKED(slot)                                       \
    float t, u, v;                                          \
    if (meets(ray, view.triangles[slot], limit, t, u, v)) { \
        left = 0.0f;                                        \
        limit = -1.0f;                                      \
    }
        WALK(view, ray, limit, active, BLOCKED)
    }
    return left;
}
