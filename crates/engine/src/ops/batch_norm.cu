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

// What is kept of a channel, of which `rows` numbers have this mean and variance: y = x * scale + shift; running statistics
// (variance unbiased).
__device__ __forceinline__ void write_statistics(int channel, double mean, double variance, int rows, float epsilon,
                                                 float momentum, const float* gamma, const float* beta,
                                                 float* running_mean, float* running_variance, float* saved_mean,
                                                 float* saved_inverse, float* scale, float* shift) {
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

// Mean and variance of a single rank.
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
  write_statistics(channel, mean, variance, rows, epsilon, momentum, gamma, beta, running_mean, running_variance,
                   saved_mean, saved_inverse, scale, shift);
}

// Of several ranks: this one's sums of x and of its square about the running mean, which all ranks share.
extern "C" __global__ void __launch_bounds__(1024)
    rank_moments(const float* partial, int blocks, const T* x, int rows, int C, const float* pivot, double* sums) {
  int channel = blockIdx.x * 32 + (threadIdx.x & 31);
  double a, b;
  add_partials(partial, blocks, C, channel, a, b);
  if (threadIdx.x >= 32 || channel >= C) return;
  double offset = (double)to_float(x[channel]) - pivot[channel];
  sums[channel] = a + rows * offset;
  sums[C + channel] = b + offset * (2.0 * a + rows * offset);
}

// Mean and variance of all ranks, which have `rows` rows together, from the sums of all of them. The running mean is what
// they are about.
extern "C" __global__ void finish_ranks(const double* sums, int rows, int C, float epsilon, float momentum,
                                        const float* gamma, const float* beta, float* running_mean,
                                        float* running_variance, float* saved_mean, float* saved_inverse, float* scale,
                                        float* shift) {
  int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= C) return;
  double offset = sums[channel] / rows;
  double mean = running_mean[channel] + offset;
  double variance = fmax(sums[C + channel] / rows - offset * offset, 0.0);
  write_statistics(channel, mean, variance, rows, epsilon, momentum, gamma, beta, running_mean, running_variance,
                   saved_mean, saved_inverse, scale, shift);
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
