// Multi-head attention without the matrix of scores in memory, on tensor cores: bf16, heads of SIZE 32 or 64. See attention.rs.
// qkv (n, tokens, 3 d) comes without the bias of its linear layer, which is added here on reading.
//
// A block has one head of one sample. Up to KEYS rows of keys and values, or of queries and dY, lie in shared memory; a warp
// has 16 rows of the other side in registers and goes through them. Backward goes twice: once for the rows of dQ and once
// for those of dK and dV, so that nothing is shared or added between warps, and the order of every sum is fixed.

#define LOG2E 1.44269504f
#define CHUNKS (SIZE / 8)   // groups of 8 numbers in a row
#define STEPS (SIZE / 16)   // products of depth 16 over a row
#define WARPS 6             // of a block
#define THREADS (WARPS * 32)
#define FORWARD_BLOCKS 3    // of a multiprocessor
#define QUERY_BLOCKS 2
#define KEY_BLOCKS 2
#define FORWARD_PAIRS 4     // times 16 keys at a time, forward
#define QUERY_PAIRS 2       // and for dQ
#define KEY_PAIRS 1         // times 16 queries, for dK and dV

// Rows lie in shared memory with their groups of 8 turned by the row, so that eight rows meet different banks. Where a
// lane finds its part of 8 rows (as the right side of a product over their length) and of 16 (over the rows), from
// their first on, which is a multiple of 8 or 16.
struct Lanes { u32 along[STEPS / 2], across[CHUNKS / 2]; };
__device__ __forceinline__ Lanes lanes_of(int lane) {
  Lanes l;
#pragma unroll
  for (int two = 0; two < STEPS / 2; two++)
    l.along[two] = ((lane & 7) * SIZE + (((two * 4 + (lane >> 3)) ^ (lane & 7 & (CHUNKS - 1))) * 8)) * 2;
#pragma unroll
  for (int two = 0; two < CHUNKS / 2; two++)
    l.across[two] = ((lane & 15) * SIZE + (((two * 2 + (lane >> 4)) ^ (lane & (CHUNKS - 1))) * 8)) * 2;
  return l;
}
#define ROW_BYTES (SIZE * 2)
#define RIGHT (KEYS * ROW_BYTES)  // bytes from the left matrix in shared memory to the right one

// Rows first .. first + KEYS - 1 of a matrix with `stride` numbers between rows, plus bias, to shared memory; zeros
// behind row `count`.
__device__ __forceinline__ void load_rows(bf16* to, const bf16* from, size_t stride, const float* bias, int first,
                                          int count) {
  int chunk = threadIdx.x % CHUNKS;
  float shift[8];
#pragma unroll
  for (int e = 0; e < 8; e++) shift[e] = bias ? bias[chunk * 8 + e] : 0.f;
  for (int row = threadIdx.x / CHUNKS; row < KEYS; row += THREADS / CHUNKS) {
    Channels<8> v;
    if (first + row < count) {
      load_channels(v, from + (size_t)(first + row) * stride + chunk * 8);
#pragma unroll
      for (int e = 0; e < 8; e++) v.v[e] += shift[e];
    } else {
#pragma unroll
      for (int e = 0; e < 8; e++) v.v[e] = 0.f;
    }
    store_channels(to + row * SIZE + ((chunk ^ (row & (CHUNKS - 1))) * 8), v);
  }
}

// Two neighbouring numbers of row `row` as they enter a product; zeros behind row `count`.
__device__ __forceinline__ u32 load_pair(const bf16* from, size_t stride, const float* bias, int row, int column,
                                         int count) {
  if (row >= count) return 0;
  u32 raw = *reinterpret_cast<const u32*>(from + (size_t)row * stride + column);
  if (!bias) return raw;
  return pack_bf16(low_half(raw) + bias[column], high_half(raw) + bias[column + 1]);
}

// 16 rows from `first` on as left operands of STEPS products.
__device__ __forceinline__ void load_left(u32 (*a)[4], const bf16* from, size_t stride, const float* bias, int first,
                                          int count) {
  int lane = threadIdx.x & 31, group = lane >> 2, part = lane & 3;
#pragma unroll
  for (int step = 0; step < STEPS; step++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int column = step * 16 + half * 8 + part * 2;
      a[step][half * 2] = load_pair(from, stride, bias, first + group, column, count);
      a[step][half * 2 + 1] = load_pair(from, stride, bias, first + group + 8, column, count);
    }
}

// d(16, 8) += a times the transpose of the 8 rows at `rows`.
__device__ __forceinline__ void against_rows(float* d, const u32 (*a)[4], u32 rows, const Lanes& l) {
#pragma unroll
  for (int two = 0; two < STEPS / 2; two++) {
    u32 b[4];
    load_matrices(b, rows + l.along[two]);
    multiply(d, a[two * 2], b[0], b[1]);
    multiply(d, a[two * 2 + 1], b[2], b[3]);
  }
}

// sum(16, SIZE) += a(16, 16) times the 16 rows at `rows`.
__device__ __forceinline__ void times_rows(float (*sum)[4], const u32* a, u32 rows, const Lanes& l) {
#pragma unroll
  for (int two = 0; two < CHUNKS / 2; two++) {
    u32 b[4];
    load_matrices_transposed(b, rows + l.across[two]);
    multiply(sum[two * 2], a, b[0], b[1]);
    multiply(sum[two * 2 + 1], a, b[2], b[3]);
  }
}

// Two results of 16 x 8 side by side as a left operand of depth 16.
__device__ __forceinline__ void as_left(u32* a, const float* first, const float* second) {
  a[0] = pack_bf16(first[0], first[1]);
  a[1] = pack_bf16(first[2], first[3]);
  a[2] = pack_bf16(second[0], second[1]);
  a[3] = pack_bf16(second[2], second[3]);
}

// Writes (16, SIZE) to rows of a matrix, each times its factor; nothing behind row `count`.
__device__ __forceinline__ void store_rows(bf16* to, size_t stride, const float (*sum)[4], int first, int count,
                                           float factor0, float factor1) {
  int lane = threadIdx.x & 31, row = first + (lane >> 2), column = (lane & 3) * 2;
#pragma unroll
  for (int t = 0; t < CHUNKS; t++) {
    if (row < count)
      *reinterpret_cast<u32*>(to + (size_t)row * stride + t * 8 + column) =
          pack_bf16(sum[t][0] * factor0, sum[t][1] * factor0);
    if (row + 8 < count)
      *reinterpret_cast<u32*>(to + (size_t)(row + 8) * stride + t * 8 + column) =
          pack_bf16(sum[t][2] * factor1, sum[t][3] * factor1);
  }
}

// The largest score and the sum of exponentials so far, of the two rows of a lane (the sums are the lane's own part).
struct Softmax { float largest[2], sum[2]; };

// PAIRS x 16 keys (and values) from shared row `at` on: scores, probabilities, and the sums of values. Keys from `valid` on
// do not count.
template <int PAIRS>
__device__ __forceinline__ void attend(const u32 (*q)[4], u32 shared, const Lanes& l, int at, int valid, float scale,
                                       Softmax& state, float (*sum)[4]) {
  int part = threadIdx.x & 3;
  u32 keys = shared + at * ROW_BYTES;
  float s[PAIRS * 2][4] = {};
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) against_rows(s[t], q, keys + t * 8 * ROW_BYTES, l);
  if (at + PAIRS * 16 > valid) {
#pragma unroll
    for (int t = 0; t < PAIRS * 2; t++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        if (at + t * 8 + part * 2 + (e & 1) >= valid) s[t][e] = -INFINITE;
  }
  float most[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    most[half] = state.largest[half];
#pragma unroll
    for (int t = 0; t < PAIRS * 2; t++) most[half] = fmaxf(most[half], fmaxf(s[t][half * 2], s[t][half * 2 + 1]));
    most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 1));
    most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 2));
  }
  // Most of the time the largest score stays.
  if (__any_sync(0xffffffffu, most[0] > state.largest[0] || most[1] > state.largest[1])) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float factor = exp2_fast((state.largest[half] - most[half]) * scale);
      state.largest[half] = most[half];
      state.sum[half] *= factor;
#pragma unroll
      for (int t = 0; t < CHUNKS; t++) {
        sum[t][half * 2] *= factor;
        sum[t][half * 2 + 1] *= factor;
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float offset = most[half] * scale;
#pragma unroll
    for (int t = 0; t < PAIRS * 2; t++)
#pragma unroll
      for (int e = half * 2; e < half * 2 + 2; e++) {
        s[t][e] = exp2_fast(s[t][e] * scale - offset);
        state.sum[half] += s[t][e];
      }
  }
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair++) {
    u32 a[4];
    as_left(a, s[pair * 2], s[pair * 2 + 1]);
    times_rows(sum, a, keys + RIGHT + pair * 16 * ROW_BYTES, l);
  }
}

// KEYS keys and values of a head from row `first` on, for the whole block.
__device__ __forceinline__ void load_keys(bf16* keys, bf16* values, const Place& p, int first, int tokens) {
  size_t stride = 3 * p.width;
  __syncthreads();
  load_rows(keys, p.q + p.width, stride, p.b ? p.b + p.width : nullptr, first, tokens);
  load_rows(values, p.q + 2 * p.width, stride, p.b ? p.b + 2 * p.width : nullptr, first, tokens);
  __syncthreads();
}

// y (n, tokens, d), and ln sum exp of every row of scores. `scale` is 1 / sqrt(SIZE).
extern "C" __global__ void __launch_bounds__(THREADS, FORWARD_BLOCKS)
    attention_forward(const bf16* qkv, const float* bias, bf16* y, float* log_sums, int tokens, int heads, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  bf16* keys = reinterpret_cast<bf16*>(shared);
  bf16* values = keys + KEYS * SIZE;
  Place p = place_of(blockIdx.x, qkv, bias, tokens, heads);
  size_t stride = 3 * p.width;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int chunks = (tokens + KEYS - 1) / KEYS;
  float scale2 = scale * LOG2E;
  Lanes l = lanes_of(lane);
  u32 base = shared_address(shared);
  for (int round = 0; round * WARPS * 16 < tokens; round++) {
    int first = (round * WARPS + warp) * 16;
    u32 q[STEPS][4];
    float sum[CHUNKS][4] = {};
    Softmax state = {{-INFINITE, -INFINITE}, {0.f, 0.f}};
    load_left(q, p.q, stride, p.b, first, tokens);
    for (int chunk = 0; chunk < chunks; chunk++) {
      if (chunks > 1 || round == 0) {
        load_keys(keys, values, p, chunk * KEYS, tokens);
      }
      if (first >= tokens) continue;
      int valid = min(KEYS, tokens - chunk * KEYS), at = 0;
      for (; at + FORWARD_PAIRS * 16 <= valid; at += FORWARD_PAIRS * 16)
        attend<FORWARD_PAIRS>(q, base, l, at, valid, scale2, state, sum);
      for (; at < valid; at += 16) attend<1>(q, base, l, at, valid, scale2, state, sum);
    }
    if (first >= tokens) continue;
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float total = state.sum[half];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      inverse[half] = 1.f / total;
      int row = first + (lane >> 2) + half * 8;
      if ((lane & 3) == 0 && row < tokens)
        log_sums[(size_t)blockIdx.x * tokens + row] = state.largest[half] * scale + __logf(total);
    }
    store_rows(y + (size_t)p.n * tokens * p.width + p.head * SIZE, p.width, sum, first, tokens, inverse[0], inverse[1]);
  }
}
