// Layer norm over rows of WIDTH numbers, alone or behind the sum that precedes it in a transformer block; see
// layer_norm.rs and add_norm.rs for the formulas. LANES neighbouring lanes share a row; a lane has CHUNKS groups of
// VECTOR numbers, always of the same columns, so that sums over rows stay in its registers.

#define CHUNKS ((WIDTH + LANES * VECTOR - 1) / (LANES * VECTOR))
#define THREADS 256
#define ROWS (THREADS / LANES)  // of a block at a time

// Sum over the lanes of a row, in each of them.
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
  for (int step = LANES / 2; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

__device__ __forceinline__ int column_of(int chunk) { return (chunk * LANES + (int)(threadIdx.x % LANES)) * VECTOR; }

__device__ __forceinline__ void load_row(Channels<VECTOR>* values, const T* row, bool inside) {
#pragma unroll
  for (int k = 0; k < CHUNKS; k++) {
    if (inside && column_of(k) < WIDTH) load_channels(values[k], row + column_of(k));
    else
#pragma unroll
      for (int e = 0; e < VECTOR; e++) values[k].v[e] = 0.f;
  }
}

__device__ __forceinline__ void load_columns(Channels<VECTOR>* values, const float* row) {
#pragma unroll
  for (int k = 0; k < CHUNKS; k++)
#pragma unroll
    for (int e = 0; e < VECTOR; e++) values[k].v[e] = row && column_of(k) < WIDTH ? row[column_of(k) + e] : 0.f;
}

// sum = x + y + bias (where there is a y; the sum is rounded as it is stored), normal = its layer norm.
extern "C" __global__ void __launch_bounds__(THREADS)
    add_norm(const T* x, const T* y, const float* bias, const float* gamma, const float* beta, float epsilon, T* sum,
             T* normal, float2* statistics, i64 rows) {
  Channels<VECTOR> shift[CHUNKS], scale[CHUNKS], offset[CHUNKS];
  load_columns(shift, bias);
  load_columns(scale, gamma);
  load_columns(offset, beta);
  for (i64 first = (i64)blockIdx.x * ROWS; first < rows; first += (i64)gridDim.x * ROWS) {
    i64 row = first + threadIdx.x / LANES;
    bool inside = row < rows;
    Channels<VECTOR> s[CHUNKS];
    load_row(s, x + row * WIDTH, inside);
    if (y) {
      Channels<VECTOR> other[CHUNKS];
      load_row(other, y + row * WIDTH, inside);
#pragma unroll
      for (int k = 0; k < CHUNKS; k++) {
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
          s[k].v[e] = to_float(from_float<T>(s[k].v[e] + (other[k].v[e] + shift[k].v[e])));
        if (inside && column_of(k) < WIDTH) store_channels(sum + row * WIDTH + column_of(k), s[k]);
      }
    }
    float total = 0.f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++)
#pragma unroll
      for (int e = 0; e < VECTOR; e++) total += s[k].v[e];
    float mean = row_sum(total) * (1.f / WIDTH), squares = 0.f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++)
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        float difference = column_of(k) < WIDTH ? s[k].v[e] - mean : 0.f;
        squares += difference * difference;
      }
    float inverse = 1.f / sqrtf(row_sum(squares) * (1.f / WIDTH) + epsilon);
    if (!inside) continue;
    if (threadIdx.x % LANES == 0) statistics[row] = make_float2(mean, inverse);
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
      if (column_of(k) >= WIDTH) continue;
      Channels<VECTOR> out;
#pragma unroll
      for (int e = 0; e < VECTOR; e++) out.v[e] = (s[k].v[e] - mean) * inverse * scale[k].v[e] + offset[k].v[e];
      store_channels(normal + row * WIDTH + column_of(k), out);
    }
  }
}

// Sums over the rows of a block, in a fixed order: first those of a warp, then the warps.
__device__ __forceinline__ void reduce_rows(const Channels<VECTOR>* values, float* to) {
  __shared__ float sums[THREADS / 32][WIDTH];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < CHUNKS; k++)
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float x = values[k].v[e];
#pragma unroll
      for (int step = 16; step >= LANES; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
      if (lane < LANES && column_of(k) < WIDTH) sums[warp][column_of(k) + e] = x;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < WIDTH; i += THREADS) {
    float total = 0.f;
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++) total += sums[w][i];
    to[i] = total;
  }
}

// dx = the norm's gradient at the stored sum, plus `dsum` where there is one, plus what is in dx where `add`.
// partial (blocks, 3, WIDTH): sums over rows of dnormal xh, of dnormal, and of dx, for gamma, beta and bias.
extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward(const T* dnormal, const T* dsum, const T* s, const float2* statistics, const float* gamma, T* dx,
                  int add, float* partial, i64 rows) {
  Channels<VECTOR> scale[CHUNKS], sum_gamma[CHUNKS] = {}, sum_beta[CHUNKS] = {}, sum_bias[CHUNKS] = {};
  load_columns(scale, gamma);
  for (i64 first = (i64)blockIdx.x * ROWS; first < rows; first += (i64)gridDim.x * ROWS) {
    i64 row = first + threadIdx.x / LANES;
    bool inside = row < rows;
    Channels<VECTOR> g[CHUNKS], xh[CHUNKS], more[CHUNKS];
    load_row(g, dnormal + row * WIDTH, inside);
    load_row(xh, s + row * WIDTH, inside);
    load_row(more, dsum + row * WIDTH, inside && dsum);
    float2 moments = inside ? statistics[row] : make_float2(0.f, 0.f);
    float total = 0.f, product = 0.f;
#pragma unroll
    for (int k = 0; k < CHUNKS; k++)
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        xh[k].v[e] = (xh[k].v[e] - moments.x) * moments.y;
        sum_gamma[k].v[e] += g[k].v[e] * xh[k].v[e];
        sum_beta[k].v[e] += g[k].v[e];
        g[k].v[e] *= scale[k].v[e];
        total += g[k].v[e];
        product += g[k].v[e] * xh[k].v[e];
      }
    total = row_sum(total) * (1.f / WIDTH);
    product = row_sum(product) * (1.f / WIDTH);
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
      if (!inside || column_of(k) >= WIDTH) continue;
      i64 place = row * WIDTH + column_of(k);
      Channels<VECTOR> out, before;
#pragma unroll
      for (int e = 0; e < VECTOR; e++)
        out.v[e] = (g[k].v[e] - total - xh[k].v[e] * product) * moments.y + more[k].v[e];
      if (add) {
        load_channels(before, dx + place);
#pragma unroll
        for (int e = 0; e < VECTOR; e++) out.v[e] += before.v[e];
      }
#pragma unroll
      for (int e = 0; e < VECTOR; e++) sum_bias[k].v[e] += out.v[e];
      store_channels(dx + place, out);
    }
  }
  reduce_rows(sum_gamma, partial + (size_t)blockIdx.x * 3 * WIDTH);
  reduce_rows(sum_beta, partial + (size_t)blockIdx.x * 3 * WIDTH + WIDTH);
  reduce_rows(sum_bias, partial + (size_t)blockIdx.x * 3 * WIDTH + 2 * WIDTH);
}
