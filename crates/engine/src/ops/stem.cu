// The first layer in f16, its gradients in bf16: 7x7 convolution with stride 2 from 3 to 64 channels, zeros around the
// image (2 left and top, 3 right and bottom), batch norm, ReLU, 3x3 max-pool with stride 2. Its tensors are the largest
// of the network, so: the convolution reads the image itself (bytes or floats), the pooled result is all that is written
// after it, and backward recomputes what lies between, inside the kernel of the weight gradient.
//
// Tensor-core products (mma m16n8k16) with the inner index k = 24 kernel_row + 3 kernel_column + colour: 21 of every 24
// are used, the others meet zero weights. A pixel of the output reads 24 consecutive numbers of each image row from
// 6 x its column on, so an image row in shared memory serves as the matrix, without unfolding it.

#define TILE_W 64                  // output pixels of a tile in a row
#define TILE_H 4                   // output rows of a tile
#define PATCH_H (2 * TILE_H + 5)   // image rows of a tile
#define PATCH_W (2 * TILE_W + 5)   // image columns of a tile
#define STRIDE 408                 // numbers between image rows in shared memory (6 * 63 + 24 = 402 are read)
#define STEPS 11                   // products over k of 16 each: 7 * 24 = 168, and 8 more that meet zeros
#define OUT 64                     // output channels

struct Tile { int n, y, x; };
__device__ __forceinline__ Tile tile_of(int index, int tiles_x, int tiles_y) {
  Tile t;
  t.x = (index % tiles_x) * TILE_W;
  t.y = (index / tiles_x % tiles_y) * TILE_H;
  t.n = index / (tiles_x * tiles_y);
  return t;
}

// The normalised colours of pixel `i` of a tile's PATCH_H x PATCH_W pixels of image; 0 outside of the image. `offset` is
// -mean / deviation, `factor` 1 / deviation, for bytes also divided by 255.
__device__ __forceinline__ void load_pixel(float* value, const void* image, int is_bytes, const float* factor,
                                           const float* offset, const Tile& t, int i, int H, int W) {
  int y = 2 * t.y + i / PATCH_W - 2, x = 2 * t.x + i % PATCH_W - 2;
  bool inside = i < PATCH_H * PATCH_W && y >= 0 && y < H && x >= 0 && x < W;
  size_t place = inside ? ((size_t)(t.n * H + y) * W + x) * 3 : 0;
#pragma unroll
  for (int c = 0; c < 3; c++) {
    float raw = is_bytes ? (float)((const u8*)image)[place + c] : ((const float*)image)[place + c];
    value[c] = inside ? raw * factor[c] + offset[c] : 0.f;
  }
}

// Calls put(row, column, colours) for all pixels of a tile, four of a thread in flight.
template <typename Put>
__device__ __forceinline__ void load_patch(const void* image, int is_bytes, const float* factor, const float* offset,
                                           const Tile& t, int H, int W, const Put& put) {
  for (int start = 0; start < PATCH_H * PATCH_W; start += 4 * 256) {
    float value[4][3];
#pragma unroll
    for (int k = 0; k < 4; k++)
      load_pixel(value[k], image, is_bytes, factor, offset, t, start + k * 256 + threadIdx.x, H, W);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int i = start + k * 256 + threadIdx.x;
      if (i < PATCH_H * PATCH_W) put(i / PATCH_W, i % PATCH_W, value[k]);
    }
  }
}

// x(n, y, x, 64), the convolution. Blocks stay and go from tile to tile, so that weights are read once.
extern "C" __global__ void __launch_bounds__(256, 2)
    stem_forward(const void* image, int is_bytes, float f0, float f1, float f2, float o0, float o1, float o2,
                 const float* weight, f16* output, int batch, int H, int W, int OH, int OW) {
  __shared__ __align__(16) f16 patch[PATCH_H * STRIDE + 16];
  __shared__ __align__(16) u32 weights[STEPS * 4 * 32 * 4];
  __shared__ __align__(16) f16 staging[8][8 * 72];
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
    weights[i] = pack_f16(value[0], value[1]);
  }
  for (int i = threadIdx.x; i < PATCH_H * STRIDE + 16; i += blockDim.x) patch[i].bits = 0;

  int tiles_x = (OW + TILE_W - 1) / TILE_W, tiles_y = (OH + TILE_H - 1) / TILE_H;
  for (int index = blockIdx.x; index < tiles_x * tiles_y * batch; index += gridDim.x) {
    Tile t = tile_of(index, tiles_x, tiles_y);
    __syncthreads();
    load_patch(image, is_bytes, factor, offset, t, H, W, [&](int row, int column, const float* value) {
      f16* place = patch + row * STRIDE + column * 3;
#pragma unroll
      for (int c = 0; c < 3; c++) place[c] = from_float<f16>(value[c]);
    });
    __syncthreads();

    // A warp has 32 pixels of a row and all channels.
    float sum[2][8][4] = {};
    const f16* rows = patch + 2 * (warp >> 1) * STRIDE + (warp & 1) * 32 * 6 + part * 2;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
      const int j0 = 2 * step, j1 = 2 * step + 1 < 21 ? 2 * step + 1 : 20;  // groups of 8 along k; the last meets zeros
      const int first = (j0 / 3) * STRIDE + (j0 % 3) * 8, second = (j1 / 3) * STRIDE + (j1 % 3) * 8;
      uint4 b[4];
#pragma unroll
      for (int pair = 0; pair < 4; pair++)
        b[pair] = *reinterpret_cast<const uint4*>(&weights[((step * 4 + pair) * 32 + lane) * 4]);
#pragma unroll
      for (int m = 0; m < 2; m++) {
        const f16* low = rows + (m * 16 + group) * 6;
        const f16* high = low + 8 * 6;
        u32 a[4] = {*reinterpret_cast<const u32*>(low + first), *reinterpret_cast<const u32*>(high + first),
                    *reinterpret_cast<const u32*>(low + second), *reinterpret_cast<const u32*>(high + second)};
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
          multiply_f16(sum[m][2 * pair], a, b[pair].x, b[pair].y);
          multiply_f16(sum[m][2 * pair + 1], a, b[pair].z, b[pair].w);
        }
      }
    }

    // Eight pixels at a time through shared memory, so that 16 bytes are written at once.
    int y = t.y + (warp >> 1);
    f16* stage = staging[warp];
#pragma unroll
    for (int eight = 0; eight < 4; eight++) {
      const int m = eight >> 1, half = eight & 1;
      __syncwarp();
#pragma unroll
      for (int n = 0; n < 8; n++)
        *reinterpret_cast<u32*>(stage + group * 72 + n * 8 + part * 2) =
            pack_f16(sum[m][n][2 * half], sum[m][n][2 * half + 1]);
      __syncwarp();
#pragma unroll
      for (int k = 0; k < 2; k++) {
        int p = k * 4 + (lane >> 3), chunk = lane & 7;
        int x = t.x + (warp & 1) * 32 + eight * 8 + p;
        if (y < OH && x < OW)
          *reinterpret_cast<uint4*>(output + ((size_t)(t.n * OH + y) * OW + x) * OUT + chunk * 8) =
              *reinterpret_cast<const uint4*>(stage + p * 72 + chunk * 8);
      }
    }
  }
}

// y = max over 3x3 windows of relu(x * scale + shift), the same in bf16 (where asked for), which of the nine it was (9:
// none is positive), and the x of that one, which backward needs for its sums.
extern "C" __global__ void __launch_bounds__(256)
    stem_pool(const f16* x, const float* scale, const float* shift, f16* y, bf16* rounded, u8* choice, f16* peak,
              int batch, int OH, int OW, int PH, int PW) {
  size_t total = (size_t)batch * PH * PW * 8;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < total; i += (size_t)gridDim.x * blockDim.x) {
    int chunk = (int)(i & 7);
    size_t position = i >> 3;
    int px = (int)(position % PW), py = (int)(position / PW % PH), n = (int)(position / ((size_t)PW * PH));
    Channels<8> a, b, best, top = {};
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
          top.v[c] = v.v[c];
          which[c] = k;
        }
      }
    }
    store_channels(y + position * OUT + chunk * 8, best);
    if (rounded) store_channels(rounded + position * OUT + chunk * 8, best);
    store_channels(peak + position * OUT + chunk * 8, top);
    uint2 packed;
    packed.x = which[0] | which[1] << 8 | which[2] << 16 | which[3] << 24;
    packed.y = which[4] | which[5] << 8 | which[6] << 16 | which[7] << 24;
    *reinterpret_cast<uint2*>(choice + position * OUT + chunk * 8) = packed;
  }
}

// Sums over pixels of the gradient g before the ReLU and of g * (x - mean), per block: partial[block][2][64].
// Only chosen pixels have a gradient, so windows are gone through, not pixels.
extern "C" __global__ void __launch_bounds__(256)
    stem_backward_sums(const bf16* dy, const u8* choice, const f16* peak, const float* mean, float* partial,
                       i64 windows) {
  __shared__ float sums[2][32][OUT];
  int chunk = threadIdx.x & 7, line = threadIdx.x >> 3;
  Channels<8> m;
  load_channels(m, mean + chunk * 8);
  float sum[8] = {}, product[8] = {};
#pragma unroll 4
  for (size_t p = blockIdx.x * 32 + line; p < (size_t)windows; p += (size_t)gridDim.x * 32) {
    size_t place = p * OUT + chunk * 8;
    uint2 chosen = *reinterpret_cast<const uint2*>(choice + place);
    Channels<8> g, v;
    load_channels(g, dy + place);
    load_channels(v, peak + place);
#pragma unroll
    for (int c = 0; c < 8; c++) {
      u32 which = (c < 4 ? chosen.x >> (8 * c) : chosen.y >> (8 * (c - 4))) & 0xff;
      float d = which < 9 ? g.v[c] : 0.f;
      sum[c] += d;
      product[c] += d * (v.v[c] - m.v[c]);
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

// Per block, its share of dW: partial[block][64][7 * 32], the product over pixels of the gradient of the convolution's
// output, g * ca + x * cb + cc, and the image's windows. Here image pixels have four numbers in shared memory (the
// fourth is zero), so that the window of every output pixel starts at a multiple of 16 bytes and ldmatrix can read it:
// k = 32 kernel_row + 4 kernel_column + colour, 21 of every 32 used.
#define PATCH_STRIDE (PATCH_W * 4 + 12)  // numbers; a window reads 32 from 8 x its column on
#define GRADIENT_STRIDE 72
extern "C" __global__ void __launch_bounds__(256, 2)
    stem_weight_gradient(const void* image, int is_bytes, float f0, float f1, float f2, float o0, float o1, float o2,
                         const bf16* dy, const u8* choice, const f16* x, const float* ca, const float* cb,
                         const float* cc, float* partial, int batch, int H, int W, int OH, int OW, int PH, int PW) {
  extern __shared__ __align__(16) u8 shared[];
  bf16* patch = reinterpret_cast<bf16*>(shared);                     // PATCH_H x PATCH_STRIDE
  bf16* gradient = patch + PATCH_H * PATCH_STRIDE;                   // TILE_H * TILE_W x GRADIENT_STRIDE
  float* factors = reinterpret_cast<float*>(gradient + TILE_H * TILE_W * GRADIENT_STRIDE);  // ca, cb, cc
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float factor[3] = {f0, f1, f2}, offset[3] = {o0, o1, o2};
  for (int i = threadIdx.x; i < 3 * OUT; i += blockDim.x)
    factors[i] = i < OUT ? ca[i] : i < 2 * OUT ? cb[i - OUT] : cc[i - 2 * OUT];
  for (int i = threadIdx.x; i < PATCH_H * PATCH_STRIDE; i += blockDim.x) patch[i].bits = 0;

  // A warp has 32 output channels and 7 of the 28 groups of 8 along k.
  int channel_half = warp & 1, quarter = warp >> 1;
  float sum[2][7][4] = {};

  int tiles_x = (OW + TILE_W - 1) / TILE_W, tiles_y = (OH + TILE_H - 1) / TILE_H;
  for (int index = blockIdx.x; index < tiles_x * tiles_y * batch; index += gridDim.x) {
    Tile t = tile_of(index, tiles_x, tiles_y);
    __syncthreads();
    load_patch(image, is_bytes, factor, offset, t, H, W, [&](int row, int column, const float* value) {
      uint2 packed = make_uint2(pack_bf16(value[0], value[1]), pack_bf16(value[2], 0.f));
      *reinterpret_cast<uint2*>(patch + row * PATCH_STRIDE + column * 4) = packed;
    });
    // Four neighbouring pixels of the convolution's output at a time: the same four windows may have chosen them.
#pragma unroll
    for (int k = 0; k < TILE_H * TILE_W * 2 / 256; k++) {
      int i = k * 256 + threadIdx.x;
      int chunk = i & 7, quad = i >> 3;
      int qy = t.y / 2 + quad / (TILE_W / 2), qx = t.x / 2 + quad % (TILE_W / 2);
      Channels<8> d[4];
      uint2 chosen[4];
#pragma unroll
      for (int w = 0; w < 4; w++) {
        int py = qy - (w >> 1), px = qx - (w & 1);
        chosen[w] = make_uint2(0xffffffffu, 0xffffffffu);
        d[w] = Channels<8>();
        if (py >= 0 && py < PH && px >= 0 && px < PW) {
          size_t place = ((size_t)(t.n * PH + py) * PW + px) * OUT + chunk * 8;
          chosen[w] = *reinterpret_cast<const uint2*>(choice + place);
          load_channels(d[w], dy + place);
        }
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int dy_ = e >> 1, dx_ = e & 1;
        int yy = 2 * qy + dy_, xx = 2 * qx + dx_;
        Channels<8> g = {};
        if (yy < OH && xx < OW) {
          Channels<8> v;
          load_channels(v, x + ((size_t)(t.n * OH + yy) * OW + xx) * OUT + chunk * 8);
#pragma unroll
          for (int w = 0; w < 4; w++) {
            int ky = dy_ + 2 * (w >> 1), kx = dx_ + 2 * (w & 1);
            if (ky > 2 || kx > 2) continue;
            u32 wanted = ky * 3 + kx;
#pragma unroll
            for (int c = 0; c < 4; c++) {
              if ((chosen[w].x >> (8 * c) & 0xff) == wanted) g.v[c] += d[w].v[c];
              if ((chosen[w].y >> (8 * c) & 0xff) == wanted) g.v[c + 4] += d[w].v[c + 4];
            }
          }
#pragma unroll
          for (int c = 0; c < 8; c++) {
            int channel = chunk * 8 + c;
            g.v[c] = g.v[c] * factors[channel] + v.v[c] * factors[OUT + channel] + factors[2 * OUT + channel];
          }
        }
        int p = (yy - t.y) * TILE_W + xx - t.x;
        store_channels(gradient + p * GRADIENT_STRIDE + chunk * 8, g);
      }
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
          int channel = channel_half * 32 + m * 16 + (lane >> 3 & 1) * 8;
          load_matrices_transposed(left[m], shared_address(gradient + p * GRADIENT_STRIDE + channel));
        }
        // B: pixels x k, two groups of 8 along k at a time.
        const bf16* base = patch + 2 * line * PATCH_STRIDE + (block * 16 + (lane & 15)) * 8;
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
          int j = quarter * 7 + min(pair * 2 + (lane >> 4), 6);
          u32 right[4];
          load_matrices_transposed(right, shared_address(base + (j >> 2) * PATCH_STRIDE + (j & 3) * 8));
#pragma unroll
          for (int m = 0; m < 2; m++) {
            multiply(sum[m][2 * pair], left[m], right[0], right[1]);
            if (pair < 3) multiply(sum[m][2 * pair + 1], left[m], right[2], right[3]);
          }
        }
      }
    }
  }

  float* mine = partial + (size_t)blockIdx.x * OUT * 224;
#pragma unroll
  for (int m = 0; m < 2; m++)
#pragma unroll
    for (int n = 0; n < 7; n++) {
      int channel = channel_half * 32 + m * 16 + (lane >> 2), k = (quarter * 7 + n) * 8 + (lane & 3) * 2;
      mine[channel * 224 + k] = sum[m][n][0];
      mine[channel * 224 + k + 1] = sum[m][n][1];
      mine[(channel + 8) * 224 + k] = sum[m][n][2];
      mine[(channel + 8) * 224 + k + 1] = sum[m][n][3];
    }
}

// dW(64, 7, 7, 3) from the blocks' shares, added up in order.
extern "C" __global__ void __launch_bounds__(256)
    stem_finish_weight_gradient(const float* partial, int blocks, float* dw, int add) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= OUT * 147) return;
  int channel = i / 147, row = i % 147 / 21, column = i % 21 / 3, colour = i % 3;
  double total = 0.0;
#pragma unroll 8
  for (int block = 0; block < blocks; block++)
    total += partial[((size_t)block * OUT + channel) * 224 + row * 32 + column * 4 + colour];
  dw[i] = (add ? dw[i] : 0.f) + (float)total;
}
