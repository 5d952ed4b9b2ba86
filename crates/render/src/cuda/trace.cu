// Rays against the hierarchy. A warp's rays start or go side by side, so they walk the tree together: a node is
// visited if any of them enters it, and read once for all.

#ifndef COOPERATIVE
#define COOPERATIVE 1
#endif
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

/// The same with every lane on its own.
#define WALK_ALONE(view, ray, limit, active, LEAF_CODE)                                                        \
    if (active && enters(ray, (view).nodes[0], limit)) {                                                  \
        int signs = (ray.direction.x < 0.0f) | (ray.direction.y < 0.0f) << 1 | (ray.direction.z < 0.0f) << 2; \
        u32 entries[64];                                                                                  \
        int height = 0;                                                                                   \
        u32 first = __float_as_uint((view).nodes[0].low.w), kind = __float_as_uint((view).nodes[0].high.w); \
        for (;;) {                                                                                        \
            u32 next = NONE;                                                                              \
            if ((kind & 0xffff) == 0) {                                                                   \
                u32 near = first + (signs >> (kind >> 16) & 1), far = near ^ 1;                           \
                bool in_near = enters(ray, (view).nodes[near], limit);                                    \
                bool in_far = enters(ray, (view).nodes[far], limit);                                      \
                if (in_near && in_far) entries[height++] = far;                                           \
                next = in_near ? near : in_far ? far : NONE;                                              \
            } else {                                                                                      \
                for (u32 slot = first; slot < first + kind; slot++) { LEAF_CODE(slot) }                   \
                if (limit <= 0.0f) break;                                                                 \
            }                                                                                             \
            if (next == NONE) {                                                                           \
                if (height == 0) break;                                                                   \
                next = entries[--height];                                                                 \
            }                                                                                             \
            first = __float_as_uint((view).nodes[next].low.w);                                            \
            kind = __float_as_uint((view).nodes[next].high.w);                                            \
        }                                                                                                 \
    }                                                                                                     \
    sync_warp();
#ifndef ALONE
#define ALONE 0
#endif
#if ALONE
#define WALK_LOOSE WALK_ALONE
#else
#define WALK_LOOSE WALK
#endif

/// The bundle of a warp's rays: all lie within `half` of the ray from `origin` along `direction`.
struct Bundle {
    float3 origin, inverse, half;
};

/// Numbers whose order is that of the floats.
DEVICE u32 to_ordered(float value) {
    u32 bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
DEVICE float from_ordered(u32 value) { return __uint_as_float(value & 0x80000000u ? value & 0x7fffffffu : ~value); }

/// Middle and half extent of the values of the active lanes.
DEVICE void extent(float value, bool active, float& middle, float& half) {
    u32 ordered = to_ordered(value);
    float low = from_ordered(lowest(active ? ordered : NONE)), high = from_ordered(highest(active ? ordered : 0));
    middle = 0.5f * (low + high);
    half = 0.5f * (high - low);
}
DEVICE void extent(float3 value, bool active, float3& middle, float3& half) {
    extent(value.x, active, middle.x, half.x);
    extent(value.y, active, middle.y, half.y);
    extent(value.z, active, middle.z, half.z);
}

#define GROUPS (WARP < 8 ? 1 : WARP / 8)
#define PARTS (WARP < 8 ? 8 / WARP : 1)
/// Enough for hierarchies of 18 levels: up to TALL entries and what four nodes add to them, then seven a level.
#define STACK 256
#define TALL 96
/// Extent of a bundle above which its rays are not alike enough.
#ifndef WIDEST
#define WIDEST 0.1f
#endif
/// What the rays of a warp share.
#define PARALLEL 0
#define FAN 1
#define LOOSE 2

__shared__ u32 stacks[(128 / WARP) * STACK];

/// Walks the wide hierarchy with a bundle: each lane tests one child of one of four nodes against the whole bundle, then
/// all lanes test their rays against each triangle found.
#define WALK_BUNDLE(view, bundle, limit, LEAF_CODE)                                                              \
    u32* stack = stacks + threadIdx.x / WARP * STACK;                                                     \
    int height = 1;                                                                                       \
    stack[0] = 0;                                                                                         \
    float farthest = from_ordered(highest(to_ordered(limit)));                                            \
    while (height > 0) {                                                                                  \
        int taken = height > TALL ? 1 : min(height, GROUPS), group = lane_index() / 8;                                        \
        height -= taken;                                                                                  \
        sync_warp();                                                                                      \
        u32 node = group < taken ? stack[height + group] : NONE;                                          \
        sync_warp();                                                                                      \
        bool any = false;                                                                                 \
        for (int part = 0; part < PARTS; part++) {                                                        \
            u32 found = 0;                                                                                \
            bool is_hit = false;                                                                          \
            if (node != NONE) {                                                                           \
                const Child& child = (view).children[8 * node + lane_index() % 8 + part];                 \
                float4 low = child.low;                                                                   \
                found = __float_as_uint(low.w);                                                           \
                is_hit = enters(bundle, low, child.high, farthest);                                       \
            }                                                                                             \
            bool is_inner = is_hit && !(found & LEAF);                                                    \
            u32 inner = ballot(is_inner);                                                                 \
            if (is_inner) stack[height + __popc(inner & ((1u << lane_index()) - 1))] = found;             \
            height += __popc(inner);                                                                      \
            u32 leaves = ballot(is_hit && found & LEAF);                                                  \
            any = any || leaves != 0;                                                                     \
            while (leaves != 0) {                                                                         \
                u32 slot = (u32)from_lane((int)found, __ffs(leaves) - 1) & ~LEAF;                         \
                leaves &= leaves - 1;                                                                     \
                LEAF_CODE(slot)                                                                           \
            }                                                                                             \
        }                                                                                                 \
        if (any) {                                                                                        \
            farthest = from_ordered(highest(to_ordered(limit)));                                          \
            if (farthest <= 0.0f) break;                                                                  \
        }                                                                                                 \
    }                                                                                                     \
    sync_warp();

DEVICE bool enters(const Bundle& bundle, float4 low, float4 high, float limit) {
    float ax = (low.x - bundle.half.x - bundle.origin.x) * bundle.inverse.x;
    float bx = (high.x + bundle.half.x - bundle.origin.x) * bundle.inverse.x;
    float ay = (low.y - bundle.half.y - bundle.origin.y) * bundle.inverse.y;
    float by = (high.y + bundle.half.y - bundle.origin.y) * bundle.inverse.y;
    float az = (low.z - bundle.half.z - bundle.origin.z) * bundle.inverse.z;
    float bz = (high.z + bundle.half.z - bundle.origin.z) * bundle.inverse.z;
    float near = fmaxf(fmaxf(fminf(ax, bx), fminf(ay, by)), fmaxf(fminf(az, bz), 0.0f));
    float far = fminf(fminf(fmaxf(ax, bx), fmaxf(ay, by)), fminf(fmaxf(az, bz), limit));
    return near <= far;
}

/// Makes the bundle of the active rays, which share what `kind` says; false where they lie too far apart.
DEVICE bool make_bundle(const Ray& ray, int kind, float limit, bool active, Bundle& bundle) {
    if (kind == LOOSE || !COOPERATIVE) return false;
    float3 direction = ray.direction;
    bundle.origin = ray.origin;
    if (kind == PARALLEL) {
        extent(ray.origin, active, bundle.origin, bundle.half);
        bundle.inverse = ray.inverse;
    } else {
        extent(ray.direction, active, direction, bundle.half);
        bundle.half = from_ordered(highest(active ? to_ordered(limit) : 0)) * bundle.half;
        bundle.inverse = vec(reciprocal(direction.x), reciprocal(direction.y), reciprocal(direction.z));
    }
    float widest = fmaxf(bundle.half.x, fmaxf(bundle.half.y, bundle.half.z));
    bundle.half = bundle.half + splat(1e-6f);  // for rounding
    return widest <= WIDEST;
}

/// Nearest hit before `limit`; to be called by whole warps, whose rays share what `kind` says.
static __device__ __noinline__ Hit nearest(const View& view, float3 origin, float3 direction, float limit, bool active,
                                           int kind) {
    Hit hit = {limit, 0.0f, 0.0f, MISS};
    if (ballot(active) == 0) return hit;
    Ray ray = make_ray(origin, direction);
    Bundle bundle;
    bool is_narrow = view.children != 0 && make_bundle(ray, kind, limit, active, bundle);
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
    if (is_narrow) {
        WALK_BUNDLE(view, bundle, limit, NEAREST)
    } else {
        WALK_LOOSE(view, ray, limit, active, NEAREST)
    }
    return hit;
}

/// Share of the light that arrives along a ray, 0 where it is not active; to be called by whole warps, whose rays share
/// what `kind` says.
static __device__ __noinline__ float transmitted(const View& view, float3 origin, float3 direction, float limit,
                                                 bool active, int kind) {
    float left = active ? 1.0f : 0.0f;
    if (ballot(active) == 0) return left;
    Ray ray = make_ray(origin, direction);
    Bundle bundle;
    bool is_narrow = view.children != 0 && make_bundle(ray, kind, limit, active, bundle);
    limit = active ? limit : -1.0f;
#define FILTERED(slot)                                      \
    float t, u, v;                                          \
    if (meets(ray, view.triangles[slot], limit, t, u, v)) { \
        left = view.has_transparency ? left * view.transparency[slot] : 0.0f; \
        if (left == 0.0f) limit = -1.0f;                    \
    }
    if (is_narrow) {
        WALK_BUNDLE(view, bundle, limit, FILTERED)
    } else {
        WALK_LOOSE(view, ray, limit, active, FILTERED)
    }
    return left;
}
