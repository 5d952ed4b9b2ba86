// GELU of rows of C numbers, with the bias of the linear layer before it where there is one; see gelu.rs. Threads keep
// to their columns (`columns` groups of VECTOR side by side in a block), so that the bias' gradient stays in registers.

// Phi(x), and exp(-x^2 / 2): erf by formula 7.1.26 of Abramowitz and Stegun, to 1e-7, as on the CPU.
__device__ __forceinline__ float normal_distribution(float x, float& bell) {
  float z = fabsf(x) * 0.70710678f;
  float t = __fdividef(1.f, 1.f + 0.3275911f * z);
  bell = __expf(-z * z);
  float p = 1.0614054f * t - 1.453152f;
  p = p * t + 1.4214137f;
  p = p * t - 0.28449674f;
  p = p * t + 0.2548296f;
  float tail = 0.5f * p * t * bell;
  return x >= 0.f ? 1.f - tail : tail;
}

extern "C" __global__ void __launch_bounds__(256)
    gelu(const T* x, const float* bias, T* y, i64 rows, int C, int columns) {
  int line = threadIdx.x / columns, lines = 256 / columns;
  int column = (blockIdx.y * columns + threadIdx.x % columns) * VECTOR;
  if (line >= lines || column >= C) return;
  float shift[VECTOR];
#pragma unroll
  for (int e = 0; e < VECTOR; e++) shift[e] = bias ? bias[column + e] : 0.f;
  for (i64 row = (i64)blockIdx.x * lines + line; row < rows; row += (i64)gridDim.x * lines) {
    Channels<VECTOR> v;
    load_channels(v, x + row * C + column);
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float at = v.v[e] + shift[e], bell;
      v.v[e] = at * normal_distribution(at, bell);
    }
    store_channels(y + row * C + column, v);
  }
}

// dx, and partial (gridDim.x, C): sums of dx over the rows of a block, where wanted.
extern "C" __global__ void __launch_bounds__(256)
    gelu_backward(const T* dy, const T* x, const float* bias, T* dx, int add, float* partial, i64 rows, int C,
                  int columns) {
  int line = threadIdx.x / columns, lines = 256 / columns;
  int column = (blockIdx.y * columns + threadIdx.x % columns) * VECTOR;
  bool inside = line < lines && column < C;
  float shift[VECTOR], sum[VECTOR];
#pragma unroll
  for (int e = 0; e < VECTOR; e++) {
    shift[e] = bias && inside ? bias[column + e] : 0.f;
    sum[e] = 0.f;
  }
  for (i64 row = (i64)blockIdx.x * lines + line; inside && row < rows; row += (i64)gridDim.x * lines) {
    i64 place = row * C + column;
    Channels<VECTOR> v, g, more;
    load_channels(v, x + place);
    load_channels(g, dy + place);
    if (add) load_channels(more, dx + place);
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float at = v.v[e] + shift[e], bell;
      float phi = normal_distribution(at, bell);
      g.v[e] *= phi + at * 0.3989423f * bell;
      sum[e] += g.v[e];
      if (add) g.v[e] += more.v[e];
    }
    store_channels(dx + place, g);
  }
  if (!partial) return;
  write_column_sums<VECTOR>(sum, partial, C, column, line, lines, columns, inside);
}
