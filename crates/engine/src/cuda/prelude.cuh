// What all kernels share: number types without CUDA's headers (NVRTC alone compiles this), vectors of eight channels,
// reductions of fixed order, tensor-core products. `T` is the storage type of activations, bf16, f16 or float, set
// when compiling by the macro STORAGE, and `G` that of their gradients: bf16 for f16.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;

// A thread's share of `count` things, whatever the grid.
#define EACH(i, count) \
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)(count); i += (size_t)gridDim.x * blockDim.x)

struct bf16 { u16 bits; };
struct f16 { u16 bits; };

template <typename S> struct Gradient { typedef S type; };
template <> struct Gradient<f16> { typedef bf16 type; };

#ifdef STORAGE
typedef STORAGE T;
typedef Gradient<T>::type G;
#endif

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float to_float(f16 x) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
}

template <typename S> __device__ __forceinline__ S from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) {
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}
template <> __device__ __forceinline__ f16 from_float<f16>(float x) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}

// Two floats as a pair of bf16: `low` in the lower half.
__device__ __forceinline__ u32 pack_bf16(float low, float high) {
  u32 result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
__device__ __forceinline__ float low_half(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_half(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
// The same of f16.
__device__ __forceinline__ u32 pack_f16(float low, float high) {
  u32 result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
__device__ __forceinline__ void unpack_f16(u32 pair, float& low, float& high) {
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
      : "=f"(low), "=f"(high)
      : "r"(pair));
}

// V neighbouring channels as floats. V is 8, 4 (addresses must be multiples of so many elements) or 1.
template <int V> struct Channels { float v[V]; };

__device__ __forceinline__ void load_channels(Channels<1>& c, const bf16* p) { c.v[0] = to_float(*p); }
__device__ __forceinline__ void load_channels(Channels<1>& c, const float* p) { c.v[0] = *p; }
__device__ __forceinline__ void load_channels(Channels<8>& c, const bf16* p) {
  uint4 raw = *reinterpret_cast<const uint4*>(p);
  c.v[0] = low_half(raw.x); c.v[1] = high_half(raw.x);
  c.v[2] = low_half(raw.y); c.v[3] = high_half(raw.y);
  c.v[4] = low_half(raw.z); c.v[5] = high_half(raw.z);
  c.v[6] = low_half(raw.w); c.v[7] = high_half(raw.w);
}
__device__ __forceinline__ void load_channels(Channels<8>& c, const float* p) {
  float4 a = reinterpret_cast<const float4*>(p)[0], b = reinterpret_cast<const float4*>(p)[1];
  c.v[0] = a.x; c.v[1] = a.y; c.v[2] = a.z; c.v[3] = a.w;
  c.v[4] = b.x; c.v[5] = b.y; c.v[6] = b.z; c.v[7] = b.w;
}
__device__ __forceinline__ void load_channels(Channels<1>& c, const f16* p) { c.v[0] = to_float(*p); }
__device__ __forceinline__ void load_channels(Channels<8>& c, const f16* p) {
  uint4 raw = *reinterpret_cast<const uint4*>(p);
  unpack_f16(raw.x, c.v[0], c.v[1]);
  unpack_f16(raw.y, c.v[2], c.v[3]);
  unpack_f16(raw.z, c.v[4], c.v[5]);
  unpack_f16(raw.w, c.v[6], c.v[7]);
}
__device__ __forceinline__ void load_channels(Channels<4>& c, const bf16* p) {
  uint2 raw = *reinterpret_cast<const uint2*>(p);
  c.v[0] = low_half(raw.x); c.v[1] = high_half(raw.x);
  c.v[2] = low_half(raw.y); c.v[3] = high_half(raw.y);
}
__device__ __forceinline__ void load_channels(Channels<4>& c, const float* p) {
  float4 a = *reinterpret_cast<const float4*>(p);
  c.v[0] = a.x; c.v[1] = a.y; c.v[2] = a.z; c.v[3] = a.w;
}
__device__ __forceinline__ void store_channels(bf16* p, const Channels<4>& c) {
  uint2 raw;
  raw.x = pack_bf16(c.v[0], c.v[1]); raw.y = pack_bf16(c.v[2], c.v[3]);
  *reinterpret_cast<uint2*>(p) = raw;
}
__device__ __forceinline__ void store_channels(float* p, const Channels<4>& c) {
  *reinterpret_cast<float4*>(p) = make_float4(c.v[0], c.v[1], c.v[2], c.v[3]);
}
__device__ __forceinline__ void store_channels(bf16* p, const Channels<1>& c) { *p = from_float<bf16>(c.v[0]); }
__device__ __forceinline__ void store_channels(float* p, const Channels<1>& c) { *p = c.v[0]; }
__device__ __forceinline__ void store_channels(bf16* p, const Channels<8>& c) {
  uint4 raw;
  raw.x = pack_bf16(c.v[0], c.v[1]); raw.y = pack_bf16(c.v[2], c.v[3]);
  raw.z = pack_bf16(c.v[4], c.v[5]); raw.w = pack_bf16(c.v[6], c.v[7]);
  *reinterpret_cast<uint4*>(p) = raw;
}
__device__ __forceinline__ void store_channels(float* p, const Channels<8>& c) {
  reinterpret_cast<float4*>(p)[0] = make_float4(c.v[0], c.v[1], c.v[2], c.v[3]);
  reinterpret_cast<float4*>(p)[1] = make_float4(c.v[4], c.v[5], c.v[6], c.v[7]);
}
__device__ __forceinline__ void store_channels(f16* p, const Channels<1>& c) { *p = from_float<f16>(c.v[0]); }
__device__ __forceinline__ void store_channels(f16* p, const Channels<8>& c) {
  uint4 raw;
  raw.x = pack_f16(c.v[0], c.v[1]); raw.y = pack_f16(c.v[2], c.v[3]);
  raw.z = pack_f16(c.v[4], c.v[5]); raw.w = pack_f16(c.v[6], c.v[7]);
  *reinterpret_cast<uint4*>(p) = raw;
}

// Sum over the 32 lanes of a warp, in every lane; the order is always the same.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

// Sum over all threads of a block (a multiple of 32), in every thread. `scratch`: 33 doubles of shared memory.
__device__ __forceinline__ double block_sum(double x, double* scratch) {
  x = warp_sum(x);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  __syncthreads();
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  if (warp == 0) {
    double y = warp_sum(lane < warps ? scratch[lane] : 0.0);
    if (lane == 0) scratch[32] = y;
  }
  __syncthreads();
  return scratch[32];
}

// For blocks of 256 threads, `columns` groups of V columns x `lines` rows: adds `sum` up over the lines, in order, and writes
// the block's row of partial (blocks, C).
template <int V>
__device__ __forceinline__ void write_column_sums(float* sum, float* partial, int C, int column, int line, int lines,
                                                  int columns, bool inside) {
  __shared__ float sums[256 * V];
#pragma unroll
  for (int e = 0; e < V; e++) sums[threadIdx.x * V + e] = sum[e];
  __syncthreads();
  if (line > 0 || !inside) return;
  for (int other = 1; other < lines; other++)
#pragma unroll
    for (int e = 0; e < V; e++) sum[e] += sums[(other * columns + threadIdx.x) * V + e];
#pragma unroll
  for (int e = 0; e < V; e++) partial[(size_t)blockIdx.x * C + column + e] = sum[e];
}

// Tensor cores. d(16 x 8) += a(16 x 16) b(16 x 8), of bf16: a lane has rows lane / 4 and lane / 4 + 8 of a and d, and the
// column lane / 4 of b, two neighbouring numbers at a time from 2 (lane % 4) on.
__device__ __forceinline__ void multiply(float* d, const u32* a, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same of f16.
__device__ __forceinline__ void multiply_f16(float* d, const u32* a, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  u32 address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }" : "=r"(address) : "l"(pointer));
  return address;
}
// Four 8 x 8 matrices of bf16 in shared memory; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void load_matrices_transposed(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
// Copies to shared memory that go on beside other work: 16 bytes each, in groups; waits until all groups but LEFT are there.
__device__ __forceinline__ void copy_async(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;"); }
template <int LEFT> __device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
}
// Products of two pairs of bf16.
__device__ __forceinline__ u32 multiply_pairs(u32 a, u32 b) {
  u32 result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(0x80008000u));
  return result;
}
// 2^x, of limited precision.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
