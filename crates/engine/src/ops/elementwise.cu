// Element by element: gradients added up, casts, sigmoid, Adam.

// y = a + b, in their own type (eight at a time where all are aligned, which `vectors` counts).
__device__ __forceinline__ void sum_of(const T* a, const T* b, T* y, i64 count, i64 vectors) {
  EACH(i, (size_t)vectors) {
    Channels<8> u, v;
    load_channels(u, a + i * 8);
    load_channels(v, b + i * 8);
#pragma unroll
    for (int k = 0; k < 8; k++) u.v[k] += v.v[k];
    store_channels(y + i * 8, u);
  }
  size_t rest = (size_t)(count - vectors * 8);
  EACH(i, rest) {
    size_t place = (size_t)vectors * 8 + i;
    y[place] = from_float<T>(to_float(a[place]) + to_float(b[place]));
  }
}
extern "C" __global__ void __launch_bounds__(256) add(const T* a, const T* b, T* y, i64 count, i64 vectors) {
  sum_of(a, b, y, count, vectors);
}
extern "C" __global__ void __launch_bounds__(256) add_into(T* to, const T* from, i64 count, i64 vectors) {
  sum_of(to, from, to, count, vectors);
}

// f32 to T, and T to f32 (added where `add`).
extern "C" __global__ void __launch_bounds__(256) from_f32(const float* from, T* to, i64 count) {
  EACH(i, (size_t)count) to[i] = from_float<T>(from[i]);
}
extern "C" __global__ void __launch_bounds__(256) to_f32(const T* from, float* to, i64 count, int add) {
  EACH(i, (size_t)count) to[i] = (add ? to[i] : 0.f) + to_float(from[i]);
}
// In the type of gradients.
extern "C" __global__ void __launch_bounds__(256) round_values(const T* from, G* to, i64 count) {
  EACH(i, (size_t)count) to[i] = from_float<G>(to_float(from[i]));
}

// Pixels (n, h, w, 3), normalised: value * scale + shift by channel.
extern "C" __global__ void __launch_bounds__(256)
    normalise_pixels(const void* pixels, int is_bytes, float s0, float s1, float s2, float t0, float t1, float t2,
                     T* to, i64 count) {
  float scale[3] = {s0, s1, s2}, shift[3] = {t0, t1, t2};
  EACH(i, (size_t)count) {
    float value = is_bytes ? (float)((const u8*)pixels)[i] : ((const float*)pixels)[i];
    int c = (int)(i % 3);
    to[i] = from_float<T>(value * scale[c] + shift[c]);
  }
}

extern "C" __global__ void __launch_bounds__(256) sigmoid(const T* x, T* y, i64 count) {
  EACH(i, (size_t)count) y[i] = from_float<T>(1.f / (1.f + expf(-to_float(x[i]))));
}
extern "C" __global__ void __launch_bounds__(256) sigmoid_backward(const T* dy, const T* y, T* dx, int add, i64 count) {
  EACH(i, (size_t)count) {
    float out = to_float(y[i]);
    float d = to_float(dy[i]) * out * (1.f - out);
    dx[i] = from_float<T>(add ? to_float(dx[i]) + d : d);
  }
}

extern "C" __global__ void __launch_bounds__(256) relu(const T* x, T* y, i64 count) {
  EACH(i, (size_t)count) y[i] = from_float<T>(fmaxf(to_float(x[i]), 0.f));
}
extern "C" __global__ void __launch_bounds__(256) relu_backward(const T* dy, const T* y, T* dx, int add, i64 count) {
  EACH(i, (size_t)count) {
    float d = to_float(y[i]) > 0.f ? to_float(dy[i]) : 0.f;
    dx[i] = from_float<T>(add ? to_float(dx[i]) + d : d);
  }
}

// `width` columns of every row, from one place to another.
extern "C" __global__ void __launch_bounds__(256)
    copy_columns(const T* from, int from_total, int from_start, T* to, int to_total, int to_start, int width, i64 rows,
                 int add) {
  EACH(i, (size_t)rows * width) {
    size_t row = i / width;
    int column = (int)(i % width);
    T value = from[row * from_total + from_start + column];
    T* place = to + row * to_total + to_start + column;
    *place = add ? from_float<T>(to_float(*place) + to_float(value)) : value;
  }
}

// Adam with L2 weight decay, as in adam.rs.
extern "C" __global__ void __launch_bounds__(256)
    adam(float* p, const float* g, float* m, float* v, i64 count, float weight_decay, float beta1, float rest1,
         float beta2, float rest2, float step_size, float root_scale, float epsilon) {
  EACH(i, (size_t)count) {
    float value = p[i];
    float d = g[i] + weight_decay * value;
    float first = beta1 * m[i] + rest1 * d;
    float second = beta2 * v[i] + rest2 * d * d;
    m[i] = first;
    v[i] = second;
    p[i] = value - step_size * (first / (sqrtf(second) * root_scale + epsilon));
  }
}

// y(rows, C) += b(C)
extern "C" __global__ void __launch_bounds__(256) add_bias(T* y, const float* bias, i64 count, int C) {
  EACH(i, (size_t)count) y[i] = from_float<T>(to_float(y[i]) + bias[i % C]);
}
