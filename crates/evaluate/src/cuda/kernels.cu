// Probes and retrieval on tables of features that lie on the device. Sums have a fixed order: the same bits every time.

#define INFINITY_F __int_as_float(0x7f800000)

// ---- Probes --------------------------------------------------------------------------------------------------------

// Sample after sample the rows of its views, one after the other: x (samples, views * width).
extern "C" __global__ void __launch_bounds__(256)
    gather(const float* table, const int* rows, float* x, i64 sample_rows, int width) {
  if ((width & 3) == 0) {
    int quads = width >> 2;
    EACH(i, sample_rows * quads) {
      size_t row = i / quads;
      int column = (int)(i % quads);
      ((float4*)x)[i] = ((const float4*)table)[(size_t)rows[row] * quads + column];
    }
  } else {
    EACH(i, sample_rows * width) x[i] = table[(size_t)rows[i / width] * width + i % width];
  }
}

// y (rows, C) + b (C), then max(0, .) where `relu`.
extern "C" __global__ void __launch_bounds__(256) add_bias(float* y, const float* bias, i64 count, int C, int relu) {
  EACH(i, count) {
    float value = y[i] + bias[i % C];
    y[i] = relu ? fmaxf(value, 0.f) : value;
  }
}

// dy (rows, C) where y > 0, else 0 (all of it without y); and the sums of its columns. A block for 32 columns.
extern "C" __global__ void __launch_bounds__(1024)
    relu_backward(float* dy, const float* y, float* column_sums, int rows, int C) {
  __shared__ double lines[32][33];
  int lane = threadIdx.x & 31, line = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
  double total = 0.0;
  if (column < C)
    for (int row = line; row < rows; row += 32) {
      size_t i = (size_t)row * C + column;
      float value = dy[i];
      if (y) {
        value = y[i] > 0.f ? value : 0.f;
        dy[i] = value;
      }
      total += value;
    }
  lines[line][lane] = total;
  __syncthreads();
  if (line == 0 && column < C) {
    double sum = 0.0;
    for (int k = 0; k < 32; k++) sum += lines[k][lane];
    column_sums[column] = (float)sum;
  }
}

// Mean squared error of several heads side by side, each `pad` columns of y (rows, heads * pad), of which its first
// `outputs` (a hexadecimal digit a head, the first head lowest) count. Of y plus the bias: dy, the sums of its columns,
// and loss[head] += rows * error. One block; a warp a column.
extern "C" __global__ void __launch_bounds__(1024)
    mean_squared_error(const float* y, const float* bias, const float* targets, float* dy, float* column_sums, double* loss,
                       int rows, int heads, int pad, int outputs) {
  __shared__ double column_loss[64];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = blockDim.x >> 5, C = heads * pad;
  for (int column = warp; column < C; column += warps) {
    int width = (outputs >> (4 * (column / pad))) & 15;
    bool counts = column % pad < width;
    double scale = 2.0 / ((double)rows * width), error = 0.0, sum = 0.0;
    for (int row = lane; row < rows; row += 32) {
      size_t i = (size_t)row * C + column;
      double difference = counts ? (double)(y[i] + bias[column]) - (double)targets[i] : 0.0;
      float d = (float)(difference * scale);
      dy[i] = d;
      error += difference * difference;
      sum += d;
    }
    error = warp_sum(error);
    sum = warp_sum(sum);
    if (lane == 0) {
      column_sums[column] = (float)sum;
      column_loss[column] = counts ? error / width : 0.0;
    }
  }
  __syncthreads();
  if (threadIdx.x < heads)
    for (int k = 0; k < pad; k++) loss[threadIdx.x] += column_loss[threadIdx.x * pad + k];
}

// Cross-entropy of logits y (rows, C) after adding the bias: dy, and loss += sum over rows. One block; a warp a row.
extern "C" __global__ void __launch_bounds__(1024)
    cross_entropy(const float* y, const float* bias, const int* labels, float* dy, double* loss, int rows, int C) {
  __shared__ double partial[32];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  double total = 0.0;
  for (int row = warp; row < rows; row += warps) {
    const float* logits = y + (size_t)row * C;
    float highest = -INFINITY_F;
    for (int k = lane; k < C; k += 32) highest = fmaxf(highest, logits[k] + bias[k]);
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, step));
    double sum = 0.0;
    for (int k = lane; k < C; k += 32) sum += exp((double)(logits[k] + bias[k] - highest));
    double log_sum = log(warp_sum(sum));
    for (int k = lane; k < C; k += 32) {
      double log_probability = (double)(logits[k] + bias[k] - highest) - log_sum;
      bool own = k == labels[row];
      if (own) total -= log_probability;
      dy[(size_t)row * C + k] = (float)((exp(log_probability) - (own ? 1.0 : 0.0)) / rows);
    }
  }
  total = warp_sum(total);
  if (lane == 0) partial[warp] = total;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int k = 0; k < warps; k++) loss[0] += partial[k];
}

// Adam without decay, over all parameters of all heads.
extern "C" __global__ void __launch_bounds__(256)
    adam(float4* p, const float4* g, float4* m, float4* v, i64 quads, float beta1, float rest1, float beta2,
         float rest2, float step_size, float root_scale, float epsilon) {
  EACH(i, quads) {
    float4 value = p[i], d = g[i], first = m[i], second = v[i];
#define COMPONENT(c)                                                                       \
  first.c = beta1 * first.c + rest1 * d.c;                                                 \
  second.c = beta2 * second.c + rest2 * d.c * d.c;                                         \
  value.c = value.c - step_size * (first.c / (sqrtf(second.c) * root_scale + epsilon));
    COMPONENT(x) COMPONENT(y) COMPONENT(z) COMPONENT(w)
#undef COMPONENT
    m[i] = first;
    v[i] = second;
    p[i] = value;
  }
}

// ---- Retrieval -----------------------------------------------------------------------------------------------------

__device__ __forceinline__ u16 to_half(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ float of_half(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

// Rows ready for products: moved, normalised, and split into halves.
//
// Row r is row (sources ? sources[r] : r) of `table` (width floats). With `side` (3 or 4), each of its capsules of
// side * side numbers is multiplied on the right by matrix r (where there are matrices) and divided by its Frobenius
// norm. Then the row is divided by (its length + epsilon), multiplied by `scale`, and written as high and low halves, of
// which x = high + low to 22 bits: queries as [high, high, low], candidates as [high, low, high], each part padded with
// zeros, so that one product of halves sums up high high + high low + low high.
extern "C" __global__ void __launch_bounds__(128)
    prepare(const float* table, const int* sources, const float* matrices, u16* to, int width, int padded, int side,
            double epsilon, float scale, int is_query) {
  extern __shared__ float row[];
  __shared__ double scratch[33];
  size_t r = blockIdx.x + (size_t)blockIdx.y * gridDim.x;
  const float* from = table + (size_t)(sources ? sources[r] : (int)r) * width;
  if (side) {
    int entries = side * side;
    for (int capsule = threadIdx.x; capsule < width / entries; capsule += blockDim.x) {
      const float* pose = from + capsule * entries;
      const float* matrix = matrices ? matrices + r * entries : 0;
      double squares = 0.0;
      for (int a = 0; a < side; a++)
        for (int b = 0; b < side; b++) {
          float value = pose[a * side + b];
          if (matrix) {
            double sum = 0.0;
            for (int k = 0; k < side; k++) sum += (double)pose[a * side + k] * (double)matrix[k * side + b];
            value = (float)sum;
          }
          row[capsule * entries + a * side + b] = value;
          squares += (double)value * (double)value;
        }
      double norm = fmax(sqrt(squares), 2.2250738585072014e-308);
      for (int k = 0; k < entries; k++) row[capsule * entries + k] = (float)(row[capsule * entries + k] / norm);
    }
  } else {
    for (int k = threadIdx.x; k < width; k += blockDim.x) row[k] = from[k];
  }
  __syncthreads();
  double squares = 0.0;
  for (int k = threadIdx.x; k < width; k += blockDim.x) squares += (double)row[k] * (double)row[k];
  double norm = fmax(sqrt(block_sum(squares, scratch)) + epsilon, 2.2250738585072014e-308);
  u16* out = to + r * (size_t)(3 * padded);
  for (int k = threadIdx.x; k < padded; k += blockDim.x) {
    float value = k < width ? (float)(row[k] / norm) * scale : 0.f;
    u16 high = to_half(value);
    u16 low = to_half(value - of_half(high));
    out[k] = high;
    out[padded + k] = is_query ? high : low;
    out[2 * padded + k] = is_query ? low : high;
  }
}

// Ranks from similarities (objects, views, views) of the prediction for a view to each view of its object: 1 + how many
// come before the view itself. Equal ones are ordered by view; what is not a number comes last.
extern "C" __global__ void __launch_bounds__(256) rank_targets(const float* similarities, int* ranks, int count, int views) {
  EACH(i, count) {
    const float* line = similarities + i * views;
    int target = (int)(i % views), before = 0;
    float own = line[target];
    for (int other = 0; other < views; other++) {
      float value = line[other];
      before += value > own || (value == own && other < target) || (own != own && other != target);
    }
    ranks[i] = 1 + before;
  }
}

// The highest of each line of similarities (queries, columns), with the lowest column among equals, against the best so
// far, which wins where they are equal. Columns are candidates from `first` on. A block a query.
extern "C" __global__ void __launch_bounds__(256)
    take_best(const float* similarities, float* best, int* best_row, i64 columns, int first) {
  __shared__ float values[8];
  __shared__ int places[8];
  const float* line = similarities + (size_t)blockIdx.x * columns;
  float value = -INFINITY_F;
  int place = 0x7fffffff;
#define CONSIDER(x, at)   \
  if ((x) > value) {      \
    value = (x);          \
    place = (int)(at);    \
  }
  if ((columns & 3) == 0) {
    for (i64 i = threadIdx.x; i < columns / 4; i += 256) {
      float4 four = ((const float4*)line)[i];
      CONSIDER(four.x, 4 * i) CONSIDER(four.y, 4 * i + 1) CONSIDER(four.z, 4 * i + 2) CONSIDER(four.w, 4 * i + 3)
    }
  } else {
    for (i64 i = threadIdx.x; i < columns; i += 256) CONSIDER(line[i], i)
  }
#undef CONSIDER
#define MERGE(other, other_place)                                             \
  if ((other) > value || ((other) == value && (other_place) < place)) {       \
    value = (other);                                                          \
    place = (other_place);                                                    \
  }
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, value, step);
    int other_place = __shfl_xor_sync(0xffffffffu, place, step);
    MERGE(other, other_place)
  }
  if ((threadIdx.x & 31) == 0) {
    values[threadIdx.x >> 5] = value;
    places[threadIdx.x >> 5] = place;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 8; k++) MERGE(values[k], places[k])
    if (value > best[blockIdx.x]) {
      best[blockIdx.x] = value;
      best_row[blockIdx.x] = first + place;
    }
  }
#undef MERGE
}

// Before the first block: nothing found.
extern "C" __global__ void __launch_bounds__(256) forget_best(float* best, int* best_row, int count) {
  EACH(i, count) {
    best[i] = -INFINITY_F;
    best_row[i] = -1;
  }
}

// Numbers without meaning, for measuring speed: roughly normal, from (seed, place).
extern "C" __global__ void __launch_bounds__(256) fill_random(float* to, i64 count, u32 seed) {
  EACH(i, count) {
    u32 state = seed ^ (u32)(i * 0x9e3779b9u) ^ (u32)(i >> 32) * 0x85ebca6bu;
    float sum = 0.f;
    for (int k = 0; k < 4; k++) {
      state = state * 747796405u + 2891336453u;
      u32 word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
      word = (word >> 22) ^ word;
      sum += (float)word * (1.f / 4294967296.f) - 0.5f;
    }
    to[i] = sum * 1.7320508f;
  }
}
