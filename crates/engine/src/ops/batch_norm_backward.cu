// The gradients of batch_norm.cu, which goes before this text.

// How the gradient of the output becomes that of the sum before the ReLU.
// MASK 0: there is no ReLU; 1: the sum is x * scale + shift, computed again; 2: the output says where it is positive.
template <int MASK>
__device__ __forceinline__ void mask_gradient(Channels<V>& g, const Channels<V>& x, const Channels<V>& a,
                                              const Channels<V>& b, const Channels<V>& out) {
#pragma unroll
  for (int i = 0; i < V; i++) {
    if (MASK == 1 && x.v[i] * a.v[i] + b.v[i] <= 0.f) g.v[i] = 0.f;
    if (MASK == 2 && out.v[i] <= 0.f) g.v[i] = 0.f;
  }
}

// Where row `row` lies in images that are one pixel wider and higher.
__device__ __forceinline__ int bordered_row(int row, int border, Divisor by_height, Divisor by_width, int width) {
  if (!border) return row;
  int line = divide(row, by_width);  // over all images
  return row + line + divide(line, by_height) * (width + 1);
}

#define LAYOUT_PARAMETERS                                                                                    \
  int border, int height, int width, u32 height_multiplier, int height_shift, u32 width_multiplier, int width_shift
#define LAYOUT_ARGUMENTS border, {height_multiplier, height_shift}, {width_multiplier, width_shift}, width

// Sums of g and g * (x - mean). With `masked`, g is written there (it may be dy itself).
template <int MASK>
__device__ __forceinline__ void sums(const G* dy, const T* x, const G* y, const float* mean, const float* scale,
                                     const float* shift, G* masked, float* partial, int rows, int C, int columns,
                                     int border, Divisor by_height, Divisor by_width, int width) {
  Walk w = walk(C, columns);
  float sum[V] = {}, product[V] = {};
  if (w.active) {
    Channels<V> m, a, b;
    load_channels(m, mean + w.channel);
    if (MASK == 1) {
      load_channels(a, scale + w.channel);
      load_channels(b, shift + w.channel);
    }
    int step = gridDim.x * w.lines;
    for (int row = blockIdx.x * w.lines + w.line; row < rows; row += step) {
      size_t place = (size_t)row * C + w.channel;
      size_t outer = (size_t)bordered_row(row, border, by_height, by_width, width) * C + w.channel;
      Channels<V> g, c, out;
      load_channels(g, dy + outer);
      load_channels(c, x + place);
      if (MASK == 2) load_channels(out, y + outer);
      mask_gradient<MASK>(g, c, a, b, out);
      if (MASK == 2 && masked) store_channels(masked + place, g);
#pragma unroll
      for (int i = 0; i < V; i++) {
        sum[i] += g.v[i];
        product[i] += g.v[i] * (c.v[i] - m.v[i]);
      }
    }
  }
  write_partial(w, sum, product, partial, C, columns);
}
#define BACKWARD_SUMS(NAME, MASK)                                                                                     \
  extern "C" __global__ void __launch_bounds__(256, 4)                                                                \
      NAME(const G* dy, const T* x, const G* y, const float* mean, const float* scale, const float* shift, G* masked, \
           float* partial, int rows, int C, int columns, LAYOUT_PARAMETERS) {                                         \
    sums<MASK>(dy, x, y, mean, scale, shift, masked, partial, rows, C, columns, LAYOUT_ARGUMENTS);                    \
  }
BACKWARD_SUMS(backward_sums_0, 0)
BACKWARD_SUMS(backward_sums_1, 1)
BACKWARD_SUMS(backward_sums_2, 2)

// The numbers of dx = g * ca + x * cb + cc, from the sums of g and g * xh over `rows` rows.
__device__ __forceinline__ void write_coefficients(int channel, double sum, double product, int rows,
                                                   const float* gamma, const float* mean, const float* inverse,
                                                   float* ca, float* cb, float* cc) {
  double a = (double)gamma[channel] * inverse[channel];
  double b = -a * inverse[channel] * product / rows;
  ca[channel] = (float)a;
  cb[channel] = (float)b;
  cc[channel] = (float)(-a * sum / rows - b * mean[channel]);
}

// Gradients of gamma and beta, and the numbers of dx.
extern "C" __global__ void __launch_bounds__(1024)
    finish_backward(const float* partial, int blocks, int rows, int C, const float* gamma, const float* mean,
                    const float* inverse, float* dgamma, int add_gamma, float* dbeta, int add_beta, float* ca,
                    float* cb, float* cc) {
  int channel = blockIdx.x * 32 + (threadIdx.x & 31);
  double sum, product;
  add_partials(partial, blocks, C, channel, sum, product);
  if (threadIdx.x >= 32 || channel >= C) return;
  product *= inverse[channel];
  if (dgamma) dgamma[channel] = (add_gamma ? dgamma[channel] : 0.f) + (float)product;
  if (dbeta) dbeta[channel] = (add_beta ? dbeta[channel] : 0.f) + (float)sum;
  write_coefficients(channel, sum, product, rows, gamma, mean, inverse, ca, cb, cc);
}

// Of several ranks: this one's share of the gradients of gamma and beta, and its sums of g and g * xh.
extern "C" __global__ void __launch_bounds__(1024)
    rank_sums(const float* partial, int blocks, int C, const float* inverse, float* dgamma, int add_gamma, float* dbeta,
              int add_beta, double* sums) {
  int channel = blockIdx.x * 32 + (threadIdx.x & 31);
  double sum, product;
  add_partials(partial, blocks, C, channel, sum, product);
  if (threadIdx.x >= 32 || channel >= C) return;
  product *= inverse[channel];
  if (dgamma) dgamma[channel] = (add_gamma ? dgamma[channel] : 0.f) + (float)product;
  if (dbeta) dbeta[channel] = (add_beta ? dbeta[channel] : 0.f) + (float)sum;
  sums[channel] = sum;
  sums[C + channel] = product;
}

// The numbers of dx from the sums of all ranks, which have `rows` rows together.
extern "C" __global__ void finish_rank_sums(const double* sums, int rows, int C, const float* gamma, const float* mean,
                                            const float* inverse, float* ca, float* cb, float* cc) {
  int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= C) return;
  write_coefficients(channel, sums[channel], sums[C + channel], rows, gamma, mean, inverse, ca, cb, cc);
}

// dx = g * ca + x * cb + cc
template <int MASK>
__device__ __forceinline__ void input_gradient(const G* dy, const T* x, const float* scale, const float* shift,
                                               const float* ca, const float* cb, const float* cc, G* dx, int add,
                                               int rows, int C, int columns, int border, Divisor by_height,
                                               Divisor by_width, int width) {
  Walk w = walk(C, columns);
  if (!w.active) return;
  Channels<V> a, b, ga, gb, gc;
  if (MASK == 1) {
    load_channels(a, scale + w.channel);
    load_channels(b, shift + w.channel);
  }
  load_channels(ga, ca + w.channel);
  load_channels(gb, cb + w.channel);
  load_channels(gc, cc + w.channel);
  int step = gridDim.x * w.lines;
#pragma unroll 2
  for (int row = blockIdx.x * w.lines + w.line; row < rows; row += step) {
    size_t place = (size_t)row * C + w.channel;
    size_t outer = (size_t)bordered_row(row, border, by_height, by_width, width) * C + w.channel;
    Channels<V> g, c;
    load_channels(g, dy + outer);
    load_channels(c, x + place);
    mask_gradient<MASK>(g, c, a, b, c);
#pragma unroll
    for (int i = 0; i < V; i++) g.v[i] = g.v[i] * ga.v[i] + c.v[i] * gb.v[i] + gc.v[i];
    if (add) {
      Channels<V> before;
      load_channels(before, dx + place);
#pragma unroll
      for (int i = 0; i < V; i++) g.v[i] += before.v[i];
    }
    store_channels(dx + place, g);
  }
}
#define BACKWARD_APPLY(NAME, MASK)                                                                                    \
  extern "C" __global__ void __launch_bounds__(256)                                                                   \
      NAME(const G* dy, const T* x, const float* scale, const float* shift, const float* ca, const float* cb,         \
           const float* cc, G* dx, int add, int rows, int C, int columns, LAYOUT_PARAMETERS) {                        \
    input_gradient<MASK>(dy, x, scale, shift, ca, cb, cc, dx, add, rows, C, columns, LAYOUT_ARGUMENTS);               \
  }
BACKWARD_APPLY(backward_apply_0, 0)
BACKWARD_APPLY(backward_apply_1, 1)

// Both batch norms of a block's end at once, which have the same gradient g: that of x and that of the shortcut. Sums of
// g, g * (x - mean) and g * (shortcut - its mean); g is written to `masked` (it may be dy itself).
extern "C" __global__ void __launch_bounds__(256, 3)
    backward_sums_both(const G* dy, const G* y, const T* x, const float* mean, const T* shortcut,
                       const float* shortcut_mean, G* masked, float* partial, float* shortcut_partial, int rows, int C,
                       int columns) {
  Walk w = walk(C, columns);
  float sum[V] = {}, product[V] = {}, other[V] = {};
  if (w.active) {
    Channels<V> m, n;
    load_channels(m, mean + w.channel);
    load_channels(n, shortcut_mean + w.channel);
    int step = gridDim.x * w.lines;
    for (int row = blockIdx.x * w.lines + w.line; row < rows; row += step) {
      size_t place = (size_t)row * C + w.channel;
      Channels<V> g, c, d, out;
      load_channels(g, dy + place);
      load_channels(out, y + place);
      load_channels(c, x + place);
      load_channels(d, shortcut + place);
      mask_gradient<2>(g, c, c, c, out);
      store_channels(masked + place, g);
#pragma unroll
      for (int i = 0; i < V; i++) {
        sum[i] += g.v[i];
        product[i] += g.v[i] * (c.v[i] - m.v[i]);
        other[i] += g.v[i] * (d.v[i] - n.v[i]);
      }
    }
  }
  write_partial(w, sum, product, partial, C, columns);
  __syncthreads();
  write_partial(w, sum, other, shortcut_partial, C, columns);
}

// dx = g * ca + x * cb + cc, and the same of the shortcut.
extern "C" __global__ void __launch_bounds__(256, 2)
    backward_apply_both(const G* g, const T* x, const float* ca, const float* cb, const float* cc, G* dx, int add,
                        const T* shortcut, const float* sa, const float* sb, const float* sc, G* dshortcut,
                        int add_shortcut, int rows, int C, int columns) {
  Walk w = walk(C, columns);
  if (!w.active) return;
  Channels<V> a, b, c, d, e, f;
  load_channels(a, ca + w.channel);
  load_channels(b, cb + w.channel);
  load_channels(c, cc + w.channel);
  load_channels(d, sa + w.channel);
  load_channels(e, sb + w.channel);
  load_channels(f, sc + w.channel);
  int step = gridDim.x * w.lines;
  // Two rows in flight: both are read before anything is written.
  for (int row = blockIdx.x * w.lines + w.line; row < rows; row += 2 * step) {
    int count = row + step < rows ? 2 : 1;
    Channels<V> gradient[2], u[2], v[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
      if (k >= count) continue;
      size_t place = (size_t)(row + k * step) * C + w.channel;
      load_channels(gradient[k], g + place);
      load_channels(u[k], x + place);
      load_channels(v[k], shortcut + place);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
      if (k >= count) continue;
      size_t place = (size_t)(row + k * step) * C + w.channel;
      Channels<V> before = {}, before_shortcut = {};
      if (add) load_channels(before, dx + place);
      if (add_shortcut) load_channels(before_shortcut, dshortcut + place);
#pragma unroll
      for (int i = 0; i < V; i++) {
        u[k].v[i] = gradient[k].v[i] * a.v[i] + u[k].v[i] * b.v[i] + c.v[i] + before.v[i];
        v[k].v[i] = gradient[k].v[i] * d.v[i] + v[k].v[i] * e.v[i] + f.v[i] + before_shortcut.v[i];
      }
      store_channels(dx + place, u[k]);
      store_channels(dshortcut + place, v[k]);
    }
  }
}
