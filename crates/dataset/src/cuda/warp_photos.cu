// Views of photographs: every thread makes one pixel of one view, as `Picture::view` does on the host.

struct View {
    const unsigned char* picture;
    unsigned char* pixels;
    int levels;
    int side;
    float photo_from_view[9];
    float colour[12];
    float unused;
};

// Bilinear in a level that begins at `texels`; `x` and `y` from -1 to 1.
__device__ float3 level_colour(const unsigned char* texels, int side, float x, float y)
{
    float last = (float)(side - 1);
    float u = fminf(fmaxf((0.5f * x + 0.5f) * (float)side - 0.5f, 0.0f), last);
    float v = fminf(fmaxf((0.5f * y + 0.5f) * (float)side - 0.5f, 0.0f), last);
    int x0 = (int)u, y0 = (int)v;
    int x1 = min(x0 + 1, side - 1), y1 = min(y0 + 1, side - 1);
    float fx = u - (float)x0, fy = v - (float)y0;
    const unsigned char* a = texels + 3 * (y0 * side + x0);
    const unsigned char* b = texels + 3 * (y0 * side + x1);
    const unsigned char* c = texels + 3 * (y1 * side + x0);
    const unsigned char* d = texels + 3 * (y1 * side + x1);
    float result[3];
    for (int k = 0; k < 3; ++k) {
        float top = (float)a[k] + fx * ((float)b[k] - (float)a[k]);
        float bottom = (float)c[k] + fx * ((float)d[k] - (float)c[k]);
        result[k] = top + fy * (bottom - top);
    }
    return make_float3(result[0], result[1], result[2]);
}

extern "C" __global__ void warp_photos(const View* views, int size)
{
    const View& view = views[blockIdx.y];
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= size * size) return;
    const float* m = view.photo_from_view;
    float step = 2.0f / (float)size;
    float u = ((float)(pixel % size) + 0.5f) * step - 1.0f;
    float v = ((float)(pixel / size) + 0.5f) * step - 1.0f;
    float w = 1.0f / (m[6] * u + m[7] * v + m[8]);
    float x = (m[0] * u + m[1] * v + m[2]) * w;
    float y = (m[3] * u + m[4] * v + m[5]) * w;
    // How fast the place changes along x and along y of the view.
    float xu = (m[0] - x * m[6]) * w, yu = (m[3] - y * m[6]) * w;
    float xv = (m[1] - x * m[7]) * w, yv = (m[4] - y * m[7]) * w;
    float most = fmaxf(xu * xu + yu * yu, xv * xv + yv * yv);
    float texels = 0.5f * (float)view.side * step;
    float level = fminf(0.5f * log2f(fmaxf(most * texels * texels, 1.0f)), (float)(view.levels - 1));
    int low = (int)level;
    float share = level - (float)low;
    const unsigned char* at = view.picture;
    int side = view.side;
    for (int k = 0; k < low; ++k) {
        at += 3 * side * side;
        side /= 2;
    }
    float3 colour = level_colour(at, side, x, y);
    if (share > 0.0f) {
        float3 coarse = level_colour(at + 3 * side * side, side / 2, x, y);
        colour = make_float3(colour.x + share * (coarse.x - colour.x), colour.y + share * (coarse.y - colour.y),
                             colour.z + share * (coarse.z - colour.z));
    }
    const float* c = view.colour;
    for (int k = 0; k < 3; ++k) {
        float value = c[4 * k] * colour.x + c[4 * k + 1] * colour.y + c[4 * k + 2] * colour.z + 255.0f * c[4 * k + 3];
        view.pixels[3 * pixel + k] = (unsigned char)fminf(fmaxf(value + 0.5f, 0.0f), 255.0f);
    }
}
