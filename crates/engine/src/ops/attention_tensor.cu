// Multi-head attention without the matrix of scores in memory, on tensor cores: bf16, heads of SIZE 32 or 64. See attention.rs.
// qkv (n, tokens, 3 d) comes without the bias of its linear layer, which is added here on reading.
//
// A block has one head of one sample. Up to KEYS rows of keys and values, or of queries and dY, lie in shared memory; a warp
// has 16 rows of the other side in registers and goes through them. Backward goes twice: once for the rows of dQ and once
// for those of dK and dV, so that nothing is shared or added between warps, and the order of every sum is fixed.

#define LOG2E 1.44269504f
#define INFINITE __int_as_float(0x7f800000)

struct Place {
  int n, head;      // sample and head
  int width;        // numbers of a token in y
  const T* q;       // first query of the head; keys and values follow at `width`
  const float* b;   // bias of the head's queries, or none
};

__device__ __forceinline__ Place place_of(int index, const T* qkv, const float* bias, int tokens, int heads) {
  Place p;
  p.head = index % heads;
  p.n = index / heads;
  p.width = heads * SIZE;
  p.q = qkv + (size_t)p.n * tokens * 3 * p.width + p.head * SIZE;
  p.b = bias ? bias + p.head * SIZE : nullptr;
  return p;
}

#define CHUNKS (SIZE / 8)   // groups of 8 numbers in a row
#define STEPS (SIZE / 16)   // products of depth 16 over a row
#ifndef WARPS
#define WARPS 6             // of a block
#endif
#define THREADS (WARPS * 32)
// Blocks of a multiprocessor; rows of a warp, in 16s; and rows that pass at a time, in 16s: forward, for dQ, for dK and dV.
#ifndef FORWARD_BLOCKS
#define FORWARD_BLOCKS 3
#define FORWARD_TILES 1
#define FORWARD_PAIRS 4
#endif
#ifndef QUERY_BLOCKS
#define QUERY_BLOCKS 2
#define QUERY_TILES 1
#define QUERY_PAIRS 2
#endif
#ifndef KEY_BLOCKS
#define KEY_BLOCKS 2
#define KEY_TILES 1
#define KEY_PAIRS 1
#endif

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

// A matrix in global memory: its first row, numbers between rows, and what is added to every row, if anything.
struct Rows {
  const bf16* from;
  size_t stride;
  const float* bias;
};

// Rows first .. first + KEYS - 1 of two matrices to shared memory, the left one first; zeros behind row `count`. BATCH
// rows of a thread are asked for before the first is waited for.
template <int BATCH>
__device__ __forceinline__ void load_rows(bf16* to, const Rows& left, const Rows& right, int first, int count) {
  constexpr int STEP = THREADS / CHUNKS;
  int chunk = threadIdx.x % CHUNKS;
  for (int start = threadIdx.x / CHUNKS; start < KEYS; start += BATCH * STEP) {
    uint4 raw[2][BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++)
#pragma unroll
      for (int side = 0; side < 2; side++) {
        const Rows& rows = side ? right : left;
        int row = start + k * STEP;
        raw[side][k] = make_uint4(0, 0, 0, 0);
        if (row < KEYS && first + row < count)
          raw[side][k] = *reinterpret_cast<const uint4*>(rows.from + (size_t)(first + row) * rows.stride + chunk * 8);
      }
#pragma unroll
    for (int side = 0; side < 2; side++) {
      const float* bias = side ? right.bias : left.bias;
      float shift[8];
#pragma unroll
      for (int e = 0; e < 8; e++) shift[e] = bias ? bias[chunk * 8 + e] : 0.f;
#pragma unroll
      for (int k = 0; k < BATCH; k++) {
        int row = start + k * STEP;
        if (row >= KEYS) continue;
        uint4 v = raw[side][k];
        if (bias && first + row < count) {
          v.x = pack_bf16(low_half(v.x) + shift[0], high_half(v.x) + shift[1]);
          v.y = pack_bf16(low_half(v.y) + shift[2], high_half(v.y) + shift[3]);
          v.z = pack_bf16(low_half(v.z) + shift[4], high_half(v.z) + shift[5]);
          v.w = pack_bf16(low_half(v.w) + shift[6], high_half(v.w) + shift[7]);
        }
        bf16* place = to + (side * KEYS + row) * SIZE + ((chunk ^ (row & (CHUNKS - 1))) * 8);
        *reinterpret_cast<uint4*>(place) = v;
      }
    }
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

// d(16, 8) += a times the transpose of the 8 rows at `rows`, for M tiles.
template <int M, typename D>
__device__ __forceinline__ void against_rows(D& d, int t, const u32 (*a)[STEPS][4], u32 rows, const Lanes& l) {
#pragma unroll
  for (int two = 0; two < STEPS / 2; two++) {
    u32 b[4];
    load_matrices(b, rows + l.along[two]);
#pragma unroll
    for (int m = 0; m < M; m++) {
      multiply(d[m][t], a[m][two * 2], b[0], b[1]);
      multiply(d[m][t], a[m][two * 2 + 1], b[2], b[3]);
    }
  }
}

// sum(16, SIZE) += a(16, 16) times the 16 rows at `rows`, for M tiles.
template <int M>
__device__ __forceinline__ void times_rows(float (*sum)[CHUNKS][4], const u32 (*a)[4], u32 rows, const Lanes& l) {
#pragma unroll
  for (int two = 0; two < CHUNKS / 2; two++) {
    u32 b[4];
    load_matrices_transposed(b, rows + l.across[two]);
#pragma unroll
    for (int m = 0; m < M; m++) {
      multiply(sum[m][two * 2], a[m], b[0], b[1]);
      multiply(sum[m][two * 2 + 1], a[m], b[2], b[3]);
    }
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
template <int M, int PAIRS>
__device__ __forceinline__ void attend(const u32 (*q)[STEPS][4], u32 shared, const Lanes& l, int at, int valid,
                                       float scale, Softmax* state, float (*sum)[CHUNKS][4]) {
  int part = threadIdx.x & 3;
  u32 keys = shared + at * ROW_BYTES;
  float s[M][PAIRS * 2][4] = {};
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) against_rows<M>(s, t, q, keys + t * 8 * ROW_BYTES, l);
  if (at + PAIRS * 16 > valid) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int t = 0; t < PAIRS * 2; t++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          if (at + t * 8 + part * 2 + (e & 1) >= valid) s[m][t][e] = -INFINITE;
  }
#pragma unroll
  for (int m = 0; m < M; m++) {
    float most[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      most[half] = state[m].largest[half];
#pragma unroll
      for (int t = 0; t < PAIRS * 2; t++)
        most[half] = fmaxf(most[half], fmaxf(s[m][t][half * 2], s[m][t][half * 2 + 1]));
      most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 1));
      most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 2));
    }
    // Most of the time the largest score stays.
    if (__any_sync(0xffffffffu, most[0] > state[m].largest[0] || most[1] > state[m].largest[1])) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float factor = exp2_fast((state[m].largest[half] - most[half]) * scale);
        state[m].largest[half] = most[half];
        state[m].sum[half] *= factor;
#pragma unroll
        for (int t = 0; t < CHUNKS; t++) {
          sum[m][t][half * 2] *= factor;
          sum[m][t][half * 2 + 1] *= factor;
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
          s[m][t][e] = exp2_fast(s[m][t][e] * scale - offset);
          state[m].sum[half] += s[m][t][e];
        }
    }
  }
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair++) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++) as_left(a[m], s[m][pair * 2], s[m][pair * 2 + 1]);
    times_rows<M>(sum, a, keys + RIGHT + pair * 16 * ROW_BYTES, l);
  }
}

// y (n, tokens, d), and ln sum exp of every row of scores. `scale` is 1 / sqrt(SIZE).
extern "C" __global__ void __launch_bounds__(THREADS, FORWARD_BLOCKS)
    attention_forward(const bf16* qkv, const float* bias, bf16* y, float* log_sums, int tokens, int heads, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int M = FORWARD_TILES;
  Place p = place_of(blockIdx.x, qkv, bias, tokens, heads);
  size_t stride = 3 * p.width;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int chunks = (tokens + KEYS - 1) / KEYS;
  float scale2 = scale * LOG2E;
  Lanes l = lanes_of(lane);
  u32 base = shared_address(shared);
  Rows keys = {p.q + p.width, stride, p.b ? p.b + p.width : nullptr};
  Rows values = {p.q + 2 * p.width, stride, p.b ? p.b + 2 * p.width : nullptr};
  // Where all rows fit, they are read once.
  if (chunks == 1) {
    load_rows<4>(reinterpret_cast<bf16*>(shared), keys, values, 0, tokens);
    __syncthreads();
  }
  for (int round = 0; round * WARPS * M * 16 < tokens; round++) {
    int first = (round * WARPS + warp) * M * 16;
    u32 q[M][STEPS][4];
    float sum[M][CHUNKS][4] = {};
    Softmax state[M];
#pragma unroll
    for (int m = 0; m < M; m++) {
      state[m] = {{-INFINITE, -INFINITE}, {0.f, 0.f}};
      load_left(q[m], p.q, stride, p.b, first + m * 16, tokens);
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      if (chunks > 1) {
        __syncthreads();
        load_rows<1>(reinterpret_cast<bf16*>(shared), keys, values, chunk * KEYS, tokens);
        __syncthreads();
      }
      if (first >= tokens) continue;
      int valid = min(KEYS, tokens - chunk * KEYS), at = 0;
      for (; at + FORWARD_PAIRS * 16 <= valid; at += FORWARD_PAIRS * 16)
        attend<M, FORWARD_PAIRS>(q, base, l, at, valid, scale2, state, sum);
      for (; at < valid; at += 16) attend<M, 1>(q, base, l, at, valid, scale2, state, sum);
    }
    if (first >= tokens) continue;
#pragma unroll
    for (int m = 0; m < M; m++) {
      float inverse[2];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float total = state[m].sum[half];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        inverse[half] = 1.f / total;
        int row = first + m * 16 + (lane >> 2) + half * 8;
        if ((lane & 3) == 0 && row < tokens)
          log_sums[(size_t)blockIdx.x * tokens + row] = state[m].largest[half] * scale + __logf(total);
      }
      store_rows(y + (size_t)p.n * tokens * p.width + p.head * SIZE, p.width, sum[m], first + m * 16, tokens, inverse[0],
                 inverse[1]);
    }
  }
}

// PAIRS x 16 keys for M x 16 queries q with gradients d of their outputs: adds to dQ (still without the scale).
template <int M, int PAIRS>
__device__ __forceinline__ void pass_keys(const u32 (*q)[STEPS][4], const u32 (*d)[STEPS][4], u32 shared, const Lanes& l,
                                          int at, int valid, float scale, const float (*log2_sum)[2],
                                          const float (*delta)[2], float (*sum)[CHUNKS][4]) {
  int part = threadIdx.x & 3;
  u32 keys = shared + at * ROW_BYTES;
  float s[M][PAIRS * 2][4] = {}, g[M][PAIRS * 2][4] = {};
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) {
    against_rows<M>(s, t, q, keys + t * 8 * ROW_BYTES, l);
    against_rows<M>(g, t, d, keys + RIGHT + t * 8 * ROW_BYTES, l);
  }
  bool whole = at + PAIRS * 16 <= valid;
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int t = 0; t < PAIRS * 2; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        g[m][t][e] = exp2_fast(s[m][t][e] * scale - log2_sum[m][e >> 1]) * (g[m][t][e] - delta[m][e >> 1]);
        if (!whole && at + t * 8 + part * 2 + (e & 1) >= valid) g[m][t][e] = 0.f;
      }
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair++) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++) as_left(a[m], g[m][pair * 2], g[m][pair * 2 + 1]);
    times_rows<M>(sum, a, keys + pair * 16 * ROW_BYTES, l);
  }
}

// PAIRS x 16 queries and gradients of outputs for M x 16 keys k and values v: adds to dK (without the scale) and dV.
template <int M, int PAIRS>
__device__ __forceinline__ void pass_queries(const u32 (*k)[STEPS][4], const u32 (*v)[STEPS][4], u32 shared,
                                             const Lanes& l, int at, float scale, const float* row_logs,
                                             const float* row_deltas, float (*sum_k)[CHUNKS][4],
                                             float (*sum_v)[CHUNKS][4]) {
  int part = threadIdx.x & 3;
  u32 queries = shared + at * ROW_BYTES;
  float s[M][PAIRS * 2][4] = {}, g[M][PAIRS * 2][4] = {};
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) {
    against_rows<M>(s, t, k, queries + t * 8 * ROW_BYTES, l);
    against_rows<M>(g, t, v, queries + RIGHT + t * 8 * ROW_BYTES, l);
  }
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) {
    float2 log2_sum = *reinterpret_cast<const float2*>(row_logs + at + t * 8 + part * 2);
    float2 delta = *reinterpret_cast<const float2*>(row_deltas + at + t * 8 + part * 2);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        s[m][t][e] = exp2_fast(s[m][t][e] * scale - (e & 1 ? log2_sum.y : log2_sum.x));
        g[m][t][e] = s[m][t][e] * (g[m][t][e] - (e & 1 ? delta.y : delta.x));
      }
  }
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair++) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++) as_left(a[m], s[m][pair * 2], s[m][pair * 2 + 1]);
    times_rows<M>(sum_v, a, queries + RIGHT + pair * 16 * ROW_BYTES, l);
#pragma unroll
    for (int m = 0; m < M; m++) as_left(a[m], g[m][pair * 2], g[m][pair * 2 + 1]);
    times_rows<M>(sum_k, a, queries + pair * 16 * ROW_BYTES, l);
  }
}

// dQ, into dqkv (n, tokens, 3 d), and deltas (n, heads, tokens) = dY . Y: a warp has queries; keys and values pass.
extern "C" __global__ void __launch_bounds__(THREADS, QUERY_BLOCKS)
    attention_backward_queries(const bf16* qkv, const float* bias, const bf16* y, const float* log_sums, const bf16* dy,
                               bf16* dqkv, float* deltas, int tokens, int heads, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int M = QUERY_TILES;
  Place p = place_of(blockIdx.x, qkv, bias, tokens, heads);
  size_t stride = 3 * p.width, out = (size_t)p.n * tokens * p.width + p.head * SIZE;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int chunks = (tokens + KEYS - 1) / KEYS;
  float scale2 = scale * LOG2E;
  const float* logs = log_sums + (size_t)blockIdx.x * tokens;
  Lanes l = lanes_of(lane);
  u32 base = shared_address(shared);
  Rows keys = {p.q + p.width, stride, p.b ? p.b + p.width : nullptr};
  Rows values = {p.q + 2 * p.width, stride, p.b ? p.b + 2 * p.width : nullptr};
  // Where all rows fit, they are read once.
  if (chunks == 1) {
    load_rows<4>(reinterpret_cast<bf16*>(shared), keys, values, 0, tokens);
    __syncthreads();
  }
  for (int round = 0; round * WARPS * M * 16 < tokens; round++) {
    int first = (round * WARPS + warp) * M * 16;
    u32 q[M][STEPS][4], d[M][STEPS][4];
    float sum[M][CHUNKS][4] = {}, delta[M][2] = {}, log2_sum[M][2];
#pragma unroll
    for (int m = 0; m < M; m++) {
      u32 o[STEPS][4];
      load_left(q[m], p.q, stride, p.b, first + m * 16, tokens);
      load_left(d[m], dy + out, p.width, nullptr, first + m * 16, tokens);
      load_left(o, y + out, p.width, nullptr, first + m * 16, tokens);
#pragma unroll
      for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          delta[m][e & 1] +=
              low_half(o[step][e]) * low_half(d[m][step][e]) + high_half(o[step][e]) * high_half(d[m][step][e]);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        delta[m][half] += __shfl_xor_sync(0xffffffffu, delta[m][half], 1);
        delta[m][half] += __shfl_xor_sync(0xffffffffu, delta[m][half], 2);
        int row = first + m * 16 + (lane >> 2) + half * 8;
        log2_sum[m][half] = row < tokens ? logs[row] * LOG2E : INFINITE;
        if ((lane & 3) == 0 && row < tokens) deltas[(size_t)blockIdx.x * tokens + row] = delta[m][half];
      }
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      if (chunks > 1) {
        __syncthreads();
        load_rows<1>(reinterpret_cast<bf16*>(shared), keys, values, chunk * KEYS, tokens);
        __syncthreads();
      }
      if (first >= tokens) continue;
      int valid = min(KEYS, tokens - chunk * KEYS), at = 0;
      for (; at + QUERY_PAIRS * 16 <= valid; at += QUERY_PAIRS * 16)
        pass_keys<M, QUERY_PAIRS>(q, d, base, l, at, valid, scale2, log2_sum, delta, sum);
      for (; at < valid; at += 16) pass_keys<M, 1>(q, d, base, l, at, valid, scale2, log2_sum, delta, sum);
    }
    bf16* dq = dqkv + (size_t)p.n * tokens * stride + p.head * SIZE;
#pragma unroll
    for (int m = 0; m < M; m++) store_rows(dq, stride, sum[m], first + m * 16, tokens, scale, scale);
  }
}

// dK and dV: a warp has keys; queries and dY pass.
extern "C" __global__ void __launch_bounds__(THREADS, KEY_BLOCKS)
    attention_backward_keys(const bf16* qkv, const float* bias, const float* log_sums, const bf16* dy, bf16* dqkv,
                            const float* deltas, int tokens, int heads, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int M = KEY_TILES;
  bf16* queries = reinterpret_cast<bf16*>(shared);
  float* row_logs = reinterpret_cast<float*>(queries + 2 * KEYS * SIZE);
  float* row_deltas = row_logs + KEYS;
  Place p = place_of(blockIdx.x, qkv, bias, tokens, heads);
  size_t stride = 3 * p.width, out = (size_t)p.n * tokens * p.width + p.head * SIZE;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int chunks = (tokens + KEYS - 1) / KEYS;
  float scale2 = scale * LOG2E;
  bf16* dk = dqkv + (size_t)p.n * tokens * stride + p.head * SIZE + p.width;
  Lanes l = lanes_of(lane);
  u32 base = shared_address(shared);
  auto fetch_numbers = [&](int start) {
    for (int i = threadIdx.x; i < KEYS; i += THREADS) {
      size_t place = (size_t)blockIdx.x * tokens + start + i;
      row_logs[i] = start + i < tokens ? log_sums[place] * LOG2E : INFINITE;
      row_deltas[i] = start + i < tokens ? deltas[place] : 0.f;
    }
  };
  Rows all_queries = {p.q, stride, p.b}, gradients = {dy + out, (size_t)p.width, nullptr};
  // Where all rows fit, they are read once.
  if (chunks == 1) {
    load_rows<4>(queries, all_queries, gradients, 0, tokens);
    fetch_numbers(0);
    __syncthreads();
  }
  for (int round = 0; round * WARPS * M * 16 < tokens; round++) {
    int first = (round * WARPS + warp) * M * 16;
    u32 k[M][STEPS][4], v[M][STEPS][4];
    float sum_k[M][CHUNKS][4] = {}, sum_v[M][CHUNKS][4] = {};
#pragma unroll
    for (int m = 0; m < M; m++) {
      load_left(k[m], p.q + p.width, stride, p.b ? p.b + p.width : nullptr, first + m * 16, tokens);
      load_left(v[m], p.q + 2 * p.width, stride, p.b ? p.b + 2 * p.width : nullptr, first + m * 16, tokens);
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      if (chunks > 1) {
        __syncthreads();
        load_rows<1>(queries, all_queries, gradients, chunk * KEYS, tokens);
        fetch_numbers(chunk * KEYS);
        __syncthreads();
      }
      if (first >= tokens) continue;
      int valid = min(KEYS, tokens - chunk * KEYS), at = 0;
      for (; at + KEY_PAIRS * 16 <= valid; at += KEY_PAIRS * 16)
        pass_queries<M, KEY_PAIRS>(k, v, base, l, at, scale2, row_logs, row_deltas, sum_k, sum_v);
      for (; at < valid; at += 16)
        pass_queries<M, 1>(k, v, base, l, at, scale2, row_logs, row_deltas, sum_k, sum_v);
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
      store_rows(dk, stride, sum_k[m], first + m * 16, tokens, scale, scale);
      store_rows(dk + p.width, stride, sum_v[m], first + m * 16, tokens, 1.f, 1.f);
    }
  }
}
