// Retrieval on tables of features that lie on the device. Sums have a fixed order: the same bits every time.

#define INFINITY_F __int_as_float(0x7f800000)

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
