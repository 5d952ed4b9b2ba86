// Batch norm over rows (batch x height x width) of C channels, with optional residual and ReLU. V channels a thread.
//
// Threads of a block: `columns` groups of V channels x `lines` rows; a thread keeps its channels and walks over rows.
// Sums are per thread in f32 about the first row's value (so that they do not cancel), then per block, then in f64
// over the blocks: a fixed order for a given grid.

constexpr int V = VECTOR;  // 8, or 1 where the number of channels is not a multiple of 8

struct Walk {
  int channel, line, lines;
  bool active;
};

__device__ __forceinline__ Walk walk(int C, int columns) {
  Walk w;
  int column = threadIdx.x % columns;
  w.line = threadIdx.x / columns;
  w.lines = blockDim.x / columns;
  w.channel = (blockIdx.y * columns + column) * V;
  w.active = w.line < w.lines && w.channel < C;
  return w;
}

// Adds up a and b over the lines of a block and writes partial[block][0..1][C].
__device__ __forceinline__ void write_partial(const Walk& w, const float* a, const float* b, float* partial, int C,
                                              int columns) {
  __shared__ float sums[2][256 * V];
#pragma unroll
  for (int k = 0; k < V; k++) {
    sums[0][threadIdx.x * V + k] = a[k];
    sums[1][threadIdx.x * V + k] = b[k];
  }
  __syncthreads();
  for (int k = threadIdx.x; k < columns * V; k += blockDim.x) {
    int channel = blockIdx.y * columns * V + k;
    if (channel >= C) continue;
    float total_a = 0.f, total_b = 0.f;
    for (int line = 0; line < w.lines; line++) {
      total_a += sums[0][line * columns * V + k];
      total_b += sums[1][line * columns * V + k];
    }
    partial[(size_t)(blockIdx.x * 2) * C + channel] = total_a;
    partial[(size_t)(blockIdx.x * 2 + 1) * C + channel] = total_b;
  }
}

// Sums of x - x[0] and its square.
extern "C" __global__ void __launch_bounds__(256) statistics(const T* x, float* partial, int rows, int C,
                                                             int columns) {
  Walk w = walk(C, columns);
  float sum[V] = {}, square[V] = {};
  if (w.active) {
    Channels<V> origin;
    load_channels(origin, x + w.channel);
    int step = gridDim.x * w.lines;
    int row = blockIdx.x * w.lines + w.line;
    for (; row + 3 * step < rows; row += 4 * step) {
      Channels<V> c[4];
#pragma unroll
      for (int k = 0; k < 4; k++) load_channels(c[k], x + (size_t)(row + k * step) * C + w.channel);
#pragma unroll
      for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = 0; i < V; i++) {
          float d = c[k].v[i] - origin.v[i];
          sum[i] += d;
          square[i] += d * d;
        }
    }
    for (; row < rows; row += step) {
      Channels<V> c;
      load_channels(c, x + (size_t)row * C + w.channel);
#pragma unroll
      for (int i = 0; i < V; i++) {
        float d = c.v[i] - origin.v[i];
        sum[i] += d;
        square[i] += d * d;
      }
    }
  }
  write_partial(w, sum, square, partial, C, columns);
}

// Adds partial[blocks][2][C] over the blocks, in f64, for 32 channels a block: threads are 32 channels x 32 lines.
// The result is valid in line 0.
__device__ __forceinline__ void add_partials(const float* partial, int blocks, int C, int channel, double& a,
                                             double& b) {
  __shared__ double sums[2][32][33];
  int lane = threadIdx.x & 31, line = threadIdx.x >> 5;
  a = 0.0;
  b = 0.0;
  if (channel < C) {
#pragma unroll 4
    for (int block = line; block < blocks; block += 32) {
      a += partial[(size_t)(block * 2) * C + channel];
      b += partial[(size_t)(block * 2 + 1) * C + channel];
    }
  }
  sums[0][line][lane] = a;
  sums[1][line][lane] = b;
  __syncthreads();
  if (line == 0) {
    a = 0.0;
    b = 0.0;
    for (int k = 0; k < 32; k++) {
      a += sums[0][k][lane];
      b += sums[1][k][lane];
    }
  }
}

// Mean and variance; y = x * scale + shift; running statistics (variance unbiased).
extern "C" __global__ void __launch_bounds__(1024)
    finish_statistics(const float* partial, int blocks, const T* x, int rows, int C, float epsilon, float momentum,
                      const float* gamma, const float* beta, float* running_mean, float* running_variance,
                      float* saved_mean, float* saved_inverse, float* scale, float* shift) {
  int channel = blockIdx.x * 32 + (threadIdx.x & 31);
  double a, b;
  add_partials(partial, blocks, C, channel, a, b);
  if (threadIdx.x >= 32 || channel >= C) return;
  double offset = a / rows;
  double mean = to_float(x[channel]) + offset;
  double variance = fmax(b / rows - offset * offset, 0.0);
  float inverse = (float)(1.0 / sqrt(variance + epsilon));
  saved_mean[channel] = (float)mean;
  saved_inverse[channel] = inverse;
  scale[channel] = gamma[channel] * inverse;
  shift[channel] = beta[channel] - (float)mean * gamma[channel] * inverse;
  if (running_mean) {
    double unbiased = rows > 1 ? variance * rows / (rows - 1.0) : variance;
    running_mean[channel] += momentum * ((float)mean - running_mean[channel]);
    running_variance[channel] += momentum * ((float)unbiased - running_variance[channel]);
  }
}

// Evaluation: y = x * scale + shift from running statistics.
extern "C" __global__ void from_running(const float* running_mean, const float* running_variance, const float* gamma,
                                        const float* beta, float epsilon, int C, float* scale, float* shift) {
  int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= C) return;
  float inverse = (float)(1.0 / sqrt((double)running_variance[channel] + epsilon));
  scale[channel] = gamma[channel] * inverse;
  shift[channel] = beta[channel] - running_mean[channel] * gamma[channel] * inverse;
}

// Division by a number that the host knows: q = (high half of n * multiplier + n) >> shift, for n < 2^31.
struct Divisor {
  u32 multiplier;
  int shift;
};
__device__ __forceinline__ int divide(int n, Divisor d) {
  return (int)((__umulhi((u32)n, d.multiplier) + (u32)n) >> d.shift);
}

// relu(x * scale + shift + residual), where the residual may have its own scale and shift, as y in the type of values,
// as `rounded` in that of gradients, or both. With `border`, rows of the result are those of images one pixel larger
// at the right and the bottom, zero there.
extern "C" __global__ void __launch_bounds__(256)
    apply(const T* x, const float* scale, const float* shift, const T* residual, const float* residual_scale,
          const float* residual_shift, T* y, G* rounded, int out_rows, int C, int columns, int relu, int border, int height,
          int width, u32 lines_multiplier, int lines_shift, u32 columns_multiplier, int columns_shift) {
  // Of the larger image: height + 1 and width + 1.
  Divisor by_lines = {lines_multiplier, lines_shift}, by_columns = {columns_multiplier, columns_shift};
  Walk w = walk(C, columns);
  if (!w.active) return;
  Channels<V> a, b, ra, rb = {};
  load_channels(a, scale + w.channel);
  load_channels(b, shift + w.channel);
#pragma unroll
  for (int i = 0; i < V; i++) ra.v[i] = 1.f;
  if (residual_scale) {
    load_channels(ra, residual_scale + w.channel);
    load_channels(rb, residual_shift + w.channel);
  }
  int step = gridDim.x * w.lines;
#pragma unroll 2
  for (int out = blockIdx.x * w.lines + w.line; out < out_rows; out += step) {
    int row = out;
    bool inside = true;
    if (border) {
      int rest = divide(out, by_columns), column = out - rest * (width + 1);
      int image = divide(rest, by_lines), line = rest - image * (height + 1);
      inside = column < width && line < height;
      row = (image * height + line) * width + column;
    }
    Channels<V> c = {};
    if (inside) {
      load_channels(c, x + (size_t)row * C + w.channel);
#pragma unroll
      for (int i = 0; i < V; i++) c.v[i] = c.v[i] * a.v[i] + b.v[i];
      if (residual) {
        Channels<V> r;
        load_channels(r, residual + (size_t)row * C + w.channel);
#pragma unroll
        for (int i = 0; i < V; i++) c.v[i] += r.v[i] * ra.v[i] + rb.v[i];
      }
      if (relu) {
#pragma unroll
        for (int i = 0; i < V; i++) c.v[i] = fmaxf(c.v[i], 0.f);
      }
    }
    if (y) store_channels(y + (size_t)out * C + w.channel, c);
    if (rounded) store_channels(rounded + (size_t)out * C + w.channel, c);
  }
}

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

// Gradients of gamma and beta, and the numbers of dx = g * ca + x * cb + cc.
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
  double a = (double)gamma[channel] * inverse[channel];
  double b = -a * inverse[channel] * product / rows;
  ca[channel] = (float)a;
  cb[channel] = (float)b;
  cc[channel] = (float)(-a * sum / rows - b * mean[channel]);
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
