// Vectors, and what host and device share: views, their objects and the buffers of a batch. The structs mirror those
// of layout.rs field by field.

#ifndef WARP
#define WARP 32
#endif
#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void
/// Kernels that trace rays wait for memory: many warps are worth more than many registers, of which these leave 48.
#ifndef EMULATED
#define TRACE_KERNEL extern "C" __global__ void __launch_bounds__(BLOCK, 1280 / BLOCK)
#else
#define TRACE_KERNEL KERNEL
#endif
#define PI 3.14159265f
#define INVERSE_PI 0.318309886f
#define INFINITE __int_as_float(0x7f800000)
#define NONE 0xffffffffu

/// From mod.rs: BLOCK threads of a block of the kernels that trace; WIDTH children of a node of the hierarchy; ROOM for
/// nodes and leaves that a walk comes back to; LEAVES that make it do so; SHADOW_GROUP and SPOT_GROUP lanes that share a
/// node of the floor's shadow, or a point where the spot's light is found.

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
DEVICE float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
DEVICE float mix(float a, float b, float t) { return a + (b - a) * t; }
DEVICE float3 mix(float3 a, float3 b, float t) { return a + t * (b - a); }
/// Quotients and roots to about 22 bits, as a picture needs them.
DEVICE float quotient(float a, float b) { return __fdividef(a, b); }
#ifndef EMULATED
DEVICE float root(float x) {
    float result;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
#endif
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

/// The boxes of a node's children: half-precision middle and half extent (x, y, z of each), and the child's reference:
/// see hierarchy.rs.
struct Node {
    uint4 children[WIDTH];
};
/// A triangle as three planes: distance from it, and its barycentric coordinates.
struct Triangle {
    float4 plane, u, v;
};
struct Shading {
    float corner[3], edge1[3], edge2[3], face[3], normals[9], uvs[6];
    u32 material, behind[2];  // what rays from the front and from the back leave out: see behind.rs
};
struct Material {
    float base_colour[3], roughness, specular, alpha;
    u32 texture_start, texture_width, texture_height;
};
/// A direction or a point, in the world and in the object frame.
struct Both {
    float4 world, object;
};
/// A hit of a camera ray.
struct Sample {
    float4 position;  // and its share of what the ray sees
    float4 normal;    // and the material (bits)
    float4 face;      // and what rays that leave it leave out (bits)
    float4 albedo;
};
struct View {
    const Node* nodes;
    const Triangle* triangles;
    const float* transparency;
    const Shading* shading;
    const Material* materials;
    const uchar4* texels;
    const float* cut;  // boxes that together contain the object: lower and upper corners
    u64 sample_start, cell_start;
    float rotation[9];  // object from world, by rows
    float translation[3], floor_albedo[3], spot_position[3], spot_axis[3], spot_intensity[3], centre[3];
    float irradiance_origin[2], irradiance_side;
    int cut_count, has_transparency, is_empty;
    int x0, y0, width, height;  // the region around the object: first pixel, size in camera rays
    int columns, rows, layers, picture;
    int unused;
};
/// What the device finds out about a view before it is shaded.
struct Derived {
    float shadow_origin[2], shadow_side;
    int has_shadow, node_count, point_count;
    int unused[2];
};
struct Batch {
    const View* views;
    Derived* derived;
    Both* directions;
    const float4* sphere_sets;  // world directions: sun, gather, floor sun, hemisphere
    const float2* lamp_sets;    // offsets on the lamp: lamp, floor lamp
    const float2* pool;         // cos and sin of 32 angles
    const float4* lobe;         // radius, cos, sin of the lobe's samples
    const float* sun_table;
    const float2* cone_table;
    const float* srgb_table;
    const float* filmic_table;
    const float* filter;
    u8* touched;
    u32* nodes;
    float4* irradiance;
    float* shadow;
    float4* open_floor;
    float4* coarse_floor;
    float4* floor_lattice;
    u32* own;
    Sample* samples;
    u32* cell_point;
    u32* cell_extras;
    u32* point_sample;
    float4* shades;  // two a point: diffuse, specular
    float4* radiance;
    u8* pictures;
    u64* rays;
    int view_count, size, supersampling, shading_step, floor_step;
    int sun_count, lamp_count, sphere_count, lobe_count;
    int floor_sun_count, hemisphere_count, floor_lamp_count, direction_count;
    int irradiance_cells, shadow_cells, node_capacity, floor_nodes;
    float irradiance_tolerance, shadow_tolerance, floor_sun_total;
};

DEVICE const Both* sun_set(const Batch* b, int view) { return b->directions + (u64)view * b->direction_count; }
DEVICE const Both* lamp_set(const Batch* b, int view) { return sun_set(b, view) + b->sun_count; }
DEVICE const Both* sphere_set(const Batch* b, int view) { return lamp_set(b, view) + b->lamp_count; }
DEVICE const Both* floor_sun_set(const Batch* b, int view) { return sphere_set(b, view) + b->sphere_count; }
DEVICE const Both* hemisphere_set(const Batch* b, int view) { return floor_sun_set(b, view) + b->floor_sun_count; }
DEVICE const Both* floor_lamp_set(const Batch* b, int view) {
    return hemisphere_set(b, view) + b->hemisphere_count;
}

DEVICE float3 turn_to_object(const View& v, float3 d) {
    const float* r = v.rotation;
    return vec(r[0] * d.x + r[1] * d.y + r[2] * d.z, r[3] * d.x + r[4] * d.y + r[5] * d.z,
               r[6] * d.x + r[7] * d.y + r[8] * d.z);
}
DEVICE float3 turn_to_world(const View& v, float3 d) {
    const float* r = v.rotation;
    return vec(r[0] * d.x + r[3] * d.y + r[6] * d.z, r[1] * d.x + r[4] * d.y + r[7] * d.z,
               r[2] * d.x + r[5] * d.y + r[8] * d.z);
}
DEVICE float3 to_object(const View& v, float3 p) { return turn_to_object(v, p) - vec(v.translation); }
DEVICE float3 to_world(const View& v, float3 p) { return turn_to_world(v, p + vec(v.translation)); }

/// Warps work as one: every lane is there at every call of these.
#ifndef EMULATED
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
#endif
