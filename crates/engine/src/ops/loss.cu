// The losses: f32 matrices of one row per sample to single numbers, summed in f64 in a fixed order. `dy` is the
// gradient of the single number, on the device.

__device__ __forceinline__ void put(float* to, size_t i, int add, float value) { to[i] = add ? to[i] + value : value; }

// out = offset + scale * sum of partial[count]; one block.
extern "C" __global__ void __launch_bounds__(256) finish_sum(const double* partial, int count, float scale,
                                                             float offset, float* out) {
  __shared__ double scratch[33];
  double sum = 0.0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) *out = (float)(offset + scale * sum);
}

#define WRITE_PARTIAL(sum)                    \
  __shared__ double scratch[33];              \
  double total = block_sum(sum, scratch);     \
  if (threadIdx.x == 0) partial[blockIdx.x] = total;

extern "C" __global__ void __launch_bounds__(256) mse(const float* u, const float* v, i64 count, double* partial) {
  double sum = 0.0;
  EACH(i, (size_t)count) {
    double d = (double)u[i] - v[i];
    sum += d * d;
  }
  WRITE_PARTIAL(sum)
}
extern "C" __global__ void __launch_bounds__(256)
    mse_backward(const float* dy, const float* u, const float* v, i64 count, float* du, int add_u, float* dv,
                 int add_v) {
  float scale = 2.f * *dy / count;
  EACH(i, (size_t)count) {
    float d = scale * (u[i] - v[i]);
    if (du) put(du, i, add_u, d);
    if (dv) put(dv, i, add_v, -d);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    cross_entropy(const float* p, const float* t, i64 count, float smallest, double* partial) {
  double sum = 0.0;
  EACH(i, (size_t)count) sum += (double)t[i] * log((double)fmaxf(p[i], smallest));
  WRITE_PARTIAL(sum)
}
extern "C" __global__ void __launch_bounds__(256)
    cross_entropy_backward(const float* dy, const float* p, const float* t, i64 count, int rows, float smallest,
                           float* dp, int add_p, float* dt, int add_t) {
  float scale = -*dy / rows;
  EACH(i, (size_t)count) {
    float safe = fmaxf(p[i], smallest);
    if (dp) put(dp, i, add_p, scale * t[i] / safe);
    if (dt) put(dt, i, add_t, scale * logf(safe));
  }
}

// Means and sqrt(var + epsilon) (unbiased) of columns: threads are 32 columns x 32 lines.
extern "C" __global__ void __launch_bounds__(1024)
    column_moments(const float* z, int rows, int C, double epsilon, float* means, float* roots) {
  __shared__ double lines[32][33];
  int lane = threadIdx.x & 31, line = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
  double sum = 0.0;
  if (column < C)
    for (int row = line; row < rows; row += 32) sum += z[(size_t)row * C + column];
  lines[line][lane] = sum;
  __syncthreads();
  double mean = 0.0;
  for (int k = 0; k < 32; k++) mean += lines[k][lane];
  mean /= rows;
  __syncthreads();
  sum = 0.0;
  if (column < C && roots)
    for (int row = line; row < rows; row += 32) {
      double d = z[(size_t)row * C + column] - mean;
      sum += d * d;
    }
  lines[line][lane] = sum;
  __syncthreads();
  if (line == 0 && column < C) {
    means[column] = (float)mean;
    if (roots) {
      double square = 0.0;
      for (int k = 0; k < 32; k++) square += lines[k][lane];
      roots[column] = (float)sqrt(square / (rows - 1.0) + epsilon);
    }
  }
}

// One block: the sum over columns of the hinge of the roots, and of mean ln mean.
extern "C" __global__ void __launch_bounds__(256) hinge_sum(const float* roots, int C, double* partial) {
  double sum = 0.0;
  for (int i = threadIdx.x; i < C; i += blockDim.x) sum += fmax(0.0, 1.0 - (double)roots[i]);
  WRITE_PARTIAL(sum)
}
extern "C" __global__ void __launch_bounds__(256) entropy_sum(const float* means, int C, double* partial) {
  double sum = 0.0;
  for (int i = threadIdx.x; i < C; i += blockDim.x) {
    double mean = fmax((double)means[i], 1e-30);
    sum += mean * log(mean);
  }
  WRITE_PARTIAL(sum)
}
extern "C" __global__ void __launch_bounds__(256)
    hinge_backward(const float* dy, const float* z, const float* means, const float* roots, int rows, int C, float* dz,
                   int add) {
  float scale = -*dy / (2.f * C * (rows - 1.f));
  EACH(i, (size_t)rows * C) {
    int c = (int)(i % C);
    put(dz, i, add, roots[c] < 1.f ? (z[i] - means[c]) * (scale / roots[c]) : 0.f);
  }
}
extern "C" __global__ void __launch_bounds__(256)
    me_max_backward(const float* dy, const float* means, int rows, int C, float* da, int add) {
  float scale = *dy / rows;
  EACH(i, (size_t)rows * C) put(da, i, add, scale * (logf(fmaxf(means[i % C], 1e-30f)) + 1.f));
}

extern "C" __global__ void __launch_bounds__(256)
    centre(const float* z, const float* means, i64 count, int C, float* centred) {
  EACH(i, (size_t)count) centred[i] = z[i] - means[i % C];
}
// Sets the diagonal to zero, divides, and adds up the squares.
extern "C" __global__ void __launch_bounds__(256) off_diagonal(float* cov, int C, float divisor, double* partial) {
  double sum = 0.0;
  EACH(i, (size_t)C * C) {
    float value = i / C == i % C ? 0.f : cov[i] / divisor;
    cov[i] = value;
    sum += (double)value * value;
  }
  WRITE_PARTIAL(sum)
}
extern "C" __global__ void __launch_bounds__(256)
    scale_into(const float* dy, float factor, const float* from, i64 count, float* to, int add) {
  float scale = factor * *dy;
  EACH(i, (size_t)count) put(to, i, add, scale * from[i]);
}

// to (+)= weight * from, single numbers.
extern "C" __global__ void weigh(const float* from, float weight, float* to, int add) { put(to, 0, add, weight * *from); }

// Contrastive: rows of [u; v], each divided by its norm; a block per row.
extern "C" __global__ void __launch_bounds__(256)
    normalise_rows(const float* u, const float* v, int n, int d, float smallest, float* rows, float* norms) {
  __shared__ double scratch[33];
  int row = blockIdx.x;
  const float* from = row < n ? u + (size_t)row * d : v + (size_t)(row - n) * d;
  double sum = 0.0;
  for (int i = threadIdx.x; i < d; i += blockDim.x) sum += (double)from[i] * from[i];
  float norm = fmaxf((float)sqrt(block_sum(sum, scratch)), smallest);
  for (int i = threadIdx.x; i < d; i += blockDim.x) rows[(size_t)row * d + i] = from[i] / norm;
  if (threadIdx.x == 0) norms[row] = norm;
}

// Whether row b counts for row a: it is another row, and its positive or of another group. `groups` may be null.
__device__ bool contrasts(const int* groups, int a, int b, int n) {
  if (b == a) return false;
  return !groups || b % n == a % n || groups[b % n] != groups[a % n];
}
// The products of a row become softmax over the others minus one at the positive; the row's loss. A block per row.
extern "C" __global__ void __launch_bounds__(256)
    contrast_rows(float* s, const int* groups, int n, float tau, double* partial) {
  __shared__ double scratch[33];
  __shared__ float tops[8];
  int a = blockIdx.x, size = 2 * n, positive = (a + n) % size;
  float* row = s + (size_t)a * size;
  float top = -3e38f;
  for (int b = threadIdx.x; b < size; b += blockDim.x)
    if (contrasts(groups, a, b, n)) top = fmaxf(top, row[b] / tau);
  top = warp_max(top);
  if ((threadIdx.x & 31) == 0) tops[threadIdx.x >> 5] = top;
  __syncthreads();
  for (int k = 0; k < 8; k++) top = fmaxf(top, tops[k]);
  double sum = 0.0;
  for (int b = threadIdx.x; b < size; b += blockDim.x)
    if (contrasts(groups, a, b, n)) sum += exp((double)(row[b] / tau - top));
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[a] = log(sum) + top - row[positive] / tau;
  __syncthreads();
  for (int b = threadIdx.x; b < size; b += blockDim.x) {
    float p = contrasts(groups, a, b, n) ? (float)(exp((double)(row[b] / tau - top)) / sum) : 0.f;
    row[b] = p - (b == positive ? 1.f : 0.f);
  }
}
extern "C" __global__ void __launch_bounds__(256)
    symmetric(const float* dy, const float* g, int size, float tau, float* out) {
  float scale = *dy / (tau * size);
  EACH(i, (size_t)size * size) out[i] = scale * (g[i] + g[(i % size) * size + i / size]);
}
// (dF - F <F, dF>) / norm for rows from `first` on; a block per row.
extern "C" __global__ void __launch_bounds__(256)
    through_norm(const float* df, const float* f, const float* norms, int first, int d, float* target, int add) {
  __shared__ double scratch[33];
  size_t row = (size_t)(first + blockIdx.x) * d;
  double along = 0.0;
  for (int i = threadIdx.x; i < d; i += blockDim.x) along += (double)df[row + i] * f[row + i];
  float total = (float)block_sum(along, scratch);
  float norm = norms[first + blockIdx.x];
  for (int i = threadIdx.x; i < d; i += blockDim.x)
    put(target, (size_t)blockIdx.x * d + i, add, (df[row + i] - f[row + i] * total) / norm);
}

// Classes: a thread per sample. A label out of range makes the loss not a number.
__device__ __forceinline__ double log_sum(const float* row, int classes) {
  double top = -1e300, sum = 0.0;
  for (int c = 0; c < classes; c++) top = fmax(top, (double)row[c]);
  for (int c = 0; c < classes; c++) sum += exp(row[c] - top);
  return top + log(sum);
}
extern "C" __global__ void __launch_bounds__(256)
    class_cross_entropy(const float* logits, const int* labels, int rows, int classes, double* partial) {
  double sum = 0.0;
  EACH(i, (size_t)rows) {
    const float* row = logits + i * classes;
    int label = labels[i];
    bool known = label >= 0 && label < classes;
    sum += known ? log_sum(row, classes) - row[label] : __longlong_as_double(0x7ff8000000000000LL);
  }
  WRITE_PARTIAL(sum)
}
extern "C" __global__ void __launch_bounds__(256)
    class_cross_entropy_backward(const float* dy, const float* logits, const int* labels, int rows, int classes,
                                 float* dlogits, int add) {
  double scale = (double)*dy / rows;
  EACH(i, (size_t)rows) {
    const float* row = logits + i * classes;
    double total = log_sum(row, classes);
    for (int c = 0; c < classes; c++)
      put(dlogits, i * classes + c, add, (float)(scale * (exp(row[c] - total) - (c == labels[i] ? 1.0 : 0.0))));
  }
}

// Hypernetwork: x[n, i Z + k] = e[n, i] z[n, k], and back.
extern "C" __global__ void __launch_bounds__(256)
    expand(const float* e, const float* z, i64 count, int d, int Z, float* x) {
  EACH(i, (size_t)count) {
    size_t index = i / Z;
    x[i] = e[index] * z[index / d * Z + i % Z];
  }
}
extern "C" __global__ void __launch_bounds__(256)
    contract(const float* dx, const float* z, i64 count, int d, int Z, float* de, int add) {
  EACH(i, (size_t)count) {
    float sum = 0.f;
    for (int k = 0; k < Z; k++) sum += dx[i * Z + k] * z[i / d * Z + k];
    put(de, i, add, sum);
  }
}

// Sharpening (sharpen.rs): a warp a row.
extern "C" __global__ void __launch_bounds__(256)
    sharpen(const float* a, int rows, int C, float temperature, float smallest, float* y) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (row >= rows) return;
  a += (size_t)row * C;
  y += (size_t)row * C;
  float top = smallest, total = 0.f, power = 1.f / temperature;
  for (int j = lane; j < C; j += 32) top = fmaxf(top, a[j]);
  top = warp_max(top);
  for (int j = lane; j < C; j += 32) total += powf(fmaxf(a[j], smallest) / top, power);
  total = warp_sum(total);
  for (int j = lane; j < C; j += 32) y[j] = powf(fmaxf(a[j], smallest) / top, power) / total;
}
extern "C" __global__ void __launch_bounds__(256)
    sharpen_backward(const float* dy, const float* a, const float* y, int rows, int C, float temperature, float smallest,
                     float* da, int add) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (row >= rows) return;
  size_t first = (size_t)row * C;
  float along = 0.f;
  for (int j = lane; j < C; j += 32) along += dy[first + j] * y[first + j];
  along = warp_sum(along);
  for (int j = lane; j < C; j += 32) {
    size_t i = first + j;
    put(da, i, add, y[i] * (dy[i] - along) / (temperature * fmaxf(a[i], smallest)));
  }
}
