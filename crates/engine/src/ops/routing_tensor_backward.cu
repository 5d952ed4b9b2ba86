// The gradients of routing_tensor.cu, which goes before this text.

// Gradients of S (as (n, N, 16), and turned as (N, 16, padded images)), s and A; a warp per image, padded ones too.
extern "C" __global__ void routing_backward_prepare(const float* dactivations, const float* dposes,
                                                    const float* activations, const float* poses,
                                                    const float* weight_sum, const float* a_sum, int batch, bf16* dS,
                                                    float* ds, float* dA, int padded, bf16* dS_turned) {
  int b = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, j = threadIdx.x & 31;
  if (b >= padded) return;
  bool real = b < batch && j < N;
  size_t i = (size_t)b * N + j;
  float inverse = real ? 1.f / weight_sum[i] : 0.f, dot = 0.f;
  for (int p = 0; p < 16 && j < N; p++) {
    float d = real && p < P && dposes ? dposes[i * P + p] * inverse : 0.f;
    dS[i * 16 + p] = from_float<bf16>(d);
    dS_turned[((size_t)j * 16 + p) * padded + b] = from_float<bf16>(d);
    dot += real && p < P ? d * poses[i * P + p] : 0.f;
  }
  if (b >= batch) return;
  float d = real && dactivations ? dactivations[i] / a_sum[b] : 0.f;
  if (real) ds[i] = d - dot;
  float total = warp_sum(real ? d * activations[i] : 0.f);
  if (j == 0) dA[b] = -total;
}

// du, da and dlogit: a warp has 16 images and all upper capsules, whose dS stay in registers.
extern "C" __global__ void __launch_bounds__(256, 1)
    routing_backward_inputs(const bf16* poses, const bf16* activations, const bf16* weights, const float* routing,
                            const bf16* dS, const float* ds, const float* dA, float* dlogits, bf16* dposes, int add_poses,
                            bf16* dactivations, int add_activations, int batch, int K, int per_split) {
  extern __shared__ __align__(128) unsigned char shared[];
  u32 base = shared_address(shared);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, part = lane & 3;
  int first = (blockIdx.x * 8 + warp) * 16;
  int image[2] = {first + group, first + group + 8}, b[2] = {min(image[0], batch - 1), min(image[1], batch - 1)};
  int start = blockIdx.y * per_split, end = min(start + per_split, K);
  fetch_weights(base, weights, start, end);
  fetch_weights(base, weights, start + 1, end);
  u32 d[N][4];
#pragma unroll
  for (int j = 0; j < N; j++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      d[j][e] = *reinterpret_cast<const u32*>(dS + ((size_t)b[e & 1] * N + j) * 16 + (e >> 1) * 8 + part * 2);
  for (int i = start; i < end; i++) {
    u32 u[4];
    float a[2], r[TILES][4];
    load_poses(u, poses, b, i, K);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      size_t row = (size_t)b[half] * K + i;
      a[half] = to_float(activations[row]);
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        float2 two = *reinterpret_cast<const float2*>(routing + row * N + t * 8 + part * 2);
        r[t][half * 2] = two.x;
        r[t][half * 2 + 1] = two.y;
      }
    }
    copy_wait<1>();
    __syncthreads();
    fetch_weights(base, weights, i + 2, end);
    u32 at = base + (i % STAGES) * WEIGHTS * 2;
    float du[2][4] = {}, dc[TILES][4], mean[2] = {0.f, 0.f};
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      float dot[2][8];
      u32 c[2] = {pack_bf16(a[0] * r[t][0], a[0] * r[t][1]), pack_bf16(a[1] * r[t][2], a[1] * r[t][3])};
#pragma unroll
      for (int two = 0; two < 4; two++) {
        u32 c0 = __shfl_sync(0xffffffffu, c[0], (lane & 28) | two);
        u32 c1 = __shfl_sync(0xffffffffu, c[1], (lane & 28) | two);
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
          const int j = t * 8 + two * 2 + odd;
          u32 w[4];
          float v[2][4] = {};
          load_matrices_transposed(w, at + j * VOTE * 2 + lane * 16);
          multiply(v[0], d[j], w[0], w[2]);
          multiply(v[1], d[j], w[1], w[3]);
          float factor[2] = {odd ? high_half(c0) : low_half(c0), odd ? high_half(c1) : low_half(c1)};
#pragma unroll
          for (int half = 0; half < 2; half++) {
            dot[half][two * 2 + odd] = v[0][half * 2] * low_half(u[half]) + v[0][half * 2 + 1] * high_half(u[half]) +
                                       v[1][half * 2] * low_half(u[half + 2]) + v[1][half * 2 + 1] * high_half(u[half + 2]);
#pragma unroll
            for (int e = half * 2; e < half * 2 + 2; e++) {
              du[0][e] += factor[half] * v[0][e];
              du[1][e] += factor[half] * v[1][e];
            }
          }
        }
      }
      // Sums over the four lanes of a row; each lane gets those of its two capsules.
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float* v = dot[half];
#pragma unroll
        for (int k = 0; k < 4; k++) {
          float send = part & 2 ? v[k] : v[k + 4], keep = part & 2 ? v[k + 4] : v[k];
          v[k] = keep + __shfl_xor_sync(0xffffffffu, send, 2);
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
          float send = part & 1 ? v[k] : v[k + 2], keep = part & 1 ? v[k + 2] : v[k];
          v[k] = keep + __shfl_xor_sync(0xffffffffu, send, 1);
        }
        float2 more = *reinterpret_cast<const float2*>(ds + (size_t)b[half] * N + t * 8 + part * 2);
        dc[t][half * 2] = v[0] + more.x;
        dc[t][half * 2 + 1] = v[1] + more.y;
        mean[half] += r[t][half * 2] * dc[t][half * 2] + r[t][half * 2 + 1] * dc[t][half * 2 + 1];
      }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      mean[half] += __shfl_xor_sync(0xffffffffu, mean[half], 1);
      mean[half] += __shfl_xor_sync(0xffffffffu, mean[half], 2);
      size_t row = (size_t)b[half] * K + i;
#pragma unroll
      for (int t = 0; t < TILES; t++) {
#pragma unroll
        for (int e = half * 2; e < half * 2 + 2; e++) dc[t][e] = r[t][e] * a[half] * (dc[t][e] - mean[half]);  // dlogit
        if (image[half] < batch)
          *reinterpret_cast<float2*>(dlogits + row * N + t * 8 + part * 2) =
              make_float2(dc[t][half * 2], dc[t][half * 2 + 1]);
      }
      if (part == 0 && image[half] < batch && dactivations)
        dactivations[row] =
            from_float<bf16>(mean[half] + dA[b[half]] + (add_activations ? to_float(dactivations[row]) : 0.f));
    }
#pragma unroll
    for (int t = 0; t < TILES; t += 2) {
      u32 w[4], l[4] = {pack_bf16(dc[t][0], dc[t][1]), pack_bf16(dc[t][2], dc[t][3]),
                        pack_bf16(dc[t + 1][0], dc[t + 1][1]), pack_bf16(dc[t + 1][2], dc[t + 1][3])};
      load_matrices_transposed(w, at + (N * VOTE + t * ROUTE) * 2 + lane * 16);
      multiply(du[0], l, w[0], w[2]);
      multiply(du[1], l, w[1], w[3]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      if (image[half] >= batch || !dposes) continue;
      bf16* to = dposes + ((size_t)b[half] * K + i) * P;
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          int q = t * 8 + part * 2 + e;
          if (q < P) to[q] = from_float<bf16>(du[t][half * 2 + e] + (add_poses ? to_float(to[q]) : 0.f));
        }
    }
  }
}

// dW1, dW2 and db2 of LOWER lower capsules: images are the inner index. A warp has OWN upper capsules of all of them.
constexpr int LOWER = 4, CHUNK = 128, OWN = N / 16;
constexpr int LINE = CHUNK / 2 + 1;          // words of a row of image pairs, odd
constexpr int BLOCK = N * LINE + 1;          // words of a lower capsule
constexpr int QUADS = LOWER * N / 4;
extern "C" __global__ void __launch_bounds__(512, 1)
    routing_backward_weights(const bf16* poses, const bf16* activations, const float* routing, const float* dlogits,
                             const bf16* dS_turned, float* dw1, int add1, float* dw2, int add2, float* db2, int addb,
                             int batch, int K, int padded) {
  extern __shared__ __align__(128) unsigned char shared[];
  bf16* u = reinterpret_cast<bf16*>(shared);                           // (LOWER, CHUNK / 8, 2, 8, 8)
  u32* c = reinterpret_cast<u32*>(u + LOWER * CHUNK * 16);             // pairs of images, by capsule
  u32* l = c + LOWER * BLOCK;
  u32 poses_at = shared_address(u);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, part = lane & 3;
  int first = blockIdx.x * LOWER;
  int route_lower = warp % LOWER, route_tile = warp / LOWER;           // of dW2: 16 upper capsules of one lower
  float sum[OWN][LOWER][2][4] = {}, route[2][4] = {}, bias[4] = {};
  for (int start = 0; start < padded; start += CHUNK) {
    __syncthreads();
    for (int e = threadIdx.x; e < CHUNK / 2 * QUADS; e += blockDim.x) {
      int quad = e % QUADS, pair = e / QUADS, lower = quad * 4 / N, j = quad * 4 % N;
      float cs[2][4] = {}, ls[2][4] = {};
#pragma unroll
      for (int k = 0; k < 2; k++) {
        int image = start + pair * 2 + k;
        if (image >= batch) continue;
        size_t row = (size_t)image * K + first + lower;
        float a = to_float(activations[row]);
        float4 r = *reinterpret_cast<const float4*>(routing + row * N + j);
        float4 g = *reinterpret_cast<const float4*>(dlogits + row * N + j);
        cs[k][0] = a * r.x; cs[k][1] = a * r.y; cs[k][2] = a * r.z; cs[k][3] = a * r.w;
        ls[k][0] = g.x; ls[k][1] = g.y; ls[k][2] = g.z; ls[k][3] = g.w;
      }
#pragma unroll
      for (int k = 0; k < 4; k++) {
        int place = lower * BLOCK + (j + k) * LINE + pair;
        c[place] = pack_bf16(cs[0][k], cs[1][k]);
        l[place] = pack_bf16(ls[0][k], ls[1][k]);
      }
    }
    for (int e = threadIdx.x; e < CHUNK * LOWER * 2; e += blockDim.x) {
      int half = e % 2, lower = e / 2 % LOWER, row = e / (2 * LOWER), image = start + row;
      const bf16* pose = poses + ((size_t)min(image, batch - 1) * K + first + lower) * P;
      u32 words[4];
#pragma unroll
      for (int k = 0; k < 4; k++) words[k] = image < batch ? load_pose_pair(pose, half * 8 + k * 2) : 0;
      uint4 all = {words[0], words[1], words[2], words[3]};
      *reinterpret_cast<uint4*>(u + ((lower * (CHUNK / 8) + row / 8) * 2 + half) * MATRIX + row % 8 * 8) = all;
    }
    __syncthreads();
    for (int step = 0; step < CHUNK / 16; step++) {
      u32 v[LOWER][4];
#pragma unroll
      for (int lower = 0; lower < LOWER; lower++)
        load_matrices_transposed(v[lower], poses_at + ((lower * (CHUNK / 8) + step * 2) * 2 * MATRIX) * 2 + lane * 16);
#pragma unroll
      for (int k = 0; k < OWN; k++) {
        int j = warp * OWN + k;
        const bf16* from = dS_turned + ((size_t)j * 16 + group) * padded + start + step * 16 + part * 2;
        u32 d[4] = {*reinterpret_cast<const u32*>(from), *reinterpret_cast<const u32*>(from + (size_t)8 * padded),
                    *reinterpret_cast<const u32*>(from + 8), *reinterpret_cast<const u32*>(from + (size_t)8 * padded + 8)};
#pragma unroll
        for (int lower = 0; lower < LOWER; lower++) {
          const u32* pairs = c + lower * BLOCK + j * LINE + step * 8 + part;
          u32 c0 = pairs[0], c1 = pairs[4];
          multiply(sum[k][lower][0], d, multiply_pairs(v[lower][0], c0), multiply_pairs(v[lower][2], c1));
          multiply(sum[k][lower][1], d, multiply_pairs(v[lower][1], c0), multiply_pairs(v[lower][3], c1));
        }
      }
      if (route_tile < N / 16) {
        u32 w[4];
        load_matrices_transposed(w, poses_at + ((route_lower * (CHUNK / 8) + step * 2) * 2 * MATRIX) * 2 + lane * 16);
        const u32* pairs = l + route_lower * BLOCK + (route_tile * 16 + group) * LINE + step * 8 + part;
        u32 d[4] = {pairs[0], pairs[8 * LINE], pairs[4], pairs[8 * LINE + 4]};
        multiply(route[0], d, w[0], w[2]);
        multiply(route[1], d, w[1], w[3]);
        multiply(bias, d, 0x3f803f80u, 0x3f803f80u);
      }
    }
  }
#pragma unroll
  for (int e = 0; e < 4; e++) {
    int row = group + (e >> 1) * 8;
#pragma unroll
    for (int t = 0; t < 2; t++) {
      int q = t * 8 + part * 2 + (e & 1);
      if (q >= P) continue;
      if (dw1 && row < P) {
#pragma unroll
        for (int k = 0; k < OWN; k++)
#pragma unroll
          for (int lower = 0; lower < LOWER; lower++) {
            float* to = dw1 + (((size_t)(first + lower) * N + warp * OWN + k) * P + row) * P + q;
            *to = (add1 ? *to : 0.f) + sum[k][lower][t][e];
          }
      }
      if (dw2 && route_tile < N / 16) {
        float* to = dw2 + ((size_t)(first + route_lower) * N + route_tile * 16 + row) * P + q;
        *to = (add2 ? *to : 0.f) + route[t][e];
      }
    }
    if (db2 && route_tile < N / 16 && part == 0 && (e & 1) == 0) {
      float* to = db2 + (size_t)(first + route_lower) * N + route_tile * 16 + row;
      *to = (addb ? *to : 0.f) + bias[e];
    }
  }
}
