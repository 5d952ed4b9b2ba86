// The gradients of attention_tensor.cu, which goes before this text.

// PAIRS x 16 keys for 16 queries q with gradients d of their outputs: adds to dQ (still without the scale).
template <int PAIRS>
__device__ __forceinline__ void pass_keys(const u32 (*q)[4], const u32 (*d)[4], u32 shared, const Lanes& l, int at,
                                          int valid, float scale, const float* log2_sum, const float* delta,
                                          float (*sum)[4]) {
  int part = threadIdx.x & 3;
  u32 keys = shared + at * ROW_BYTES;
  float s[PAIRS * 2][4] = {}, g[PAIRS * 2][4] = {};
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) {
    against_rows(s[t], q, keys + t * 8 * ROW_BYTES, l);
    against_rows(g[t], d, keys + RIGHT + t * 8 * ROW_BYTES, l);
  }
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      g[t][e] = exp2_fast(s[t][e] * scale - log2_sum[e >> 1]) * (g[t][e] - delta[e >> 1]);
  if (at + PAIRS * 16 > valid) {
#pragma unroll
    for (int t = 0; t < PAIRS * 2; t++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        if (at + t * 8 + part * 2 + (e & 1) >= valid) g[t][e] = 0.f;
  }
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair++) {
    u32 a[4];
    as_left(a, g[pair * 2], g[pair * 2 + 1]);
    times_rows(sum, a, keys + pair * 16 * ROW_BYTES, l);
  }
}

// PAIRS x 16 queries and gradients of outputs for 16 keys k and values v: adds to dK (without the scale) and dV.
template <int PAIRS>
__device__ __forceinline__ void pass_queries(const u32 (*k)[4], const u32 (*v)[4], u32 shared, const Lanes& l, int at,
                                             float scale, const float* row_logs, const float* row_deltas,
                                             float (*sum_k)[4], float (*sum_v)[4]) {
  int part = threadIdx.x & 3;
  u32 queries = shared + at * ROW_BYTES;
  float s[PAIRS * 2][4] = {}, g[PAIRS * 2][4] = {};
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) {
    against_rows(s[t], k, queries + t * 8 * ROW_BYTES, l);
    against_rows(g[t], v, queries + RIGHT + t * 8 * ROW_BYTES, l);
  }
#pragma unroll
  for (int t = 0; t < PAIRS * 2; t++) {
    float2 log2_sum = *reinterpret_cast<const float2*>(row_logs + at + t * 8 + part * 2);
    float2 delta = *reinterpret_cast<const float2*>(row_deltas + at + t * 8 + part * 2);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      s[t][e] = exp2_fast(s[t][e] * scale - (e & 1 ? log2_sum.y : log2_sum.x));
      g[t][e] = s[t][e] * (g[t][e] - (e & 1 ? delta.y : delta.x));
    }
  }
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair++) {
    u32 a[4];
    as_left(a, s[pair * 2], s[pair * 2 + 1]);
    times_rows(sum_v, a, queries + RIGHT + pair * 16 * ROW_BYTES, l);
    as_left(a, g[pair * 2], g[pair * 2 + 1]);
    times_rows(sum_k, a, queries + pair * 16 * ROW_BYTES, l);
  }
}

// dQ, into dqkv (n, tokens, 3 d), and deltas (n, heads, tokens) = dY . Y: a warp has 16 queries; keys and values pass.
extern "C" __global__ void __launch_bounds__(THREADS, QUERY_BLOCKS)
    attention_backward_queries(const bf16* qkv, const float* bias, const bf16* y, const float* log_sums, const bf16* dy,
                               bf16* dqkv, float* deltas, int tokens, int heads, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  bf16* keys = reinterpret_cast<bf16*>(shared);
  bf16* values = keys + KEYS * SIZE;
  Place p = place_of(blockIdx.x, qkv, bias, tokens, heads);
  size_t stride = 3 * p.width, out = (size_t)p.n * tokens * p.width + p.head * SIZE;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int chunks = (tokens + KEYS - 1) / KEYS;
  float scale2 = scale * LOG2E;
  const float* logs = log_sums + (size_t)blockIdx.x * tokens;
  Lanes l = lanes_of(lane);
  u32 base = shared_address(shared);
  for (int round = 0; round * WARPS * 16 < tokens; round++) {
    int first = (round * WARPS + warp) * 16;
    u32 q[STEPS][4], d[STEPS][4];
    float sum[CHUNKS][4] = {}, delta[2] = {0.f, 0.f}, log2_sum[2];
    load_left(q, p.q, stride, p.b, first, tokens);
    load_left(d, dy + out, p.width, nullptr, first, tokens);
    {
      u32 o[STEPS][4];
      load_left(o, y + out, p.width, nullptr, first, tokens);
#pragma unroll
      for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          delta[e & 1] += low_half(o[step][e]) * low_half(d[step][e]) + high_half(o[step][e]) * high_half(d[step][e]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      delta[half] += __shfl_xor_sync(0xffffffffu, delta[half], 1);
      delta[half] += __shfl_xor_sync(0xffffffffu, delta[half], 2);
      int row = first + (lane >> 2) + half * 8;
      log2_sum[half] = row < tokens ? logs[row] * LOG2E : INFINITE;
      if ((lane & 3) == 0 && row < tokens) deltas[(size_t)blockIdx.x * tokens + row] = delta[half];
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      if (chunks > 1 || round == 0) {
        load_keys(keys, values, p, chunk * KEYS, tokens);
      }
      if (first >= tokens) continue;
      int valid = min(KEYS, tokens - chunk * KEYS), at = 0;
      for (; at + QUERY_PAIRS * 16 <= valid; at += QUERY_PAIRS * 16)
        pass_keys<QUERY_PAIRS>(q, d, base, l, at, valid, scale2, log2_sum, delta, sum);
      for (; at < valid; at += 16) pass_keys<1>(q, d, base, l, at, valid, scale2, log2_sum, delta, sum);
    }
    if (first < tokens)
      store_rows(dqkv + (size_t)p.n * tokens * stride + p.head * SIZE, stride, sum, first, tokens, scale, scale);
  }
}

// dK and dV: a warp has 16 keys; queries and dY pass.
extern "C" __global__ void __launch_bounds__(THREADS, KEY_BLOCKS)
    attention_backward_keys(const bf16* qkv, const float* bias, const float* log_sums, const bf16* dy, bf16* dqkv,
                            const float* deltas, int tokens, int heads, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  bf16* queries = reinterpret_cast<bf16*>(shared);
  bf16* gradients = queries + KEYS * SIZE;
  float* row_logs = reinterpret_cast<float*>(gradients + KEYS * SIZE);
  float* row_deltas = row_logs + KEYS;
  Place p = place_of(blockIdx.x, qkv, bias, tokens, heads);
  size_t stride = 3 * p.width, out = (size_t)p.n * tokens * p.width + p.head * SIZE;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int chunks = (tokens + KEYS - 1) / KEYS;
  float scale2 = scale * LOG2E;
  bf16* dk = dqkv + (size_t)p.n * tokens * stride + p.head * SIZE + p.width;
  Lanes l = lanes_of(lane);
  u32 base = shared_address(shared);
  for (int round = 0; round * WARPS * 16 < tokens; round++) {
    int first = (round * WARPS + warp) * 16;
    u32 k[STEPS][4], v[STEPS][4];
    float sum_k[CHUNKS][4] = {}, sum_v[CHUNKS][4] = {};
    load_left(k, p.q + p.width, stride, p.b ? p.b + p.width : nullptr, first, tokens);
    load_left(v, p.q + 2 * p.width, stride, p.b ? p.b + 2 * p.width : nullptr, first, tokens);
    for (int chunk = 0; chunk < chunks; chunk++) {
      if (chunks > 1 || round == 0) {
        __syncthreads();
        load_rows(queries, p.q, stride, p.b, chunk * KEYS, tokens);
        load_rows(gradients, dy + out, p.width, nullptr, chunk * KEYS, tokens);
        for (int i = threadIdx.x; i < KEYS; i += THREADS) {
          int row = chunk * KEYS + i;
          size_t place = (size_t)blockIdx.x * tokens + row;
          row_logs[i] = row < tokens ? log_sums[place] * LOG2E : INFINITE;
          row_deltas[i] = row < tokens ? deltas[place] : 0.f;
        }
        __syncthreads();
      }
      if (first >= tokens) continue;
      int valid = min(KEYS, tokens - chunk * KEYS), at = 0;
      for (; at + KEY_PAIRS * 16 <= valid; at += KEY_PAIRS * 16)
        pass_queries<KEY_PAIRS>(k, v, base, l, at, scale2, row_logs, row_deltas, sum_k, sum_v);
      for (; at < valid; at += 16)
        pass_queries<1>(k, v, base, l, at, scale2, row_logs, row_deltas, sum_k, sum_v);
    }
    if (first < tokens) {
      store_rows(dk, stride, sum_k, first, tokens, scale, scale);
      store_rows(dk + p.width, stride, sum_v, first, tokens, 1.f, 1.f);
    }
  }
}
