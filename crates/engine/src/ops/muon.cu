// Muon, as in muon.rs, for all matrices of a network together: one launch does one thing to each of them. The products are
// our own, in tiles of fixed order, because those of libraries are launched matrix by matrix.
//
// A matrix lies in x with its shorter side as rows, filled up with zeros to multiples of TILE both ways; so a product never
// ends within a tile. Blocks are given what they do by a list.

#define TILE 128     // side of a block's part of a product
#define DEPTH 32     // of the sums that are in shared memory at a time
#define STAGES 3     // parts that are on their way or in use
#define PATCH 64     // side of a block's part of a matrix where numbers are only copied or counted

struct Matrix {
  int start;         // of the parameter in the flat buffers
  int rows, columns; // of the parameter
  int side, inner;   // of x: the shorter side and the longer one, filled up
  int x, products;   // where its numbers begin, in x and among products (side, side)
  int first, parts;  // its patches in their list
  int is_tall;       // x is transposed
  int unused[2];
};
// What a block does: a matrix, and the row and the column of a tile or patch.
struct Part { int matrix, row, column, unused; };

// The rows of a patch that a thread has a number of, in column threadIdx.x % PATCH.
#define PATCH_ROWS(line) for (int line = threadIdx.x / PATCH; line < PATCH; line += 256 / PATCH)

// d of the sums in muon.rs: what momentum is added up of.
__device__ __forceinline__ float gradient_at(const float* p, const float* g, size_t i, float weight_decay) {
  return g[i] + weight_decay * p[i];
}

// m = momentum m + d; and the sum of squares of d + momentum m, for each patch.
extern "C" __global__ void __launch_bounds__(256)
    muon_momentum(const float* p, const float* g, float* m, const Matrix* matrices, const Part* patches, float* squares,
                  float weight_decay, float momentum) {
  __shared__ double scratch[33];
  Part part = patches[blockIdx.x];
  Matrix matrix = matrices[part.matrix];
  int column = part.column * PATCH + threadIdx.x % PATCH;
  float sum = 0.f;
  PATCH_ROWS(line) {
    int row = part.row * PATCH + line;
    if (row >= matrix.rows || column >= matrix.columns) continue;
    size_t i = matrix.start + (size_t)row * matrix.columns + column;
    float d = gradient_at(p, g, i, weight_decay);
    float first = momentum * m[i] + d;
    m[i] = first;
    float x = d + momentum * first;
    sum += x * x;
  }
  double total = block_sum((double)sum, scratch);
  if (threadIdx.x == 0) squares[blockIdx.x] = (float)total;
}

// x = (d + momentum m) / norm, of length 1 in all; zeros around it.
extern "C" __global__ void __launch_bounds__(256)
    muon_start(const float* p, const float* g, const float* m, const Matrix* matrices, const Part* patches,
               const float* squares, T* x, float weight_decay, float momentum) {
  __shared__ double scratch[33];
  __shared__ float values[PATCH][PATCH + 1];
  Part part = patches[blockIdx.x];
  Matrix matrix = matrices[part.matrix];
  double sum = 0.0;
  for (int i = threadIdx.x; i < matrix.parts; i += 256) sum += (double)squares[matrix.first + i];
  sum = block_sum(sum, scratch);
  float factor = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.f;
  int across = threadIdx.x % PATCH, column = part.column * PATCH + across;
  PATCH_ROWS(line) {
    int row = part.row * PATCH + line;
    float value = 0.f;
    if (row < matrix.rows && column < matrix.columns) {
      size_t i = matrix.start + (size_t)row * matrix.columns + column;
      value = factor * (gradient_at(p, g, i, weight_decay) + momentum * m[i]);
    }
    values[line][across] = value;
  }
  __syncthreads();
  x += matrix.x;
  PATCH_ROWS(line) {
    float value = matrix.is_tall ? values[across][line] : values[line][across];
    int row = (matrix.is_tall ? part.column : part.row) * PATCH + line;
    x[(size_t)row * matrix.inner + (matrix.is_tall ? part.row : part.column) * PATCH + across] = from_float<T>(value);
  }
}

// p -= rate sqrt(longer side) x
extern "C" __global__ void __launch_bounds__(256)
    muon_apply(float* p, const Matrix* matrices, const Part* patches, const T* x, float rate) {
  __shared__ float values[PATCH][PATCH + 1];
  Part part = patches[blockIdx.x];
  Matrix matrix = matrices[part.matrix];
  x += matrix.x;
  int across = threadIdx.x % PATCH;
  PATCH_ROWS(line) {
    int row = (matrix.is_tall ? part.column : part.row) * PATCH + line;
    float value =
        to_float(x[(size_t)row * matrix.inner + (matrix.is_tall ? part.row : part.column) * PATCH + across]);
    if (matrix.is_tall) values[across][line] = value;
    else values[line][across] = value;
  }
  __syncthreads();
  float scale = rate * sqrtf((float)max(matrix.rows, matrix.columns));
  int column = part.column * PATCH + across;
  PATCH_ROWS(line) {
    int row = part.row * PATCH + line;
    if (row < matrix.rows && column < matrix.columns)
      p[matrix.start + (size_t)row * matrix.columns + column] -= scale * values[line][across];
  }
}

// Groups of 8 numbers of a row lie in shared memory turned by the row, so that the eight rows of a matrix of 8 x 8 meet
// different banks: of a tile (TILE, DEPTH), and of one (DEPTH, TILE).
__device__ __forceinline__ int place_deep(int row, int group) { return row * DEPTH + ((group ^ (row >> 1 & 3)) * 8); }
__device__ __forceinline__ int place_wide(int row, int group) { return row * TILE + ((group ^ (row & 7)) * 8); }

// The tile at `row` and `column` of a b^T (b lies as (columns, inner)) or, where IS_WIDE, of a b; both have rows of `a_row`
// and `b_row` numbers. `write` gets two neighbours at a time.
template <bool IS_WIDE, typename Write>
__device__ __forceinline__ void product(const bf16* a, int a_row, const bf16* b, int b_row, int row, int column, int inner,
                                        Write write) {
  __shared__ __align__(128) bf16 left[STAGES][TILE * DEPTH], right[STAGES][TILE * DEPTH];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  // Eight warps of 64 x 32.
  int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  a += (size_t)row * a_row;
  b += IS_WIDE ? (size_t)column : (size_t)column * b_row;
  auto fetch = [&](int stage, int from) {
#pragma unroll
    for (int e = threadIdx.x; e < TILE * DEPTH / 8; e += 256) {
      int line = e / (DEPTH / 8), group = e % (DEPTH / 8);
      copy_async(shared_address(left[stage] + place_deep(line, group)), a + (size_t)line * a_row + from + group * 8);
      if (!IS_WIDE) {
        copy_async(shared_address(right[stage] + place_deep(line, group)), b + (size_t)line * b_row + from + group * 8);
      } else {
        int deep = e / (TILE / 8), wide = e % (TILE / 8);
        copy_async(shared_address(right[stage] + place_wide(deep, wide)), b + (size_t)(from + deep) * b_row + wide * 8);
      }
    }
  };
  float sums[4][4][4] = {};
  int steps = inner / DEPTH;
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; stage++) {
    if (stage < steps) fetch(stage, stage * DEPTH);
    copy_commit();
  }
  for (int step = 0; step < steps; step++) {
    copy_wait<STAGES - 2>();
    __syncthreads();
    // Into what the step before has used.
    if (step + STAGES - 1 < steps) fetch((step + STAGES - 1) % STAGES, (step + STAGES - 1) * DEPTH);
    copy_commit();
    const bf16 *from_left = left[step % STAGES], *from_right = right[step % STAGES];
#pragma unroll
    for (int deep = 0; deep < DEPTH / 16; deep++) {
      u32 as[4][4], bs[2][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        load_matrices(as[i], shared_address(from_left + place_deep(warp_row + i * 16 + (lane & 15), deep * 2 + (lane >> 4))));
      }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        if (!IS_WIDE) {
          int line = warp_column + j * 16 + (lane >> 4) * 8 + (lane & 7);
          load_matrices(bs[j], shared_address(from_right + place_deep(line, deep * 2 + (lane >> 3 & 1))));
        } else {
          int line = deep * 16 + (lane & 15);
          load_matrices_transposed(bs[j],
                                   shared_address(from_right + place_wide(line, warp_column / 8 + j * 2 + (lane >> 4))));
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) multiply(sums[i][j], as[i], bs[j / 2][j % 2 * 2], bs[j / 2][j % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        write(row + warp_row + i * 16 + half * 8 + lane / 4, column + warp_column + j * 8 + lane % 4 * 2,
              sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
}

// The same in float32, without tensor cores: a thread has 8 x 8 sums.
template <bool IS_WIDE, typename Write>
__device__ __forceinline__ void product(const float* a, int a_row, const float* b, int b_row, int row, int column,
                                        int inner, Write write) {
  const int depth = 16;
  __shared__ float left[depth][TILE + 4], right[depth][TILE + 4];
  int down = threadIdx.x / 16 * 8, across = threadIdx.x % 16 * 8;
  float sums[8][8] = {};
  for (int from = 0; from < inner; from += depth) {
    __syncthreads();
    for (int e = threadIdx.x; e < TILE * depth; e += 256) {
      int line = e / depth, deep = e % depth;
      left[deep][line] = a[(size_t)(row + line) * a_row + from + deep];
      if (!IS_WIDE) right[deep][line] = b[(size_t)(column + line) * b_row + from + deep];
      else right[e / TILE][e % TILE] = b[(size_t)(from + e / TILE) * b_row + column + e % TILE];
    }
    __syncthreads();
    for (int deep = 0; deep < depth; deep++)
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sums[i][j] += left[deep][down + i] * right[deep][across + j];
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j += 2) write(row + down + i, column + across + j, sums[i][j], sums[i][j + 1]);
}

__device__ __forceinline__ void load_two(const float* from, float& first, float& second) {
  float2 both = *reinterpret_cast<const float2*>(from);
  first = both.x;
  second = both.y;
}
__device__ __forceinline__ void load_two(const bf16* from, float& first, float& second) {
  u32 both = *reinterpret_cast<const u32*>(from);
  first = low_half(both);
  second = high_half(both);
}
__device__ __forceinline__ void store_two(float* to, float first, float second) {
  *reinterpret_cast<float2*>(to) = make_float2(first, second);
}
__device__ __forceinline__ void store_two(bf16* to, float first, float second) {
  *reinterpret_cast<u32*>(to) = pack_bf16(first, second);
}

// gram = x x^T
extern "C" __global__ void __launch_bounds__(256, 2)
    muon_gram(const Matrix* matrices, const Part* tiles, const T* x, T* gram) {
  Part part = tiles[blockIdx.x];
  Matrix matrix = matrices[part.matrix];
  x += matrix.x;
  gram += matrix.products;
  product<false>(x, matrix.inner, x, matrix.inner, part.row * TILE, part.column * TILE, matrix.inner,
                 [&](int row, int column, float first, float second) {
                   store_two(gram + (size_t)row * matrix.side + column, first, second);
                 });
}

// factor = b gram + c gram^2; gram is its own transpose.
extern "C" __global__ void __launch_bounds__(256, 2)
    muon_factor(const Matrix* matrices, const Part* tiles, const T* gram, T* factor, float b, float c) {
  Part part = tiles[blockIdx.x];
  Matrix matrix = matrices[part.matrix];
  gram += matrix.products;
  factor += matrix.products;
  product<false>(gram, matrix.side, gram, matrix.side, part.row * TILE, part.column * TILE, matrix.side,
                 [&](int row, int column, float first, float second) {
                   size_t at = (size_t)row * matrix.side + column;
                   float gram0, gram1;
                   load_two(gram + at, gram0, gram1);
                   store_two(factor + at, b * gram0 + c * first, b * gram1 + c * second);
                 });
}

// next = a x + factor x
extern "C" __global__ void __launch_bounds__(256, 2)
    muon_turn(const Matrix* matrices, const Part* tiles, const T* factor, const T* x, T* next, float a) {
  Part part = tiles[blockIdx.x];
  Matrix matrix = matrices[part.matrix];
  factor += matrix.products;
  x += matrix.x;
  next += matrix.x;
  product<true>(factor, matrix.side, x, matrix.inner, part.row * TILE, part.column * TILE, matrix.side,
                [&](int row, int column, float first, float second) {
                  size_t at = (size_t)row * matrix.inner + column;
                  float x0, x1;
                  load_two(x + at, x0, x1);
                  store_two(next + at, a * x0 + first, a * x1 + second);
                });
}
