// Vectors, and how to get at what host and device share: views, their objects and the buffers of a batch. Those structs
// stand before this text, written by layout.rs.

#define WARP 32
#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void
/// Kernels that trace rays wait for memory: many warps are worth more than many registers, of which these leave 48.
#define TRACE_KERNEL extern "C" __global__ void __launch_bounds__(BLOCK, 1280 / BLOCK)
/// One of them in two versions: for objects that are CLEAR somewhere, and for the others, which are most. A block is about
/// one object, that of view `blockIdx.y`.
#define TRACE_KERNEL_OF_BOTH(name)                                                                    \
    template <bool CLEAR>                                                                             \
    DEVICE void name##_of(const Batch* b);                                                            \
    TRACE_KERNEL name(const Batch* b, int unused) {                                                   \
        if (b->views[blockIdx.y].has_transparency) name##_of<true>(b);                                \
        else name##_of<false>(b);                                                                     \
    }                                                                                                 \
    template <bool CLEAR>                                                                             \
    DEVICE void name##_of(const Batch* b)
#define PI 3.14159265f
#define INVERSE_PI 0.318309886f
#define INFINITE __int_as_float(0x7f800000)
#define NONE 0xffffffffu

/// From mod.rs: BLOCK threads of a block of the kernels that trace; WIDTH children of a node of the hierarchy; ROOM for
/// nodes and leaves that a walk comes back to; LEAVES that make it do so; SHADOW_GROUP and SPOT_GROUP lanes that share a
/// node of the floor's shadow, or a point where the spot's light is found; STEP camera rays between points of the lattice;
/// GROUP, SHARING and MOST_EXTRAS as in place.rs.

typedef unsigned int u32;
typedef unsigned char u8;
typedef unsigned long long u64;

DEVICE float3 vec(float x, float y, float z) { return make_float3(x, y, z); }
DEVICE float3 splat(float x) { return make_float3(x, x, x); }
DEVICE float3 vec(const float* p) { return make_float3(p[0], p[1], p[2]); }
DEVICE float3 xyz(float4 a) { return make_float3(a.x, a.y, a.z); }
DEVICE float4 extend(float3 a, float w) { return make_float4(a.x, a.y, a.z, w); }
DEVICE float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
DEVICE float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
DEVICE float3 operator-(float3 a) { return make_float3(-a.x, -a.y, -a.z); }
DEVICE float3 operator*(float3 a, float3 b) { return make_float3(a.x * b.x, a.y * b.y, a.z * b.z); }
DEVICE float3 operator*(float a, float3 b) { return make_float3(a * b.x, a * b.y, a * b.z); }
DEVICE float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
DEVICE float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
DEVICE float2 operator*(float a, float2 b) { return make_float2(a * b.x, a * b.y); }
DEVICE float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE float3 cross(float3 a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
DEVICE float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
DEVICE float mix(float a, float b, float t) { return a + (b - a) * t; }
DEVICE float3 mix(float3 a, float3 b, float t) { return a + t * (b - a); }
/// Quotients and roots to about 22 bits, as an image needs them.
DEVICE float quotient(float a, float b) { return __fdividef(a, b); }
DEVICE float root(float x) {
    float result;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// `a` over its length, or `otherwise` where it has none.
DEVICE float3 normalized(float3 a, float3 otherwise) {
    float inverse = rsqrtf(dot(a, a));
    return inverse > 0.0f && inverse < INFINITE ? inverse * a : otherwise;
}
/// Two unit vectors that complete the unit vector `n` to a right-handed frame (Duff et al., 2017).
DEVICE void frame(float3 n, float3& s, float3& t) {
    float sign = copysignf(1.0f, n.z);
    float a = -1.0f / (sign + n.z);
    float b = n.x * n.y * a;
    s = vec(1.0f + sign * n.x * n.x * a, sign * b, -sign * n.x);
    t = vec(b, sign + n.y * n.y * a, -n.y);
}

/// As the CPU computes them, to the last bit: every product and every sum is rounded, none is fused.
DEVICE float exact_dot(float3 a, float3 b) {
    return __fadd_rn(__fadd_rn(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y)), __fmul_rn(a.z, b.z));
}
DEVICE float3 exact_cross(float3 a, float3 b) {
    return vec(__fsub_rn(__fmul_rn(a.y, b.z), __fmul_rn(b.y, a.z)), __fsub_rn(__fmul_rn(a.z, b.x), __fmul_rn(b.z, a.x)),
               __fsub_rn(__fmul_rn(a.x, b.y), __fmul_rn(b.x, a.y)));
}
DEVICE float3 exact_turn_to_object(const View& v, float3 d) {
    const float* r = v.object_from_world;
    return vec(exact_dot(vec(r), d), exact_dot(vec(r + 3), d), exact_dot(vec(r + 6), d));
}

DEVICE const Both* sun_set(const Batch* b, int view) { return b->directions + (u64)view * b->direction_count; }
DEVICE const Both* lamp_set(const Batch* b, int view) { return sun_set(b, view) + b->sun_count; }
DEVICE const Both* sphere_set(const Batch* b, int view) { return lamp_set(b, view) + b->lamp_count; }
DEVICE const Both* floor_sun_set(const Batch* b, int view) { return sphere_set(b, view) + b->sphere_count; }
DEVICE const Both* hemisphere_set(const Batch* b, int view) { return floor_sun_set(b, view) + b->floor_sun_count; }
DEVICE const Both* floor_lamp_set(const Batch* b, int view) {
    return hemisphere_set(b, view) + b->hemisphere_count;
}

DEVICE float3 turn_to_object(const View& v, float3 d) {
    const float* r = v.object_from_world;
    return vec(r[0] * d.x + r[1] * d.y + r[2] * d.z, r[3] * d.x + r[4] * d.y + r[5] * d.z,
               r[6] * d.x + r[7] * d.y + r[8] * d.z);
}
/// A unit normal of the object in the world: by the inverse transpose of what moves points.
DEVICE float3 normal_to_world(const View& v, float3 n) {
    const float* r = v.object_from_world;
    float3 turned = vec(r[0] * n.x + r[3] * n.y + r[6] * n.z, r[1] * n.x + r[4] * n.y + r[7] * n.z,
                        r[2] * n.x + r[5] * n.y + r[8] * n.z);
    return v.is_rigid ? turned : normalized(turned, n);
}
DEVICE float3 turn_to_world(const View& v, float3 d) {
    const float* r = v.world_from_object;
    return vec(r[0] * d.x + r[1] * d.y + r[2] * d.z, r[3] * d.x + r[4] * d.y + r[5] * d.z,
               r[6] * d.x + r[7] * d.y + r[8] * d.z);
}
DEVICE float3 to_object(const View& v, float3 p) { return turn_to_object(v, p) - vec(v.translation); }
DEVICE float3 to_world(const View& v, float3 p) { return turn_to_world(v, p + vec(v.translation)); }

/// Warps work as one: every lane is there at every call of these.
#define FULL 0xffffffffu
DEVICE u32 ballot(bool value) { return __ballot_sync(FULL, value); }
DEVICE int lane_index() { return threadIdx.x & 31; }
DEVICE void sync_warp() { __syncwarp(); }
/// Sum over groups of `group` neighbouring lanes, the same in all of them.
DEVICE float group_sum(float value, int group) {
    for (int step = 1; step < group; step *= 2) value += __shfl_xor_sync(FULL, value, step);
    return value;
}
/// Sum of the values of the threads before this one, and of all of them; for blocks of whole warps.
DEVICE int block_scan(int value, int& total) {
    __shared__ int sums[33];
    int lane = lane_index(), warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    int sum = value;
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(FULL, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        int before = 0;
        for (int i = 0; i < warps; i++) {
            int here = sums[i];
            sums[i] = before;
            before += here;
        }
        sums[32] = before;
    }
    __syncthreads();
    int result = sums[warp] + sum - value;
    total = sums[32];
    __syncthreads();
    return result;
}
DEVICE void count_rays(const Batch* b, u32 rays) {
    u32 sum = __reduce_add_sync(FULL, rays);
    if (lane_index() == 0 && sum != 0) atomicAdd(b->rays, (u64)sum);
}
