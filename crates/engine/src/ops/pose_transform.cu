// X = P M / ||P M|| for d x d matrices, a thread per capsule; without M (null) X = P / ||P||. Norms are those of the first
// `columns` columns.

constexpr int D = SIDE;

// (P M)_rc, or with M^T; without M (null) P_rc.
template <bool TRANSPOSED>
__device__ __forceinline__ float product(const float* p, const float* m, int r, int c) {
  if (!m) return p[r * D + c];
  float value = 0.f;
#pragma unroll
  for (int k = 0; k < D; k++) value += p[r * D + k] * m[TRANSPOSED ? c * D + k : k * D + c];
  return value;
}

__device__ __forceinline__ float transform(const float* p, const float* m, int columns, float* q) {
  double square = 0.0;
#pragma unroll
  for (int r = 0; r < D; r++)
#pragma unroll
    for (int c = 0; c < D; c++) {
      float value = product<false>(p, m, r, c);
      q[r * D + c] = value;
      if (c < columns) square += (double)value * value;
    }
  return 1.f / fmaxf((float)sqrt(square), 1e-20f);
}

extern "C" __global__ void __launch_bounds__(128)
    pose_transform(const float* poses, const float* transforms, float* x, int batch, int capsules,
                   int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * capsules) return;
  float q[D * D];
  const float* m = transforms ? transforms + (size_t)(i / capsules) * D * D : 0;
  float inverse = transform(poses + (size_t)i * D * D, m, columns, q);
#pragma unroll
  for (int e = 0; e < D * D; e++) x[(size_t)i * D * D + e] = q[e] * inverse;
}

// dQ = (dX - X <X, dX>) / ||Q||, without the second term in columns that the norm does not see; dP = dQ M^T
extern "C" __global__ void __launch_bounds__(128)
    pose_transform_backward(const float* poses, const float* transforms, const float* x, const float* dx, float* dp,
                            int add, int batch, int capsules, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * capsules) return;
  const float* m = transforms ? transforms + (size_t)(i / capsules) * D * D : 0;
  float q[D * D];
  float inverse = transform(poses + (size_t)i * D * D, m, columns, q);
  size_t start = (size_t)i * D * D;
  float along = 0.f;
#pragma unroll
  for (int e = 0; e < D * D; e++) along += x[start + e] * dx[start + e];
#pragma unroll
  for (int e = 0; e < D * D; e++)
    q[e] = (e % D < columns ? dx[start + e] - x[start + e] * along : dx[start + e]) * inverse;
#pragma unroll
  for (int r = 0; r < D; r++)
#pragma unroll
    for (int c = 0; c < D; c++) {
      float value = product<true>(q, m, r, c);
      dp[start + r * D + c] = add ? dp[start + r * D + c] + value : value;
    }
}
