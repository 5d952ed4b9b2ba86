// Heads that train side by side, float32: rows of a table, biases and ReLU of all heads, the error of each head. Sums
// have a fixed order: the same bits every time.

#define NAN_F __int_as_float(0x7fc00000)

// x (count, width): the rows of table (n, width) that `rows` names; NaN for a row that is not there.
extern "C" __global__ void __launch_bounds__(256)
    gather_rows(const float* table, const int* rows, float* x, i64 count, i64 n, int width) {
  if ((width & 3) == 0) {
    int quads = width >> 2;
    EACH(i, count * quads) {
      i64 row = rows[i / quads];
      bool known = row >= 0 && row < n;
      ((float4*)x)[i] = known ? ((const float4*)table)[row * quads + (i64)(i % quads)]
                              : make_float4(NAN_F, NAN_F, NAN_F, NAN_F);
    }
  } else {
    EACH(i, count * width) {
      i64 row = rows[i / width];
      x[i] = row >= 0 && row < n ? table[row * width + (i64)(i % width)] : NAN_F;
    }
  }
}

// y (rows, C) += bias (C), then max(0, .) where `relu`.
extern "C" __global__ void __launch_bounds__(256) add_biases(float* y, const float* bias, i64 count, int C, int relu) {
  EACH(i, count) {
    float value = y[i] + bias[i % C];
    y[i] = relu ? fmaxf(value, 0.f) : value;
  }
}

// g (rows, C): dy where y > 0, else 0; without y it is dy, and nothing is written. Either may be the other. The sums of
// its columns: sums (C), where they are wanted. A block for 32 columns.
extern "C" __global__ void __launch_bounds__(1024)
    relu_column_sums(const float* dy, const float* y, float* g, int rows, int C, float* sums, int add) {
  __shared__ double lines[32][33];
  int lane = threadIdx.x & 31, line = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
  double total = 0.0;
  if (column < C)
    for (int row = line; row < rows; row += 32) {
      size_t i = (size_t)row * C + column;
      float value = dy[i];
      if (y) {
        value = y[i] > 0.f ? value : 0.f;
        g[i] = value;
      }
      total += value;
    }
  lines[line][lane] = total;
  __syncthreads();
  if (line == 0 && column < C && sums) {
    double sum = 0.0;
    for (int k = 0; k < 32; k++) sum += lines[k][lane];
    sums[column] = (add ? sums[column] : 0.f) + (float)sum;
  }
}

// Mean squared error of each head: y and targets (rows, heads, columns), of which the first sizes[head] columns count. A
// block a head. A size that cannot be makes the error NaN.
extern "C" __global__ void __launch_bounds__(256)
    grouped_mse(const float* y, const float* targets, const int* sizes, int rows, int heads, int columns, float* losses) {
  __shared__ double scratch[33];
  int head = blockIdx.x, size = sizes[head];
  bool known = size > 0 && size <= columns;
  i64 count = known ? (i64)rows * size : 0;
  double sum = 0.0;
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
    i64 place = (i / size * heads + head) * columns + i % size;
    double difference = (double)y[place] - (double)targets[place];
    sum += difference * difference;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) losses[head] = known ? (float)(sum / (double)count) : NAN_F;
}
extern "C" __global__ void __launch_bounds__(256)
    grouped_mse_backward(const float* dy, const float* y, const float* targets, const int* sizes, i64 count, int rows,
                         int heads, int columns, float* du, int add) {
  EACH(i, count) {
    int head = (int)(i / columns % heads), size = sizes[head];
    float d = 0.f;
    if ((int)(i % columns) < size) {
      double scale = 2.0 * dy[head] / ((double)rows * size);
      d = (float)(((double)y[i] - (double)targets[i]) * scale);
    }
    du[i] = add ? du[i] + d : d;
  }
}

// to += weight * from
extern "C" __global__ void __launch_bounds__(256) add_scaled(const float* from, float weight, float* to, i64 count) {
  EACH(i, count) to[i] += weight * from[i];
}
