// Rays against the hierarchy, every lane on its own. A warp's rays start or go side by side, so its lanes mostly read
// the same nodes.

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

DEVICE void unpack(u32 halves, float& low, float& high) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(low), "=f"(high)
        : "r"(halves));
}
DEVICE uint4 read(const uint4& value) { return __ldg(&value); }
DEVICE float4 read(const float4& value) { return __ldg(&value); }

/// Whether a ray meets the box of a child, before `limit` where it has one; and where.
template <bool HAS_LIMIT>
DEVICE bool enters(const Ray& ray, const uint4& child, float limit, int& near) {
    float mx, my, mz, hx, hy, hz;
    unpack(child.x, mx, my);
    unpack(child.y, mz, hx);
    unpack(child.z, hy, hz);
    float x = mx * ray.inverse.x - ray.scaled.x, dx = hx * fabsf(ray.inverse.x);
    float y = my * ray.inverse.y - ray.scaled.y, dy = hy * fabsf(ray.inverse.y);
    float z = mz * ray.inverse.z - ray.scaled.z, dz = hz * fabsf(ray.inverse.z);
    // Numbers that are not negative compare like their bits, for which there are instructions with three operands; where
    // a far end is negative, the ray misses.
    near = max(max(max(__float_as_int(x - dx), __float_as_int(y - dy)), __float_as_int(z - dz)), 0);
    int far = min(min(__float_as_int(x + dx), __float_as_int(y + dy)), __float_as_int(z + dz));
    if (HAS_LIMIT) far = min(far, __float_as_int(limit));
    return near <= far;
}

/// Whether a ray enters any of the root's boxes.
DEVICE bool enters_root(const View& view, float3 origin, float3 direction) {
    Ray ray = make_ray(origin, direction);
    bool any = false;
    for (int k = 0; k < WIDTH; k++) {
        int near;
        any = enters<false>(ray, read(view.nodes[0].children[k]), INFINITE, near) || any;
    }
    return any;
}

/// Whether a ray meets a triangle before `limit`, and where; `edge` closes the seams between triangles.
DEVICE bool meets(const Ray& ray, const Triangle& triangle, float limit, float edge, float& t, float& u, float& v) {
    float4 plane = read(triangle.plane), across = read(triangle.u), along = read(triangle.v);
    t = __fdividef(-(dot(xyz(plane), ray.origin) + plane.w), dot(xyz(plane), ray.direction));
    float3 point = ray.origin + t * ray.direction;
    u = dot(xyz(across), point) + across.w;
    v = dot(xyz(along), point) + along.w;
    return u >= -edge && v >= -edge && u + v <= 1.0f + edge && t > MIN_T && t < limit;
}

/// Walks the nodes that a ray enters before `limit`; `meet` is called with the triangles of leaves, may lower `limit`, and
/// tells whether to stop. Leaves wait until there are a few of them or nothing else to do, so that the lanes go down
/// together and look at triangles together. `behind` is what to leave out, where `LEAVES_OUT`: see behind.rs. Nodes still to
/// be visited are kept from one end of `room`, leaves from the other.
template <bool HAS_LIMIT, bool NEAREST_FIRST, bool LEAVES_OUT, typename Meet>
DEVICE void walk(const Node* nodes, const Ray& ray, const float& limit, u32 behind, Meet meet) {
    u32 room[ROOM];
    auto at = [&](int place) -> u32& { return *(u32*)((char*)room + place); };
    const int last = 4 * (ROOM - 1), farthest = 0x7fffffff;
    room[0] = DONE;
    int height = 4, leaves = last;
    u32 current = 0;
    for (;;) {
        while (!(current & LEAF) && leaves > last - 4 * LEAVES) {
            const Node& node = nodes[current];
            u32 left_out = LEAVES_OUT && current == behind >> 4 ? behind : 0;
            u32 next = DONE;
            int next_near = farthest;
#pragma unroll
            for (int k = 0; k < WIDTH; k++) {
                uint4 child = read(node.children[k]);
                int near;
                bool is_in = enters<HAS_LIMIT>(ray, child, limit, near);
                if (LEAVES_OUT) is_in = is_in && !(left_out & 1u << k);
                bool is_leaf = (int)child.w < 0;
                if (NEAREST_FIRST) {
                    bool is_next = is_in && !is_leaf && near < next_near;
                    u32 other = is_next ? next : child.w;
                    if (is_in && (is_leaf || next != DONE)) at(is_leaf ? leaves : height) = other;
                    if (is_in && !is_leaf && next != DONE) height += 4;
                    if (is_next) next = child.w;
                    if (is_next) next_near = near;
                } else {
                    if (is_in) at(is_leaf ? leaves : height) = child.w;
                    if (is_in && !is_leaf) height += 4;
                    if (is_in && !is_leaf) next = child.w;
                }
                if (is_in && is_leaf) leaves -= 4;
            }
            // The last one added is visited next.
            if (!NEAREST_FIRST) height -= 4;
            if (NEAREST_FIRST && next == DONE) height -= 4;
            if (next == DONE) next = at(height);
            current = next;
        }
        u32 slot = 0, end = 0;
        for (int place = last;; slot++) {
            if (slot == end) {
                if (place == leaves) break;
                u32 leaf = at(place);
                place -= 4;
                slot = leaf & ((1u << FIRST_BITS) - 1);
                end = slot + (leaf >> FIRST_BITS & 15);
            }
            if (meet(slot)) return;
        }
        if (current == DONE) return;
        leaves = last;
    }
}

/// Nearest hit before `limit`.
template <bool LEAVES_OUT>
DEVICE Hit nearest(const View& view, float3 origin, float3 direction, float limit, bool active, u32 behind = NONE) {
    Hit hit = {limit, 0.0f, 0.0f, MISS};
    if (active) {
        Ray ray = make_ray(origin, direction);
        const Triangle* triangles = view.triangles;
        walk<true, true, LEAVES_OUT>(view.nodes, ray, hit.t, behind, [&](u32 slot) {
            float t, u, v;
            if (meets(ray, triangles[slot], hit.t, EDGE, t, u, v)) hit = {t, u, v, slot};
            return false;
        });
    }
    sync_warp();
    return hit;
}

/// How far beside a triangle, in barycentric coordinates, and how far behind what was met, as a share of the distance, the
/// device looks closely; and the tolerance of the CPU there.
#define BESIDE 1e-4f
#define CPU_EDGE 1e-6f

/// Distance and barycentric coordinates where a camera ray meets a triangle, computed as the CPU does: the first surface
/// as in packet.rs, those behind it as in trace.rs. The distance is negative where it does not.
static __device__ __noinline__ float3 seen_at(const Shading& s, float3 origin, float3 d, bool is_first) {
    float3 edge1 = vec(s.edge1), edge2 = vec(s.edge2), from = origin - vec(s.corner), q = exact_cross(from, edge1);
    float inverse, u;
    if (is_first) {
        inverse = __fdiv_rn(-1.0f, exact_dot(d, exact_cross(edge1, edge2)));
        u = __fmul_rn(exact_dot(d, exact_cross(edge2, from)), inverse);
    } else {
        float3 p = exact_cross(d, edge2);
        inverse = __fdiv_rn(1.0f, exact_dot(edge1, p));
        u = __fmul_rn(exact_dot(from, p), inverse);
    }
    float v = __fmul_rn(exact_dot(d, q), inverse), t = __fmul_rn(exact_dot(edge2, q), inverse);
    bool is_inside = u >= -CPU_EDGE && v >= -CPU_EDGE && __fadd_rn(u, v) <= 1.0f + CPU_EDGE && t > MIN_T;
    return vec(is_inside ? t : -1.0f, u, v);
}

/// Whether the CPU comes to triangle `a` before it comes to `b`, which is as far away.
static __device__ __noinline__ bool comes_first(const View& view, u32 a, u32 b, float3 d) {
    u32 x = view.shading[a].leaf, y = view.shading[b].leaf;
    if (x == y) return a < b;
    // Up to two siblings: nodes come after their parents.
    while (x >> 1 != y >> 1) {
        u32& lower = x > y ? x : y;
        lower = view.parents[lower >> 1] >> 2;
    }
    u32 axis = view.parents[x >> 1] & 3;
    return (x < y) != ((axis == 0 ? d.x : axis == 1 ? d.y : d.z) < 0.0f);
}

/// Nearest hit of a camera ray before `limit`, every triangle looked at as the CPU does.
static __device__ __noinline__ Hit nearest_as_cpu(const View& view, float3 origin, float3 direction, float limit,
                                                  bool is_first) {
    Hit hit = {limit, 0.0f, 0.0f, MISS};
    Ray ray = make_ray(origin, direction);
    walk<true, true, false>(view.nodes, ray, hit.t, NONE, [&](u32 slot) {
        float t, u, v;
        if (meets(ray, view.triangles[slot], (1.0f + BESIDE) * hit.t, BESIDE, t, u, v)) {
            float3 seen = seen_at(view.shading[slot], origin, direction, is_first);
            bool is_nearer = seen.x < hit.t;
            if (seen.x == hit.t && hit.triangle != MISS) is_nearer = comes_first(view, slot, hit.triangle, direction);
            if (seen.x > 0.0f && is_nearer) hit = {seen.x, seen.y, seen.z, slot};
        }
        return false;
    });
    return hit;
}

/// Nearest hit of a camera ray before `limit`. Where surfaces lie in one another, rounding decides which of them is seen:
/// it has to be that of the CPU. So rays that may see one of several triangles are traced again, as the CPU does, and the
/// hits of the others are computed as there.
DEVICE Hit nearest_seen(const View& view, float3 origin, float3 direction, float limit, bool active, bool is_first) {
    Hit hit = {limit, 0.0f, 0.0f, MISS};
    if (active) {
        Ray ray = make_ray(origin, direction);
        const Triangle* triangles = view.triangles;
        // The nearest of what is beside an edge or as far away as another.
        float unsure = INFINITE;
        walk<true, true, false>(view.nodes, ray, hit.t, NONE, [&](u32 slot) {
            float t, u, v;
            if (meets(ray, triangles[slot], (1.0f + BESIDE) * hit.t, BESIDE, t, u, v)) {
                bool is_sure = t < (1.0f - BESIDE) * hit.t && fminf(fminf(u, v), 1.0f - u - v) > BESIDE;
                if (is_sure) hit = {t, u, v, slot};
                else unsure = fminf(unsure, t);
            }
            return false;
        });
        if (unsure <= (1.0f + BESIDE) * hit.t) {
            hit = nearest_as_cpu(view, origin, direction, limit, is_first);
        } else if (hit.triangle != MISS) {
            float3 seen = seen_at(view.shading[hit.triangle], origin, direction, is_first);
            if (seen.x > 0.0f) hit = {seen.x, seen.y, seen.z, hit.triangle};
        }
    }
    sync_warp();
    return hit;
}

/// Share of a ray's light that is as good as none: a step of 8 bits.
#define LEAST_LIGHT (1.0f / 256.0f)

/// Share of the light that arrives along a ray, 0 where it is not active. Boxes beyond `limit` are left out only where
/// `HAS_LIMIT`; triangles always. Unless the object is CLEAR somewhere, the first triangle ends a ray.
template <bool HAS_LIMIT, bool LEAVES_OUT, bool CLEAR>
DEVICE float transmitted(const View& view, float3 origin, float3 direction, float limit, bool active,
                         u32 behind = NONE) {
    float left = active ? 1.0f : 0.0f;
    if (active) {
        Ray ray = make_ray(origin, direction);
        const Triangle* triangles = view.triangles;
        const Pane* panes = view.panes;
        const u32* quads = view.quads;
        walk<HAS_LIMIT, false, LEAVES_OUT>(CLEAR ? view.lit_nodes : view.nodes, ray, limit, behind, [&](u32 slot) {
            float t, u, v;
            if (meets(ray, triangles[slot], limit, EDGE, t, u, v)) {
                left *= CLEAR ? passes(panes[slot], quads, u, v) : 0.0f;
                if (left < LEAST_LIGHT) left = 0.0f;
            }
            return left == 0.0f;
        });
    }
    sync_warp();
    return left;
}
