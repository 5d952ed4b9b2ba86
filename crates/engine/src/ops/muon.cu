// The elementwise parts of Muon, as in muon.rs.

// m = momentum m + d, x = d + momentum m, with d = g + weight_decay p.
extern "C" __global__ void __launch_bounds__(256)
    muon_momentum(const float* p, const float* g, float* m, T* x, i64 count, float weight_decay, float momentum) {
  EACH(i, (size_t)count) {
    float d = g[i] + weight_decay * p[i];
    float first = momentum * m[i] + d;
    m[i] = first;
    x[i] = from_float<T>(d + momentum * first);
  }
}

// One over the root of the trace of products(side, side); 0 where there is nothing to scale. One block.
extern "C" __global__ void __launch_bounds__(256) muon_norm(const float* products, float* factor, int side) {
  __shared__ float parts[256];
  float sum = 0.f;
  for (int i = threadIdx.x; i < side; i += 256) sum += products[(size_t)i * side + i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) factor[0] = parts[0] > 0.f ? rsqrtf(parts[0]) : 0.f;
}

extern "C" __global__ void __launch_bounds__(256) muon_scale(T* x, const float* factor, i64 count) {
  float scale = factor[0];
  EACH(i, (size_t)count) x[i] = from_float<T>(to_float(x[i]) * scale);
}

// square = b gram + c square
extern "C" __global__ void __launch_bounds__(256)
    muon_polynomial(const T* gram, T* square, i64 count, float b, float c) {
  EACH(i, (size_t)count) square[i] = from_float<T>(b * to_float(gram[i]) + c * to_float(square[i]));
}

// p -= scale x
extern "C" __global__ void __launch_bounds__(256) muon_apply(float* p, const T* x, i64 count, float scale) {
  EACH(i, (size_t)count) p[i] -= scale * to_float(x[i]);
}
