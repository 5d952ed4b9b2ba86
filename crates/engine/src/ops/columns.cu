// Sums over the rows of a matrix, column by column, in two steps of fixed order: partial sums of blocks, then those.

// partial (gridDim.x, C): sums over the rows of a block. `columns` groups of VECTOR lie side by side in a block.
extern "C" __global__ void __launch_bounds__(256) column_partials(const T* x, float* partial, i64 rows, int C, int columns) {
  int line = threadIdx.x / columns, lines = 256 / columns;
  int column = (blockIdx.y * columns + threadIdx.x % columns) * VECTOR;
  bool inside = line < lines && column < C;
  float sum[VECTOR];
#pragma unroll
  for (int e = 0; e < VECTOR; e++) sum[e] = 0.f;
  for (i64 row = (i64)blockIdx.x * lines + line; inside && row < rows; row += (i64)gridDim.x * lines) {
    Channels<VECTOR> v;
    load_channels(v, x + row * C + column);
#pragma unroll
    for (int e = 0; e < VECTOR; e++) sum[e] += v.v[e];
  }
  write_column_sums<VECTOR>(sum, partial, C, column, line, lines, columns, inside);
}

// Sums over the rows of partial (rows, C) into up to three targets side by side, each of C / count columns; added
// where `add`. A target may be missing.
extern "C" __global__ void __launch_bounds__(1024)
    finish_columns(const float* partial, int rows, int C, int count, float* to0, int add0, float* to1, int add1,
                   float* to2, int add2) {
  __shared__ double lines[32][33];
  int lane = threadIdx.x & 31, line = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
  double total = 0.0;
  if (column < C)
    for (int row = line; row < rows; row += 32) total += partial[(size_t)row * C + column];
  lines[line][lane] = total;
  __syncthreads();
  if (line > 0 || column >= C) return;
  double sum = 0.0;
  for (int k = 0; k < 32; k++) sum += lines[k][lane];
  int width = C / count, which = column / width;
  float* to = which == 0 ? to0 : which == 1 ? to1 : to2;
  int add = which == 0 ? add0 : which == 1 ? add1 : add2;
  if (to) to[column % width] = (add ? to[column % width] : 0.f) + (float)sum;
}
