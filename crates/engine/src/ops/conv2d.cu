// Convolutions as plain loops, for shapes that cuDNN refuses (odd channel counts) and for images in f32. Correct for
// any shape and any padding; not fast. Weights are (out, kh, kw, in), f32 for `W` = float.

extern "C" __global__ void __launch_bounds__(256)
    direct_forward(const T* x, const T* w, T* y, int batch, int H, int W, int C, int OH, int OW, int K, int KH, int KW,
                   int stride, int top, int left) {
  EACH(i, (size_t)batch * OH * OW * K) {
    int k = (int)(i % K);
    size_t position = i / K;
    int ox = (int)(position % OW), oy = (int)(position / OW % OH), n = (int)(position / ((size_t)OW * OH));
    float sum = 0.f;
    for (int ky = 0; ky < KH; ky++) {
      int yy = oy * stride + ky - top;
      if (yy < 0 || yy >= H) continue;
      for (int kx = 0; kx < KW; kx++) {
        int xx = ox * stride + kx - left;
        if (xx < 0 || xx >= W) continue;
        const T* from = x + ((size_t)(n * H + yy) * W + xx) * C;
        const T* weight = w + ((size_t)(k * KH + ky) * KW + kx) * C;
        for (int c = 0; c < C; c++) sum += to_float(from[c]) * to_float(weight[c]);
      }
    }
    y[i] = from_float<T>(sum);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    direct_data_gradient(const T* dy, const T* w, T* dx, int add, int batch, int H, int W, int C, int OH, int OW, int K,
                         int KH, int KW, int stride, int top, int left) {
  EACH(i, (size_t)batch * H * W * C) {
    int c = (int)(i % C);
    size_t position = i / C;
    int xx = (int)(position % W), yy = (int)(position / W % H), n = (int)(position / ((size_t)W * H));
    float sum = 0.f;
    for (int ky = 0; ky < KH; ky++) {
      int oy = yy + top - ky;
      if (oy < 0 || oy % stride || oy / stride >= OH) continue;
      for (int kx = 0; kx < KW; kx++) {
        int ox = xx + left - kx;
        if (ox < 0 || ox % stride || ox / stride >= OW) continue;
        const T* from = dy + ((size_t)(n * OH + oy / stride) * OW + ox / stride) * K;
        for (int k = 0; k < K; k++)
          sum += to_float(from[k]) * to_float(w[((size_t)(k * KH + ky) * KW + kx) * C + c]);
      }
    }
    dx[i] = from_float<T>(add ? to_float(dx[i]) + sum : sum);
  }
}

// A block per weight: threads share the pixels, then add up in a fixed order.
extern "C" __global__ void __launch_bounds__(256)
    direct_weight_gradient(const T* x, const T* dy, float* dw, int add, int batch, int H, int W, int C, int OH, int OW,
                           int K, int KH, int KW, int stride, int top, int left) {
  __shared__ double scratch[33];
  size_t i = blockIdx.x;
  int c = (int)(i % C), kx = (int)(i / C % KW), ky = (int)(i / ((size_t)C * KW) % KH);
  int k = (int)(i / ((size_t)C * KW * KH));
  double sum = 0.0;
  size_t pixels = (size_t)batch * OH * OW;
  for (size_t p = threadIdx.x; p < pixels; p += blockDim.x) {
    int ox = (int)(p % OW), oy = (int)(p / OW % OH), n = (int)(p / ((size_t)OW * OH));
    int yy = oy * stride + ky - top, xx = ox * stride + kx - left;
    if (yy < 0 || yy >= H || xx < 0 || xx >= W) continue;
    sum += to_float(x[((size_t)(n * H + yy) * W + xx) * C + c]) * to_float(dy[p * K + k]);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) dw[i] = (add ? dw[i] : 0.f) + (float)sum;
}
