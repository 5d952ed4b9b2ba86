// Multi-head attention without the matrix of scores in memory, for any head size, in f32 arithmetic: a warp has one row.
// See attention.rs, and attention_tensor.cu for bf16. qkv (n, tokens, 3 d) comes without the bias of its linear layer,
// which is added here on reading.

#define SHARE ((SIZE + 31) / 32)  // numbers of a row that a lane has
#define WARPS 4

// Row `row` of queries (0), keys (1) or values (2), with its bias, in shared memory of the warp.
__device__ __forceinline__ void fetch(float* to, const Place& p, int which, int row) {
  for (int e = threadIdx.x & 31; e < SIZE; e += 32)
    to[e] = to_float(p.q[(size_t)row * 3 * p.width + which * p.width + e]) + (p.b ? p.b[which * p.width + e] : 0.f);
}
__device__ __forceinline__ float number(const Place& p, int which, int row, int e) {
  return to_float(p.q[(size_t)row * 3 * p.width + which * p.width + e]) + (p.b ? p.b[which * p.width + e] : 0.f);
}
__device__ __forceinline__ float dot(const float* a, const Place& p, int which, int row) {
  float sum = 0.f;
  for (int e = 0; e < SIZE; e++) sum += a[e] * number(p, which, row, e);
  return sum;
}

// A warp has the query `row` of a head of a sample.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    attention_forward(const T* qkv, const float* bias, T* y, float* log_sums, int tokens, int heads, float scale, i64 rows) {
  __shared__ float queries[WARPS][SIZE], weights[WARPS][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 index = (i64)blockIdx.x * WARPS + warp;
  if (index >= rows) return;
  int row = (int)(index % tokens);
  Place p = place_of((int)(index / tokens), qkv, bias, tokens, heads);
  fetch(queries[warp], p, 0, row);
  __syncwarp();
  float largest = -INFINITE, total = 0.f, sum[SHARE] = {};
  for (int first = 0; first < tokens; first += 32) {
    float s = first + lane < tokens ? dot(queries[warp], p, 1, first + lane) * scale : -INFINITE;
    float most = fmaxf(largest, warp_max(s)), factor = expf(largest - most), weight = expf(s - most);
    total = total * factor + warp_sum(weight);
    largest = most;
    __syncwarp();
    weights[warp][lane] = weight;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < SHARE; k++) sum[k] *= factor;
    for (int other = 0; other < min(32, tokens - first); other++)
#pragma unroll
      for (int k = 0; k < SHARE; k++)
        if (k * 32 + lane < SIZE) sum[k] += weights[warp][other] * number(p, 2, first + other, k * 32 + lane);
  }
  if (lane == 0) log_sums[index] = largest + logf(total);
#pragma unroll
  for (int k = 0; k < SHARE; k++)
    if (k * 32 + lane < SIZE)
      y[((size_t)p.n * tokens + row) * p.width + p.head * SIZE + k * 32 + lane] = from_float<T>(sum[k] / total);
}

// dQ of one query a warp, and dY . Y.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    attention_backward_queries(const T* qkv, const float* bias, const T* y, const float* log_sums, const T* dy, T* dqkv,
                               float* deltas, int tokens, int heads, float scale, i64 rows) {
  __shared__ float queries[WARPS][SIZE], gradients[WARPS][SIZE], weights[WARPS][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 index = (i64)blockIdx.x * WARPS + warp;
  if (index >= rows) return;
  int row = (int)(index % tokens);
  Place p = place_of((int)(index / tokens), qkv, bias, tokens, heads);
  size_t out = ((size_t)p.n * tokens + row) * p.width + p.head * SIZE;
  fetch(queries[warp], p, 0, row);
  float delta = 0.f;
  for (int e = lane; e < SIZE; e += 32) {
    gradients[warp][e] = to_float(dy[out + e]);
    delta += gradients[warp][e] * to_float(y[out + e]);
  }
  delta = warp_sum(delta);
  if (lane == 0) deltas[index] = delta;
  __syncwarp();
  float sum[SHARE] = {};
  for (int first = 0; first < tokens; first += 32) {
    float weight = 0.f;
    if (first + lane < tokens) {
      float probability = expf(dot(queries[warp], p, 1, first + lane) * scale - log_sums[index]);
      weight = probability * (dot(gradients[warp], p, 2, first + lane) - delta) * scale;
    }
    __syncwarp();
    weights[warp][lane] = weight;
    __syncwarp();
    for (int other = 0; other < min(32, tokens - first); other++)
#pragma unroll
      for (int k = 0; k < SHARE; k++)
        if (k * 32 + lane < SIZE) sum[k] += weights[warp][other] * number(p, 1, first + other, k * 32 + lane);
  }
#pragma unroll
  for (int k = 0; k < SHARE; k++)
    if (k * 32 + lane < SIZE)
      dqkv[((size_t)p.n * tokens + row) * 3 * p.width + p.head * SIZE + k * 32 + lane] = from_float<T>(sum[k]);
}

// dK and dV of one key a warp.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    attention_backward_keys(const T* qkv, const float* bias, const float* log_sums, const T* dy, T* dqkv,
                            const float* deltas, int tokens, int heads, float scale, i64 rows) {
  __shared__ float keys[WARPS][SIZE], values[WARPS][SIZE], weights[WARPS][2][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 index = (i64)blockIdx.x * WARPS + warp;
  if (index >= rows) return;
  int row = (int)(index % tokens);
  i64 head_rows = index - row;
  Place p = place_of((int)(index / tokens), qkv, bias, tokens, heads);
  size_t out = (size_t)p.n * tokens * p.width + p.head * SIZE;
  fetch(keys[warp], p, 1, row);
  fetch(values[warp], p, 2, row);
  __syncwarp();
  float sum_k[SHARE] = {}, sum_v[SHARE] = {};
  for (int first = 0; first < tokens; first += 32) {
    float probability = 0.f, weight = 0.f;
    int query = first + lane;
    if (query < tokens) {
      probability = expf(dot(keys[warp], p, 0, query) * scale - log_sums[head_rows + query]);
      float along = 0.f;
      for (int e = 0; e < SIZE; e++) along += values[warp][e] * to_float(dy[out + (size_t)query * p.width + e]);
      weight = probability * (along - deltas[head_rows + query]) * scale;
    }
    __syncwarp();
    weights[warp][0][lane] = probability;
    weights[warp][1][lane] = weight;
    __syncwarp();
    for (int other = 0; other < min(32, tokens - first); other++)
#pragma unroll
      for (int k = 0; k < SHARE; k++)
        if (k * 32 + lane < SIZE) {
          int e = k * 32 + lane;
          sum_v[k] += weights[warp][0][other] * to_float(dy[out + (size_t)(first + other) * p.width + e]);
          sum_k[k] += weights[warp][1][other] * number(p, 0, first + other, e);
        }
  }
#pragma unroll
  for (int k = 0; k < SHARE; k++)
    if (k * 32 + lane < SIZE) {
      T* to = dqkv + ((size_t)p.n * tokens + row) * 3 * p.width + p.head * SIZE + k * 32 + lane;
      to[p.width] = from_float<T>(sum_k[k]);
      to[2 * p.width] = from_float<T>(sum_v[k]);
    }
}
