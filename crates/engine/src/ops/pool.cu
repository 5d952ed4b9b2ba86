// Pooling of maps (n, h, w, C): maxima of 3x3 windows with stride 2 that hang over at the right and the bottom, and
// means over all pixels.

// y = the largest of a window; choice: which of its cells. Cells outside of the map count as `outside`
// (which they can win, and then nothing flows back: choice 255).
extern "C" __global__ void __launch_bounds__(256)
    max_pool(const T* x, T* y, u8* choice, int batch, int H, int W, int C, int PH, int PW, int kernel, int stride,
             int top, int left, float outside) {
  EACH(i, (size_t)batch * PH * PW * C) {
    int c = (int)(i % C);
    size_t position = i / C;
    int px = (int)(position % PW), py = (int)(position / PW % PH), n = (int)(position / ((size_t)PW * PH));
    float best = 0.f;
    int which = 255;
    bool any = false;
    for (int ky = 0; ky < kernel; ky++)
      for (int kx = 0; kx < kernel; kx++) {
        int yy = py * stride + ky - top, xx = px * stride + kx - left;
        bool inside = yy >= 0 && yy < H && xx >= 0 && xx < W;
        float value = inside ? to_float(x[((size_t)(n * H + yy) * W + xx) * C + c]) : outside;
        if (!any || value > best) {
          any = true;
          best = value;
          which = inside ? ky * kernel + kx : 255;
        }
      }
    y[i] = from_float<T>(best);
    choice[i] = (u8)which;
  }
}

// Every cell of the map gathers from the windows that may have chosen it, in a fixed order.
extern "C" __global__ void __launch_bounds__(256)
    max_pool_backward(const T* dy, const u8* choice, T* dx, int add, int batch, int H, int W, int C, int PH, int PW,
                      int kernel, int stride, int top, int left) {
  EACH(i, (size_t)batch * H * W * C) {
    int c = (int)(i % C);
    size_t position = i / C;
    int xx = (int)(position % W), yy = (int)(position / W % H), n = (int)(position / ((size_t)W * H));
    float sum = 0.f;
    for (int ky = 0; ky < kernel; ky++) {
      int y0 = yy + top - ky;
      if (y0 < 0 || y0 % stride || y0 / stride >= PH) continue;
      for (int kx = 0; kx < kernel; kx++) {
        int x0 = xx + left - kx;
        if (x0 < 0 || x0 % stride || x0 / stride >= PW) continue;
        size_t place = ((size_t)(n * PH + y0 / stride) * PW + x0 / stride) * C + c;
        if (choice[place] == ky * kernel + kx) sum += to_float(dy[place]);
      }
    }
    dx[i] = from_float<T>(add ? to_float(dx[i]) + sum : sum);
  }
}

// y(n, C), f32: the mean over pixels; a thread per (n, c).
extern "C" __global__ void __launch_bounds__(256) mean_pool(const T* x, float* y, int batch, int pixels, int C) {
  EACH(i, (size_t)batch * C) {
    int n = (int)(i / C), c = (int)(i % C);
    float sum = 0.f;
    for (int p = 0; p < pixels; p++) sum += to_float(x[((size_t)n * pixels + p) * C + c]);
    y[i] = sum / pixels;
  }
}
extern "C" __global__ void __launch_bounds__(256)
    mean_pool_backward(const float* dy, T* dx, int add, int batch, int pixels, int C) {
  EACH(i, (size_t)batch * pixels * C) {
    int n = (int)(i / ((size_t)pixels * C)), c = (int)(i % C);
    float d = dy[(size_t)n * C + c] / pixels;
    dx[i] = from_float<T>(add ? to_float(dx[i]) + d : d);
  }
}

// Below, a thread has V neighbouring channels of a pixel.
constexpr int V = VECTOR;  // 8, or 1 where the number of channels is not a multiple of 8

// Where number i of a map (n, H, W, C) lies, in groups of V channels.
struct Place {
  int c, x, y, n;
};
__device__ __forceinline__ Place place_of(size_t i, int groups, int H, int W) {
  u32 position = (u32)(i / groups);
  return {(int)(i % groups) * V, (int)(position % W), (int)(position / W % H), (int)(position / ((u32)W * H))};
}

// A copy with zeros around: (n, H, W, C) to (n, OH, OW, C), and its gradient.
extern "C" __global__ void __launch_bounds__(256)
    pad(const T* x, T* y, int batch, int H, int W, int C, int top, int left, int OH, int OW) {
  int groups = C / V;
  EACH(i, (size_t)batch * OH * OW * groups) {
    Place at = place_of(i, groups, OH, OW);
    int c = at.c, xx = at.x - left, yy = at.y - top, n = at.n;
    Channels<V> v = {};
    if (yy >= 0 && yy < H && xx >= 0 && xx < W) load_channels(v, x + ((size_t)(n * H + yy) * W + xx) * C + c);
    store_channels(y + i * V, v);
  }
}
extern "C" __global__ void __launch_bounds__(256)
    pad_backward(const T* dy, T* dx, int add, int batch, int H, int W, int C, int top, int left, int OH, int OW) {
  int groups = C / V;
  EACH(i, (size_t)batch * H * W * groups) {
    Place at = place_of(i, groups, H, W);
    int c = at.c, xx = at.x + left, yy = at.y + top, n = at.n;
    Channels<V> d, before = {};
    load_channels(d, dy + ((size_t)(n * OH + yy) * OW + xx) * C + c);
    if (add) load_channels(before, dx + i * V);
#pragma unroll
    for (int k = 0; k < V; k++) d.v[k] += before.v[k];
    store_channels(dx + i * V, d);
  }
}

// Every `stride`-th pixel: (n, H, W, C) to (n, OH, OW, C). Its gradient, added to what is there, or with zeros between.
extern "C" __global__ void __launch_bounds__(256)
    subsample(const T* x, T* y, int batch, int H, int W, int C, int stride, int OH, int OW) {
  int groups = C / V;
  EACH(i, (size_t)batch * OH * OW * groups) {
    Place at = place_of(i, groups, OH, OW);
    int c = at.c, ox = at.x, oy = at.y, n = at.n;
    Channels<V> v;
    load_channels(v, x + ((size_t)(n * H + oy * stride) * W + ox * stride) * C + c);
    store_channels(y + i * V, v);
  }
}
extern "C" __global__ void __launch_bounds__(256)
    subsample_backward_add(const T* dy, T* dx, int batch, int H, int W, int C, int stride, int OH, int OW) {
  int groups = C / V;
  EACH(i, (size_t)batch * OH * OW * groups) {
    Place at = place_of(i, groups, OH, OW);
    int c = at.c, ox = at.x, oy = at.y, n = at.n;
    T* place = dx + ((size_t)(n * H + oy * stride) * W + ox * stride) * C + c;
    Channels<V> d, before;
    load_channels(d, dy + i * V);
    load_channels(before, place);
#pragma unroll
    for (int k = 0; k < V; k++) d.v[k] += before.v[k];
    store_channels(place, d);
  }
}
extern "C" __global__ void __launch_bounds__(256)
    subsample_backward_set(const T* dy, T* dx, int batch, int H, int W, int C, int stride, int OH, int OW) {
  int groups = C / V;
  EACH(i, (size_t)batch * H * W * groups) {
    Place at = place_of(i, groups, H, W);
    int c = at.c, xx = at.x, yy = at.y, n = at.n;
    Channels<V> d = {};
    if (xx % stride == 0 && yy % stride == 0 && xx / stride < OW && yy / stride < OH)
      load_channels(d, dy + ((size_t)(n * OH + yy / stride) * OW + xx / stride) * C + c);
    store_channels(dx + i * V, d);
  }
}
