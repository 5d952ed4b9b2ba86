// Self-routing capsules: N upper capsules j, poses of P numbers, K lower capsules i. A lane of a warp has one upper
// capsule (or several, 32 apart); a warp works on four images at a time, so that a weight read from shared memory is
// used four times. Votes are never stored; the routing r(b, i, j) is, in f32. All sums have a fixed order.
//
// forward   r = softmax_j(W2 u + b2)   c = a r   S = sum_i c W1 u   s = sum_i c   A = sum_i a   pose = S / s   act = s / A
// backward  dS = dpose / s             ds = dact / A - dpose . pose / s           dA = - dact . act / A
//           t = W1^T dS                dc = t . u + ds              du = sum_j c t + dlogit W2
//           da = sum_j r dc + dA       dlogit = r a (dc - sum_j r dc)
//           dW1 = sum_b c dS u^T       dW2 = sum_b dlogit u          db2 = sum_b dlogit

constexpr int N = CAPSULES, P = POSE;
constexpr int GROUPS = (N + 31) / 32;        // upper capsules of a lane
constexpr int IMAGES = 4;                    // images of a warp at a time
constexpr int WARPS = 8;                     // of a block, forward
constexpr int BACK_WARPS = 4;                // of a block, backward
constexpr int ROW1 = VOTES ? (P * P) | 1 : 0;  // odd strides: lanes meet different banks; 0: activations only
constexpr int ROW2 = P | 1;
constexpr int PADDED = (P + 3) / 4 * 4;

__device__ __forceinline__ void copy_async(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from));
}

// Weights of one lower capsule in shared memory: W1 (N x ROW1), W2 (N x ROW2), b2 (N).
constexpr int WEIGHTS = N * ROW1 + N * ROW2 + N;
__device__ __forceinline__ void load_weights(float* to, const float* w1, const float* w2, const float* b2, int i) {
  const float* from1 = w1 + (size_t)i * N * P * P;
  const float* from2 = w2 + (size_t)i * N * P;
  for (int e = threadIdx.x; VOTES && e < N * P * P; e += blockDim.x)
    copy_async(to + e / (P * P) * ROW1 + e % (P * P), from1 + e);
  for (int e = threadIdx.x; e < N * P; e += blockDim.x)
    copy_async(to + N * ROW1 + e / P * ROW2 + e % P, from2 + e);
  for (int e = threadIdx.x; e < N; e += blockDim.x) copy_async(to + N * (ROW1 + ROW2) + e, b2 + (size_t)i * N + e);
  copy_commit();
}

// partial[split][b][j][P + 1]: S and s of the lower capsules of this split; partial_a[split][b]: sum of a.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    routing_forward(const T* poses, const T* activations, const float* w1, const float* w2, const float* b2,
                    float* routing, float* partial, float* partial_a, int batch, int K, int per_split) {
  extern __shared__ __align__(16) float shared[];
  float* mine = shared + (2 * WEIGHTS + 3) / 4 * 4 + (threadIdx.x >> 5) * IMAGES * PADDED;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int first_image = (blockIdx.x * WARPS + warp) * IMAGES;
  int start = blockIdx.y * per_split, end = min(start + per_split, K);
  float pose_sum[GROUPS][IMAGES][P] = {}, weight_sum[GROUPS][IMAGES] = {}, a_sum[IMAGES] = {};

  if (start < end) load_weights(shared + (start & 1) * WEIGHTS, w1, w2, b2, start);
  for (int i = start; i < end; i++) {
    if (i + 1 < end) {
      load_weights(shared + ((i + 1) & 1) * WEIGHTS, w1, w2, b2, i + 1);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    for (int e = lane; e < IMAGES * P; e += 32) {
      int b = min(first_image + e / P, batch - 1);
      mine[e / P * PADDED + e % P] = to_float(poses[((size_t)b * K + i) * P + e % P]);
    }
    __syncthreads();
    const float* weights = shared + (i & 1) * WEIGHTS;
    float u[IMAGES][P], a[IMAGES];
#pragma unroll
    for (int m = 0; m < IMAGES; m++) {
      float padded[PADDED];
#pragma unroll
      for (int q = 0; q < PADDED; q += 4)
        *reinterpret_cast<float4*>(padded + q) = *reinterpret_cast<const float4*>(mine + m * PADDED + q);
#pragma unroll
      for (int q = 0; q < P; q++) u[m][q] = padded[q];
      a[m] = to_float(activations[(size_t)min(first_image + m, batch - 1) * K + i]);
      a_sum[m] += a[m];
    }
    float logit[GROUPS][IMAGES];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      int j = min(g * 32 + lane, N - 1);
      float bias = weights[N * (ROW1 + ROW2) + j];
#pragma unroll
      for (int m = 0; m < IMAGES; m++) logit[g][m] = bias;
#pragma unroll
      for (int q = 0; q < P; q++) {
        float w = weights[N * ROW1 + j * ROW2 + q];
#pragma unroll
        for (int m = 0; m < IMAGES; m++) logit[g][m] += w * u[m][q];
      }
      if (g * 32 + lane >= N) {
#pragma unroll
        for (int m = 0; m < IMAGES; m++) logit[g][m] = -1e30f;
      }
    }
#pragma unroll
    for (int m = 0; m < IMAGES; m++) {
      float top = logit[0][m];
#pragma unroll
      for (int g = 1; g < GROUPS; g++) top = fmaxf(top, logit[g][m]);
      top = warp_max(top);
      float total = 0.f;
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        logit[g][m] = expf(logit[g][m] - top);
        total += logit[g][m];
      }
      total = 1.f / warp_sum(total);
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        float r = logit[g][m] * total;
        int j = g * 32 + lane;
        if (j < N && first_image + m < batch) routing[((size_t)(first_image + m) * K + i) * N + j] = r;
        logit[g][m] = a[m] * r;  // now c
        weight_sum[g][m] += logit[g][m];
      }
    }
#pragma unroll
    for (int g = 0; VOTES && g < GROUPS; g++) {
      const float* w = weights + min(g * 32 + lane, N - 1) * ROW1;
#pragma unroll
      for (int p = 0; p < P; p++) {
        float vote[IMAGES] = {};
#pragma unroll
        for (int q = 0; q < P; q++) {
          float value = w[p * P + q];
#pragma unroll
          for (int m = 0; m < IMAGES; m++) vote[m] += value * u[m][q];
        }
#pragma unroll
        for (int m = 0; m < IMAGES; m++) pose_sum[g][m][p] += logit[g][m] * vote[m];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int m = 0; m < IMAGES; m++) {
    int b = first_image + m;
    if (b >= batch) continue;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      int j = g * 32 + lane;
      if (j >= N) continue;
      float* to = partial + (((size_t)blockIdx.y * batch + b) * N + j) * (P + 1);
#pragma unroll
      for (int p = 0; p < P; p++) to[p] = pose_sum[g][m][p];
      to[P] = weight_sum[g][m];
    }
    if (lane == 0) partial_a[(size_t)blockIdx.y * batch + b] = a_sum[m];
  }
}

// A thread per (b, j).
extern "C" __global__ void routing_finish(const float* partial, const float* partial_a, int splits, int batch,
                                          float* activations, float* poses, float* weight_sum, float* a_sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * N) return;
  int b = i / N;
  float pose[P] = {}, weight = 0.f, a = 0.f;
  for (int split = 0; split < splits; split++) {
    const float* from = partial + ((size_t)split * batch * N + i) * (P + 1);
#pragma unroll
    for (int p = 0; p < P; p++) pose[p] += from[p];
    weight += from[P];
    a += partial_a[(size_t)split * batch + b];
  }
  activations[i] = weight / a;
  weight_sum[i] = weight;
  if (i % N == 0) a_sum[b] = a;
#pragma unroll
  for (int p = 0; VOTES && p < P; p++) poses[(size_t)i * P + p] = pose[p] / weight;
}

// Gradients of S, s and A; a warp per image. Either output's gradient may be absent.
extern "C" __global__ void routing_backward_prepare(const float* dactivations, const float* dposes,
                                                    const float* activations, const float* poses,
                                                    const float* weight_sum, const float* a_sum, int batch, float* dS,
                                                    float* ds, float* dA) {
  int b = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (b >= batch) return;
  float inverse_a = 1.f / a_sum[b], total = 0.f;
#pragma unroll
  for (int g = 0; g < GROUPS; g++) {
    int j = g * 32 + lane;
    if (j >= N) continue;
    size_t i = (size_t)b * N + j;
    float inverse = 1.f / weight_sum[i], dot = 0.f;
#pragma unroll
    for (int p = 0; p < P; p++) {
      float d = dposes ? dposes[i * P + p] * inverse : 0.f;
      dS[((size_t)b * P + p) * N + j] = d;  // lanes side by side
      dot += VOTES ? d * poses[i * P + p] : 0.f;
    }
    float d = dactivations ? dactivations[i] * inverse_a : 0.f;
    ds[i] = d - dot;
    total += d * activations[i];
  }
  total = warp_sum(total);
  if (lane == 0) dA[b] = -total;
}

// Adds up 32 values over the lanes of a warp and hands total k to lane k: fewer exchanges than a sum of each.
template <int HALF> __device__ __forceinline__ void halve(float* v, int lane) {
  bool upper = lane & HALF;
#pragma unroll
  for (int k = 0; k < HALF; k++) {
    float send = upper ? v[k] : v[k + HALF];
    float keep = upper ? v[k + HALF] : v[k];
    v[k] = keep + __shfl_xor_sync(0xffffffffu, send, HALF);
  }
}
__device__ __forceinline__ float transpose_sum(float* v, int lane) {
  halve<16>(v, lane);
  halve<8>(v, lane);
  halve<4>(v, lane);
  halve<2>(v, lane);
  halve<1>(v, lane);
  return v[0];
}

// du, da and dlogit; a block per lower capsule.
extern "C" __global__ void __launch_bounds__(BACK_WARPS * 32)
    routing_backward_inputs(const T* poses, const T* activations, const float* w1, const float* w2, const float* b2,
                            const float* routing, const float* dS, const float* ds, const float* dA, float* dlogits,
                            T* dposes, int add_poses, T* dactivations, int add_activations, int batch, int K) {
  extern __shared__ __align__(16) float shared[];
  float* mine = shared + (WEIGHTS + 3) / 4 * 4 + (threadIdx.x >> 5) * IMAGES * PADDED;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, i = blockIdx.x;
  load_weights(shared, w1, w2, b2, i);
  copy_wait<0>();
  __syncthreads();
  for (int first_image = (blockIdx.y * BACK_WARPS + warp) * IMAGES; first_image < batch;
       first_image += gridDim.y * BACK_WARPS * IMAGES) {
    __syncwarp();
    for (int e = lane; e < IMAGES * P; e += 32) {
      int b = min(first_image + e / P, batch - 1);
      mine[e / P * PADDED + e % P] = to_float(poses[((size_t)b * K + i) * P + e % P]);
    }
    __syncwarp();
    float a[IMAGES], r[GROUPS][IMAGES], dc[GROUPS][IMAGES], mean[IMAGES] = {};
    float du[IMAGES * P < 32 ? 32 : (IMAGES * P + 31) / 32 * 32] = {};
#pragma unroll
    for (int m = 0; m < IMAGES; m++) a[m] = to_float(activations[(size_t)min(first_image + m, batch - 1) * K + i]);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      int j = min(g * 32 + lane, N - 1);
      bool real = g * 32 + lane < N;
      float t[IMAGES][P] = {};
      const float* w = shared + j * ROW1;
#pragma unroll
      for (int p = 0; VOTES && p < P; p++) {
        float d[IMAGES];
#pragma unroll
        for (int m = 0; m < IMAGES; m++)
          d[m] = dS[((size_t)min(first_image + m, batch - 1) * P + p) * N + j];
#pragma unroll
        for (int q = 0; q < P; q++) {
          float value = w[p * P + q];
#pragma unroll
          for (int m = 0; m < IMAGES; m++) t[m][q] += value * d[m];
        }
      }
#pragma unroll
      for (int m = 0; m < IMAGES; m++) {
        int b = min(first_image + m, batch - 1);
        r[g][m] = real ? routing[((size_t)b * K + i) * N + j] : 0.f;
        dc[g][m] = ds[(size_t)b * N + j];
#pragma unroll
        for (int q = 0; q < P; q++) dc[g][m] += t[m][q] * mine[m * PADDED + q];
        mean[m] += r[g][m] * dc[g][m];
        float c = a[m] * r[g][m];
#pragma unroll
        for (int q = 0; q < P; q++) du[m * P + q] += c * t[m][q];
      }
    }
#pragma unroll
    for (int m = 0; m < IMAGES; m++) {
      int b = first_image + m;
      mean[m] = warp_sum(mean[m]);
      if (lane == 0 && b < batch && dactivations) {
        size_t place = (size_t)b * K + i;
        float value = mean[m] + dA[b];
        dactivations[place] = from_float<T>(value + (add_activations ? to_float(dactivations[place]) : 0.f));
      }
    }
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      int j = min(g * 32 + lane, N - 1);
#pragma unroll
      for (int m = 0; m < IMAGES; m++) {
        dc[g][m] = r[g][m] * a[m] * (dc[g][m] - mean[m]);  // now dlogit
        if (g * 32 + lane < N && first_image + m < batch)
          dlogits[((size_t)(first_image + m) * K + i) * N + j] = dc[g][m];
      }
#pragma unroll
      for (int q = 0; q < P; q++) {
        float w = shared[N * ROW1 + j * ROW2 + q];
#pragma unroll
        for (int m = 0; m < IMAGES; m++) du[m * P + q] += dc[g][m] * w;
      }
    }
    if (dposes) {
#pragma unroll
      for (int chunk = 0; chunk < (IMAGES * P + 31) / 32; chunk++) {
        float value = transpose_sum(du + chunk * 32, lane);
        int e = chunk * 32 + lane;
        int b = first_image + e / P;
        if (e < IMAGES * P && b < batch) {
          size_t place = ((size_t)b * K + i) * P + e % P;
          dposes[place] = from_float<T>(value + (add_poses ? to_float(dposes[place]) : 0.f));
        }
      }
    }
  }
}

// dW1, dW2 and db2 of PAIR lower capsules; a thread per (j, p).
constexpr int PAIR = 1, CHUNK = 64;
extern "C" __global__ void routing_backward_weights(const T* poses, const T* activations, const float* routing,
                                                    const float* dlogits, const float* dS, float* dw1, int add1,
                                                    float* dw2, int add2, float* db2, int addb, int batch, int K) {
  __shared__ __align__(16) float u[CHUNK][PAIR][PADDED];
  __shared__ float a[CHUNK][PAIR];
  int e = blockIdx.y * blockDim.x + threadIdx.x, first = blockIdx.x * PAIR;
  bool active = e < N * P;
  int j = active ? e % N : 0, p = active ? e / N : 0;
  float sum1[PAIR][P] = {}, sum2[PAIR] = {}, sumb[PAIR] = {};
  for (int start = 0; start < batch; start += CHUNK) {
    int count = min(CHUNK, batch - start);
    __syncthreads();
    for (int k = threadIdx.x; k < count * PAIR * P; k += blockDim.x) {
      int b = k / (PAIR * P), ii = k / P % PAIR, q = k % P;
      u[b][ii][q] = first + ii < K ? to_float(poses[((size_t)(start + b) * K + first + ii) * P + q]) : 0.f;
    }
    for (int k = threadIdx.x; k < count * PAIR; k += blockDim.x) {
      int b = k / PAIR, ii = k % PAIR;
      a[b][ii] = first + ii < K ? to_float(activations[(size_t)(start + b) * K + first + ii]) : 0.f;
    }
    __syncthreads();
    if (active) {
#pragma unroll 4
      for (int b = 0; b < count; b++) {
        float d = dS[(size_t)(start + b) * N * P + e];
#pragma unroll
        for (int ii = 0; ii < PAIR; ii++) {
          size_t place = ((size_t)(start + b) * K + min(first + ii, K - 1)) * N + j;
          float x = a[b][ii] * routing[place] * d;
          float l = dlogits[place];
#pragma unroll
          for (int q = 0; q < P; q++) sum1[ii][q] += x * u[b][ii][q];
          sum2[ii] += l * u[b][ii][p];
          sumb[ii] += l;
        }
      }
    }
  }
  if (!active) return;
#pragma unroll
  for (int ii = 0; ii < PAIR; ii++) {
    int i = first + ii;
    if (i >= K) continue;
    size_t place = ((size_t)i * N + j) * P + p;
    if (dw1) {
#pragma unroll
      for (int q = 0; q < P; q++) dw1[place * P + q] = (add1 ? dw1[place * P + q] : 0.f) + sum1[ii][q];
    }
    if (dw2) dw2[place] = (add2 ? dw2[place] : 0.f) + sum2[ii];
    if (db2 && p == 0) {
      size_t bias = (size_t)i * N + j;
      db2[bias] = (addb ? db2[bias] : 0.f) + sumb[ii];
    }
  }
}
