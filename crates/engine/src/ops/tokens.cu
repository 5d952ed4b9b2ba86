// The ends of a vision transformer: images cut into patches, tokens with a class token and positions; see tokens.rs.

// rows(n, H / patch, W / patch, patch, patch, 3) of normalised pixels: the matrix that the patch weights multiply. VECTOR
// must divide the numbers of a patch in one row of the image, which are neighbours in both orders.
extern "C" __global__ void __launch_bounds__(256)
    cut_patches(const void* pixels, int is_bytes, float s0, float s1, float s2, float t0, float t1, float t2, T* to,
                int batch, int H, int W, int patch) {
  int across = W / patch, down = H / patch, groups = patch * 3 / VECTOR;
  EACH(i, (size_t)batch * H * across * groups) {
    u32 rest = (u32)(i / groups);
    int c = (int)(i - (size_t)rest * groups) * VECTOR;
    int py = rest % patch;
    rest /= patch;
    int px = rest % across;
    rest /= across;
    int row = rest % down;
    size_t n = rest / down;
    size_t from = ((n * H + (size_t)row * patch + py) * W + (size_t)px * patch) * 3 + c;
    Channels<VECTOR> v;
    if (is_bytes) {
      __align__(8) u8 raw[VECTOR];
      if (VECTOR == 8) *reinterpret_cast<uint2*>(raw) = *reinterpret_cast<const uint2*>((const u8*)pixels + from);
      else raw[0] = ((const u8*)pixels)[from];
#pragma unroll
      for (int e = 0; e < VECTOR; e++) v.v[e] = (float)raw[e];
    } else {
      load_channels(v, (const float*)pixels + from);
    }
    int colour = c % 3;
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      v.v[e] = v.v[e] * (colour == 0 ? s0 : colour == 1 ? s1 : s2) + (colour == 0 ? t0 : colour == 1 ? t1 : t2);
      colour = colour == 2 ? 0 : colour + 1;
    }
    store_channels(to + i * VECTOR, v);
  }
}

// y(n, 1 + tokens, C): class token, then patches, plus positions.
extern "C" __global__ void __launch_bounds__(256)
    embed(const T* patches, const float* cls, const float* position, T* y, int batch, int tokens, int C) {
  int groups = C / VECTOR;
  EACH(i, (size_t)batch * (1 + tokens) * groups) {
    int column = (int)(i % groups) * VECTOR;
    size_t row = i / groups;
    int token = (int)(row % (1 + tokens));
    size_t n = row / (1 + tokens);
    Channels<VECTOR> v;
    if (token) load_channels(v, patches + ((n * tokens) + token - 1) * C + column);
#pragma unroll
    for (int e = 0; e < VECTOR; e++)
      v.v[e] = (token ? v.v[e] : cls[column + e]) + position[(size_t)token * C + column + e];
    store_channels(y + row * C + column, v);
  }
}

// to (+)= v
__device__ __forceinline__ void store_sum(T* to, Channels<VECTOR>& v, int add) {
  if (add) {
    Channels<VECTOR> more;
    load_channels(more, to);
#pragma unroll
    for (int e = 0; e < VECTOR; e++) v.v[e] += more.v[e];
  }
  store_channels(to, v);
}

// to(n, tokens, C) (+)= from(n, 1 + tokens, C) without each first token.
extern "C" __global__ void __launch_bounds__(256)
    drop_first(const T* from, T* to, int add, int batch, int tokens, int C) {
  int groups = C / VECTOR;
  EACH(i, (size_t)batch * tokens * groups) {
    int column = (int)(i % groups) * VECTOR;
    size_t row = i / groups;
    Channels<VECTOR> v;
    load_channels(v, from + (row + row / tokens + 1) * C + column);
    store_sum(to + row * C + column, v, add);
  }
}

// The way back: to(n, 1 + tokens, C) (+)= from(n, tokens, C) behind a first token of zeros.
extern "C" __global__ void __launch_bounds__(256)
    put_behind(const T* from, T* to, int add, int batch, int tokens, int C) {
  int groups = C / VECTOR;
  EACH(i, (size_t)batch * (1 + tokens) * groups) {
    int column = (int)(i % groups) * VECTOR;
    size_t row = i / groups;
    int token = (int)(row % (1 + tokens));
    size_t n = row / (1 + tokens);
    Channels<VECTOR> v;
#pragma unroll
    for (int e = 0; e < VECTOR; e++) v.v[e] = 0.f;
    if (token) load_channels(v, from + (n * tokens + token - 1) * C + column);
    store_sum(to + row * C + column, v, add);
  }
}
