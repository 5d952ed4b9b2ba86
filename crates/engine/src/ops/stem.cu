// The first layer in bf16: 7x7 convolution with stride 2 from 3 to 64 channels, zeros around the image (2 left and
// top, 3 right and bottom), batch norm, ReLU, 3x3 max-pool with stride 2. Its tensors are the largest of the network,
// so: the convolution reads the image itself (bytes or floats), the pooled result is all that is written after it,
// and backward recomputes what lies between, inside the kernel of the weight gradient.
//
// Tensor-core products (mma m16n8k16) with the inner index k = 24 kernel_row + 3 kernel_column + colour: 21 of every 24
// are used, the others meet zero weights. A pixel of the output reads 24 consecutive numbers of each image row from
// 6 x its column on, so an image row in shared memory serves as the matrix, without unfolding it.

#define TILE_W 64                  // output pixels of a tile in a row: one warp's work
#define TILE_H 4                   // output rows of a tile: one warp each
#define PATCH_H (2 * TILE_H + 5)   // image rows of a tile
#define PATCH_W (2 * TILE_W + 5)   // image columns of a tile
#define STRIDE 408                 // numbers between image rows in shared memory (6 * 63 + 24 = 402 are read)
#define STEPS 11                   // products over k of 16 each: 7 * 24 = 168, and 8 more that meet zeros
#define OUT 64                     // output channels

__device__ __forceinline__ void multiply(float* d, const u32* a, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  u32 address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }" : "=r"(address) : "l"(pointer));
  return address;
}

__device__ __forceinline__ void load_matrices_transposed(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// The normalised value of a pixel; 0 outside of the image. `offset` is -mean / deviation, `factor` 1 / deviation,
// for bytes also divided by 255.
__device__ __forceinline__ float pixel(const void* image, int is_bytes, const float* factor, const float* offset,
                                       int n, int y, int x, int c, int H, int W) {
  if (y < 0 || y >= H || x < 0 || x >= W) return 0.f;
  size_t place = ((size_t)(n * H + y) * W + x) * 3 + c;
  float value = is_bytes ? (float)((const u8*)image)[place] : ((const float*)image)[place];
  return value * factor[c] + offset[c];
}

struct Tile { int n, y, x; };
__device__ __forceinline__ Tile tile_of(int index, int tiles_x, int tiles_y) {
  Tile t;
  t.x = (index % tiles_x) * TILE_W;
  t.y = (index / tiles_x % tiles_y) * TILE_H;
  t.n = index / (tiles_x * tiles_y);
  return t;
}

// x(n, y, x, 64) and, per block, the sums of what it wrote and of its squares, for the statistics that follow.
extern "C" __global__ void __launch_bounds__(128)
    stem_forward(const void* image, int is_bytes, float f0, float f1, float f2, float o0, float o1, float o2,
                 const float* weight, bf16* output, int batch, int H, int W, int OH, int OW) {
  __shared__ __align__(16) bf16 patch[PATCH_H * STRIDE + 16];
  __shared__ __align__(16) u32 weights[STEPS * 4 * 32 * 4];
  __shared__ __align__(16) bf16 staging[4][16 * 72];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int group = lane >> 2, part = lane & 3;
  float factor[3] = {f0, f1, f2}, offset[3] = {o0, o1, o2};

  // Weights in the order in which lanes need them: for a step, a pair of channel groups and a lane, four registers.
  for (int i = threadIdx.x; i < STEPS * 4 * 32 * 4; i += blockDim.x) {
    int half = i & 1, odd = i >> 1 & 1, l = i >> 2 & 31, pair = i >> 7 & 3, step = i >> 9;
    int channel = (pair * 2 + odd) * 8 + (l >> 2);
    float value[2];
    for (int e = 0; e < 2; e++) {
      int k = step * 16 + half * 8 + (l & 3) * 2 + e;
      int row = k / 24, q = k % 24;
      value[e] = row < 7 && q < 21 ? weight[channel * 147 + row * 21 + q] : 0.f;
    }
    weights[i] = pack_bf16(value[0], value[1]);
  }
  for (int i = threadIdx.x; i < PATCH_H * STRIDE + 16; i += blockDim.x) patch[i].bits = 0;

  int tiles_x = (OW + TILE_W - 1) / TILE_W, tiles_y = (OH + TILE_H - 1) / TILE_H;
  for (int index = blockIdx.x; index < tiles_x * tiles_y * batch; index += gridDim.x) {
    Tile t = tile_of(index, tiles_x, tiles_y);
    __syncthreads();
    for (int i = threadIdx.x; i < PATCH_H * PATCH_W; i += blockDim.x) {
      int row = i / PATCH_W, column = i % PATCH_W;
      int y = 2 * t.y + row - 2, x = 2 * t.x + column - 2;
#pragma unroll
      for (int c = 0; c < 3; c++)
        patch[row * STRIDE + column * 3 + c] =
            from_float<bf16>(pixel(image, is_bytes, factor, offset, t.n, y, x, c, H, W));
    }
    __syncthreads();

    float sum[4][8][4] = {};
    const bf16* rows = patch + 2 * warp * STRIDE + part * 2;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
      const int j0 = 2 * step, j1 = 2 * step + 1 < 21 ? 2 * step + 1 : 20;  // groups of 8 along k; the last meets zeros
      const int first = (j0 / 3) * STRIDE + (j0 % 3) * 8, second = (j1 / 3) * STRIDE + (j1 % 3) * 8;
      uint4 b[4];
#pragma unroll
      for (int pair = 0; pair < 4; pair++)
        b[pair] = *reinterpret_cast<const uint4*>(&weights[((step * 4 + pair) * 32 + lane) * 4]);
#pragma unroll
      for (int m = 0; m < 4; m++) {
        const bf16* low = rows + (m * 16 + group) * 6;
        const bf16* high = low + 8 * 6;
        u32 a[4] = {*reinterpret_cast<const u32*>(low + first), *reinterpret_cast<const u32*>(high + first),
                    *reinterpret_cast<const u32*>(low + second), *reinterpret_cast<const u32*>(high + second)};
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
          multiply(sum[m][2 * pair], a, b[pair].x, b[pair].y);
          multiply(sum[m][2 * pair + 1], a, b[pair].z, b[pair].w);
        }
      }
    }

    int y = t.y + warp;
#pragma unroll
    for (int m = 0; m < 4; m++) {
      bf16* stage = staging[warp];
      __syncwarp();
#pragma unroll
      for (int n = 0; n < 8; n++) {
        *reinterpret_cast<u32*>(stage + group * 72 + n * 8 + part * 2) = pack_bf16(sum[m][n][0], sum[m][n][1]);
        *reinterpret_cast<u32*>(stage + (group + 8) * 72 + n * 8 + part * 2) = pack_bf16(sum[m][n][2], sum[m][n][3]);
      }
      __syncwarp();
#pragma unroll
      for (int k = 0; k < 4; k++) {
        int pixel_index = k * 4 + (lane >> 3), chunk = lane & 7;
        int x = t.x + m * 16 + pixel_index;
        if (y < OH && x < OW)
          *reinterpret_cast<uint4*>(output + ((size_t)(t.n * OH + y) * OW + x) * OUT + chunk * 8) =
              *reinterpret_cast<const uint4*>(stage + pixel_index * 72 + chunk * 8);
      }
    }
  }
}

// y = max over 3x3 windows of relu(x * scale + shift), and which of the nine it was (9: none is positive).
extern "C" __global__ void __launch_bounds__(256)
    stem_pool(const bf16* x, const float* scale, const float* shift, bf16* y, u8* choice, int batch, int OH, int OW,
              int PH, int PW) {
  size_t total = (size_t)batch * PH * PW * 8;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < total; i += (size_t)gridDim.x * blockDim.x) {
    int chunk = (int)(i & 7);
    size_t position = i >> 3;
    int px = (int)(position % PW), py = (int)(position / PW % PH), n = (int)(position / ((size_t)PW * PH));
    Channels<8> a, b, best;
    load_channels(a, scale + chunk * 8);
    load_channels(b, shift + chunk * 8);
    int which[8];
#pragma unroll
    for (int c = 0; c < 8; c++) {
      best.v[c] = 0.f;
      which[c] = 9;
    }
#pragma unroll
    for (int k = 0; k < 9; k++) {
      int yy = 2 * py + k / 3, xx = 2 * px + k % 3;
      if (yy >= OH || xx >= OW) continue;
      Channels<8> v;
      load_channels(v, x + ((size_t)(n * OH + yy) * OW + xx) * OUT + chunk * 8);
#pragma unroll
      for (int c = 0; c < 8; c++) {
        float value = v.v[c] * a.v[c] + b.v[c];
        if (value > best.v[c]) {
          best.v[c] = value;
          which[c] = k;
        }
      }
    }
    store_channels(y + position * OUT + chunk * 8, best);
    uint2 packed;
    packed.x = which[0] | which[1] << 8 | which[2] << 16 | which[3] << 24;
    packed.y = which[4] | which[5] << 8 | which[6] << 16 | which[7] << 24;
    *reinterpret_cast<uint2*>(choice + position * OUT + chunk * 8) = packed;
  }
}

// The gradient that reaches 8 channels of pixel (y, x) of the convolution's output through the pool: up to four
// windows may have chosen it.
__device__ __forceinline__ void gather(Channels<8>& g, const bf16* dy, const u8* choice, int n, int y, int x,
                                       int chunk, int PH, int PW) {
#pragma unroll
  for (int c = 0; c < 8; c++) g.v[c] = 0.f;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int py = (y >> 1) - i, ky = y - 2 * py;
    if (py < 0 || py >= PH || ky > 2) continue;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      int px = (x >> 1) - j, kx = x - 2 * px;
      if (px < 0 || px >= PW || kx > 2) continue;
      u32 wanted = ky * 3 + kx;
      size_t place = ((size_t)(n * PH + py) * PW + px) * OUT + chunk * 8;
      uint2 chosen = *reinterpret_cast<const uint2*>(choice + place);
      Channels<8> d;
      load_channels(d, dy + place);
#pragma unroll
      for (int c = 0; c < 4; c++) {
        if ((chosen.x >> (8 * c) & 0xff) == wanted) g.v[c] += d.v[c];
        if ((chosen.y >> (8 * c) & 0xff) == wanted) g.v[c + 4] += d.v[c + 4];
      }
    }
  }
}

// Sums over pixels of the gradient g before the ReLU and of g * (x - mean) * inverse, per block: partial[block][2][64].
extern "C" __global__ void __launch_bounds__(256)
    stem_backward_sums(const bf16* dy, const u8* choice, const bf16* x, const float* mean, const float* inverse,
                       float* partial, int batch, int OH, int OW, int PH, int PW) {
  __shared__ float sums[2][32][OUT];
  int chunk = threadIdx.x & 7, line = threadIdx.x >> 3;
  Channels<8> m, s;
  load_channels(m, mean + chunk * 8);
  load_channels(s, inverse + chunk * 8);
  float sum[8] = {}, product[8] = {};
  size_t pixels = (size_t)batch * OH * OW;
  for (size_t p = blockIdx.x * 32 + line; p < pixels; p += (size_t)gridDim.x * 32) {
    int xx = (int)(p % OW), yy = (int)(p / OW % OH), n = (int)(p / ((size_t)OW * OH));
    Channels<8> g, v;
    load_channels(v, x + p * OUT + chunk * 8);
    gather(g, dy, choice, n, yy, xx, chunk, PH, PW);
#pragma unroll
    for (int c = 0; c < 8; c++) {
      sum[c] += g.v[c];
      product[c] += g.v[c] * ((v.v[c] - m.v[c]) * s.v[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < 8; c++) {
    sums[0][line][chunk * 8 + c] = sum[c];
    sums[1][line][chunk * 8 + c] = product[c];
  }
  __syncthreads();
  if (threadIdx.x < 2 * OUT) {
    int which = threadIdx.x / OUT, c = threadIdx.x % OUT;
    float total = 0.f;
    for (int k = 0; k < 32; k++) total += sums[which][k][c];
    partial[(size_t)(blockIdx.x * 2 + which) * OUT + c] = total;
  }
}

// Per block, its share of dW: partial[block][64][168], the product over pixels of the gradient of the convolution's
// output, g * ca + x * cb + cc, and the image's windows. Four copies of the image rows, each shifted so that the
// windows of every fourth pixel start at a multiple of 16 bytes, let the matrices be read by ldmatrix.
#define COPY (PATCH_H * STRIDE + 8)
#define GRADIENT_STRIDE 72
extern "C" __global__ void __launch_bounds__(128)
    stem_weight_gradient(const void* image, int is_bytes, float f0, float f1, float f2, float o0, float o1, float o2,
                         const bf16* dy, const u8* choice, const bf16* x, const float* ca, const float* cb,
                         const float* cc, float* partial, int batch, int H, int W, int OH, int OW, int PH, int PW) {
  extern __shared__ __align__(16) u8 shared[];
  bf16* copies = reinterpret_cast<bf16*>(shared);                  // 4 x COPY
  bf16* gradient = copies + 4 * COPY;                              // TILE_H * TILE_W x GRADIENT_STRIDE
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float factor[3] = {f0, f1, f2}, offset[3] = {o0, o1, o2};
  int chunk = threadIdx.x & 7;
  Channels<8> a, b, c;
  load_channels(a, ca + chunk * 8);
  load_channels(b, cb + chunk * 8);
  load_channels(c, cc + chunk * 8);
  for (int i = threadIdx.x; i < 4 * COPY; i += blockDim.x) copies[i].bits = 0;

  // A warp has 32 output channels and 11 of the 22 groups of 8 along k (the last is unused).
  int channel_half = warp & 1, k_half = warp >> 1;
  float sum[2][11][4] = {};

  int tiles_x = (OW + TILE_W - 1) / TILE_W, tiles_y = (OH + TILE_H - 1) / TILE_H;
  for (int index = blockIdx.x; index < tiles_x * tiles_y * batch; index += gridDim.x) {
    Tile t = tile_of(index, tiles_x, tiles_y);
    __syncthreads();
    for (int i = threadIdx.x; i < PATCH_H * PATCH_W; i += blockDim.x) {
      int row = i / PATCH_W, column = i % PATCH_W;
      int yy = 2 * t.y + row - 2, xx = 2 * t.x + column - 2;
#pragma unroll
      for (int e = 0; e < 3; e++) {
        bf16 value = from_float<bf16>(pixel(image, is_bytes, factor, offset, t.n, yy, xx, e, H, W));
        int place = row * STRIDE + column * 3 + e;
#pragma unroll
        for (int copy = 0; copy < 4; copy++) {
          int shift = (6 * copy) & 7;
          if (column * 3 + e >= shift) copies[copy * COPY + place - shift] = value;
        }
      }
    }
    for (int i = threadIdx.x; i < TILE_H * TILE_W * 8; i += blockDim.x) {
      int p = i >> 3;
      int yy = t.y + p / TILE_W, xx = t.x + p % TILE_W;
      Channels<8> g = {};
      if (yy < OH && xx < OW) {
        Channels<8> v;
        load_channels(v, x + ((size_t)(t.n * OH + yy) * OW + xx) * OUT + chunk * 8);
        gather(g, dy, choice, t.n, yy, xx, chunk, PH, PW);
#pragma unroll
        for (int e = 0; e < 8; e++) g.v[e] = g.v[e] * a.v[e] + v.v[e] * b.v[e] + c.v[e];
      }
      store_channels(gradient + p * GRADIENT_STRIDE + chunk * 8, g);
    }
    __syncthreads();

    for (int line = 0; line < TILE_H; line++) {
#pragma unroll
      for (int block = 0; block < TILE_W / 16; block++) {
        // A: channels x pixels, from (pixel, channel) rows in shared memory, read transposed.
        u32 left[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) {
          int p = line * TILE_W + block * 16 + (lane & 7) + (lane >> 4) * 8;
          int ch = channel_half * 32 + m * 16 + (lane >> 3 & 1) * 8;
          load_matrices_transposed(left[m], shared_address(gradient + p * GRADIENT_STRIDE + ch));
        }
        // B: pixels x k, two groups of 8 along k at a time.
        int p = block * 16 + (lane & 15);
        const int skip[4] = {0, 0, 8, 16};  // 6 * copy = skip + shift
        const bf16* base = copies + (p & 3) * COPY + 2 * line * STRIDE + 24 * (p >> 2) +
                           ((p & 3) == 2 ? skip[2] : (p & 3) == 3 ? skip[3] : 0);
#pragma unroll
        for (int pair = 0; pair < 6; pair++) {
          int j = k_half * 11 + pair * 2 + (lane >> 4);
          j = j < 21 ? j : 20;
          u32 right[4];
          load_matrices_transposed(right, shared_address(base + (j / 3) * STRIDE + (j % 3) * 8));
#pragma unroll
          for (int m = 0; m < 2; m++) {
            multiply(sum[m][2 * pair], left[m], right[0], right[1]);
            if (pair < 5) multiply(sum[m][2 * pair + 1], left[m], right[2], right[3]);
          }
        }
      }
    }
  }

  float* mine = partial + (size_t)blockIdx.x * OUT * 168;
#pragma unroll
  for (int m = 0; m < 2; m++)
#pragma unroll
    for (int n = 0; n < 11; n++) {
      int j = k_half * 11 + n;
      if (j >= 21) continue;
      int channel = channel_half * 32 + m * 16 + (lane >> 2), k = j * 8 + (lane & 3) * 2;
      mine[channel * 168 + k] = sum[m][n][0];
      mine[channel * 168 + k + 1] = sum[m][n][1];
      mine[(channel + 8) * 168 + k] = sum[m][n][2];
      mine[(channel + 8) * 168 + k + 1] = sum[m][n][3];
    }
}

// dW(64, 7, 7, 3) from the blocks' shares, added up in order.
extern "C" __global__ void __launch_bounds__(256)
    stem_finish_weight_gradient(const float* partial, int blocks, float* dw, int add) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= OUT * 147) return;
  int channel = i / 147, row = i % 147 / 21, q = i % 21;
  double total = 0.0;
#pragma unroll 8
  for (int block = 0; block < blocks; block++)
    total += partial[((size_t)block * OUT + channel) * 168 + row * 24 + q];
  dw[i] = (add ? dw[i] : 0.f) + (float)total;
}
