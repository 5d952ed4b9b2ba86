// Self-routing on tensor cores, in bf16, for N = 16 or 32 upper capsules and poses of at most 16 numbers; the formulas are
// those of self_routing.cu. Poses are padded to 16 numbers with zeros. A product has 16 images as its rows (or, for the
// weights' gradients, as its inner index); the sum over lower capsules runs through the loop, a lower capsule at a time.
// Routing coefficients and their gradients are kept in f32; they enter products rounded to bf16, as weights do.

constexpr int N = CAPSULES, P = POSE;
constexpr int TILES = N / 8;                 // groups of 8 upper capsules
constexpr int MATRIX = 64;                   // numbers of an 8 x 8 matrix
constexpr int VOTE = 4 * MATRIX;             // of W1 for a pair: matrices (p, q), (p, q + 8), (p + 8, q), (p + 8, q + 8)
constexpr int ROUTE = 2 * MATRIX;            // of W2 for 8 upper capsules: matrices (j, q), (j, q + 8)
constexpr int BIAS = N * VOTE + TILES * ROUTE;  // where b2 begins, in f32
constexpr int WEIGHTS = BIAS + 2 * N;        // bf16 numbers of a lower capsule
constexpr int STAGES = 3;
#define LOG2E 1.44269504f

// Weights of every lower capsule in the order above; a block has one.
extern "C" __global__ void __launch_bounds__(256) routing_arrange(const float* w1, const float* w2, const float* b2, bf16* to) {
  size_t i = blockIdx.x;
  to += i * WEIGHTS;
  for (int e = threadIdx.x; e < N * VOTE; e += blockDim.x) {
    int j = e / VOTE, matrix = e / MATRIX % 4, p = matrix / 2 * 8 + e / 8 % 8, q = matrix % 2 * 8 + e % 8;
    to[e] = from_float<bf16>(p < P && q < P ? w1[((i * N + j) * P + p) * P + q] : 0.f);
  }
  for (int e = threadIdx.x; e < TILES * ROUTE; e += blockDim.x) {
    int j = e / ROUTE * 8 + e / 8 % 8, q = e / MATRIX % 2 * 8 + e % 8;
    to[N * VOTE + e] = from_float<bf16>(q < P ? w2[(i * N + j) * P + q] : 0.f);
  }
  for (int j = threadIdx.x; j < N; j += blockDim.x) reinterpret_cast<float*>(to + BIAS)[j] = b2[i * N + j];
}

// The weights of lower capsule i to its place in shared memory; nothing from `end` on, but a group is always closed.
__device__ __forceinline__ void fetch_weights(u32 shared, const bf16* weights, int i, int end) {
  if (i < end) {
    u32 to = shared + (i % STAGES) * WEIGHTS * 2;
    const bf16* from = weights + (size_t)i * WEIGHTS;
    for (int e = threadIdx.x; e < WEIGHTS / 8; e += blockDim.x) copy_async(to + e * 16, from + e * 8);
  }
  copy_commit();
}

// Pose u of lower capsule i in 16 images as a left operand: rows of images b and b + 8 (clamped by the caller).
__device__ __forceinline__ u32 load_pose_pair(const bf16* pose, int q) {
  if (P == 16) return *reinterpret_cast<const u32*>(pose + q);
  u32 low = q < P ? pose[q].bits : 0, high = q + 1 < P ? pose[q + 1].bits : 0;
  return low | high << 16;
}
__device__ __forceinline__ void load_poses(u32* u, const bf16* poses, const int* b, int i, int K) {
  int q = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const bf16* pose = poses + ((size_t)b[half] * K + i) * P;
    u[half] = load_pose_pair(pose, q);
    u[half + 2] = load_pose_pair(pose, q + 8);
  }
}

// Forward: a warp has 16 images and 8 upper capsules; it computes all routing coefficients of its images.
extern "C" __global__ void __launch_bounds__(512, 1)
    routing_forward(const bf16* poses, const bf16* activations, const bf16* weights, float* routing, float* partial,
                    float* partial_a, int batch, int K, int per_split) {
  extern __shared__ __align__(128) unsigned char shared[];
  u32 base = shared_address(shared);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, part = lane & 3;
  int own = warp % TILES, first = (blockIdx.x * (16 / TILES) + warp / TILES) * 16;
  int image[2] = {first + group, first + group + 8}, b[2] = {min(image[0], batch - 1), min(image[1], batch - 1)};
  int start = blockIdx.y * per_split, end = min(start + per_split, K);
  float sum[8][2][4] = {}, weight_sum[4] = {}, a_sum[2] = {};
  u32 next_u[4];
  float next_a[2];
  fetch_weights(base, weights, start, end);
  fetch_weights(base, weights, start + 1, end);
  if (start < end) {
    load_poses(next_u, poses, b, start, K);
    for (int half = 0; half < 2; half++) next_a[half] = to_float(activations[(size_t)b[half] * K + start]);
  }
  for (int i = start; i < end; i++) {
    copy_wait<1>();
    __syncthreads();
    fetch_weights(base, weights, i + 2, end);
    u32 at = base + (i % STAGES) * WEIGHTS * 2;
    const float* bias = reinterpret_cast<const float*>(shared + (i % STAGES) * WEIGHTS * 2 + BIAS * 2);
    u32 u[4];
    float a[2];
#pragma unroll
    for (int e = 0; e < 4; e++) u[e] = next_u[e];
    a[0] = next_a[0];
    a[1] = next_a[1];
    int ahead = min(i + 1, end - 1);
    load_poses(next_u, poses, b, ahead, K);
#pragma unroll
    for (int half = 0; half < 2; half++) next_a[half] = to_float(activations[(size_t)b[half] * K + ahead]);

    float r[TILES][4];
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      float2 two = *reinterpret_cast<const float2*>(bias + t * 8 + part * 2);
      r[t][0] = r[t][2] = two.x;
      r[t][1] = r[t][3] = two.y;
    }
#pragma unroll
    for (int t = 0; t < TILES; t += 2) {
      u32 w[4];
      load_matrices(w, at + (N * VOTE + t * ROUTE) * 2 + lane * 16);
      multiply(r[t], u, w[0], w[1]);
      multiply(r[t + 1], u, w[2], w[3]);
    }
    float mine[4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float top = fmaxf(r[0][half * 2], r[0][half * 2 + 1]), total = 0.f;
#pragma unroll
      for (int t = 1; t < TILES; t++) top = fmaxf(top, fmaxf(r[t][half * 2], r[t][half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
#pragma unroll
      for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int e = half * 2; e < half * 2 + 2; e++) {
          r[t][e] = exp2_fast((r[t][e] - top) * LOG2E);
          total += r[t][e];
          if (t == own) mine[e] = r[t][e];
        }
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      float inverse = 1.f / total;
      mine[half * 2] *= inverse;
      mine[half * 2 + 1] *= inverse;
      if (image[half] < batch)
        *reinterpret_cast<float2*>(routing + ((size_t)b[half] * K + i) * N + own * 8 + part * 2) =
            make_float2(mine[half * 2], mine[half * 2 + 1]);
#pragma unroll
      for (int e = half * 2; e < half * 2 + 2; e++) {
        mine[e] *= a[half];  // now c
        weight_sum[e] += mine[e];
      }
      a_sum[half] += a[half];
    }
    u32 c[2] = {pack_bf16(mine[0], mine[1]), pack_bf16(mine[2], mine[3])};
#pragma unroll
    for (int two = 0; two < 4; two++) {
      u32 c0 = __shfl_sync(0xffffffffu, c[0], (lane & 28) | two), c1 = __shfl_sync(0xffffffffu, c[1], (lane & 28) | two);
#pragma unroll
      for (int odd = 0; odd < 2; odd++) {
        u32 s0 = __byte_perm(c0, 0, odd ? 0x3232 : 0x1010), s1 = __byte_perm(c1, 0, odd ? 0x3232 : 0x1010);
        u32 scaled[4] = {multiply_pairs(u[0], s0), multiply_pairs(u[1], s1), multiply_pairs(u[2], s0),
                         multiply_pairs(u[3], s1)};
        u32 w[4];
        load_matrices(w, at + (own * 8 + two * 2 + odd) * VOTE * 2 + lane * 16);
        multiply(sum[two * 2 + odd][0], scaled, w[0], w[1]);
        multiply(sum[two * 2 + odd][1], scaled, w[2], w[3]);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    if (image[half] >= batch) continue;
    size_t row = (size_t)blockIdx.y * batch + image[half];
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          int p = t * 8 + part * 2 + e;
          if (p < P) partial[(row * N + own * 8 + j) * (P + 1) + p] = sum[j][t][half * 2 + e];
        }
#pragma unroll
    for (int e = 0; e < 2; e++)
      partial[(row * N + own * 8 + part * 2 + e) * (P + 1) + P] = weight_sum[half * 2 + e];
    if (own == 0 && part == 0) partial_a[row] = a_sum[half];
  }
}
