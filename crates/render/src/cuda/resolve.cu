// From samples and shaded points to pixels: interpolation, pixel filter, the floor behind, and the camera's response.

/// How steeply rays come down at least, for the points of the floor to be within reach of single precision.
#define LEAST_DESCENT -1e-3f

/// The floor as if the object did not hide it, at every `floor_step`-th pixel corner, or (step 1) at pixel centres. What
/// is far away or above the horizon stands for the end of the floor.
KERNEL fill_floor_lattice(const Batch* b, int unused) {
    int index = blockIdx.y, node = blockIdx.x * blockDim.x + threadIdx.x, nodes = b->floor_nodes;
    if (node >= nodes * nodes) return;
    float offset = b->floor_step == 1 ? 0.5f : 0.0f, scale = 1.0f / (float)b->size;
    float x = (float)(node % nodes * b->floor_step) + offset, y = (float)(node / nodes * b->floor_step) + offset;
    const View& view = b->views[index];
    float3 direction = camera_direction(view, x * scale - 0.5f, 0.5f - y * scale);
    float t = (FLOOR_Z - view.camera_height) / fminf(direction.z, LEAST_DESCENT);
    float3 point = camera_position(view) + t * direction;
    b->floor_lattice[(u64)index * nodes * nodes + node] = extend(floor_radiance(b, index, point.x, point.y, true), 0.0f);
}

/// Light that every camera ray of the region sees of the object, and the share of the ray that the object covers.
KERNEL light_samples(const Batch* b, int unused) {
    const View& view = b->views[blockIdx.y];
    int end = view.is_empty ? 0 : view.width * view.height;
    for (int ray = blockIdx.x * blockDim.x + threadIdx.x; ray < end; ray += gridDim.x * blockDim.x) {
        int x = ray % view.width, y = ray / view.width;
        u64 first = view.sample_start + (u64)ray * view.layers;
        const float4* shades = b->shades + 2 * view.sample_start;
        // What surfaces send out themselves is there already.
        float3 sum = view.has_emission ? xyz(b->radiance[view.sample_start + ray]) : splat(0.0f);
        float covered = 0.0f;
        for (u64 slot = first; slot < first + view.layers; slot++) {
            u32 own = b->own[slot];
            if (own == EMPTY) break;
            Sample sample = b->samples[slot];
            float3 diffuse = splat(0.0f), specular = splat(0.0f);
            float lamp = 0.0f;
            if (own == INTERPOLATED) {
                int cells[4];
                float weights[4];
                float total = lattice_weights(b, view, sample, slot, x, y, cells, weights);
                for (int k = 0; k < 4; k++) {
                    if (cells[k] < 0) continue;
                    u32 point = b->cell_point[view.cell_start + cells[k]];
                    float weight = quotient(weights[k], total);
                    diffuse = diffuse + weight * xyz(shades[2 * point]);
                    specular = specular + weight * xyz(shades[2 * point + 1]);
                    lamp += weight * shades[2 * point + 1].w;
                }
            } else {
                int group = group_of(view), side = group * b->shading_step;
                int cx = x / side * group, cy = y / side * group;
                u32 point = b->cell_point[view.cell_start + cy * view.columns + cx] + (own & ~OWNER);
                if (lattice_slot(b, view, cx, cy) != ~0ull) point++;
                diffuse = xyz(shades[2 * point]);
                specular = xyz(shades[2 * point + 1]);
                lamp = shades[2 * point + 1].w;
            }
            if (lamp > 0.0f) specular = specular + lamp * lamp_mirrored(b, view, sample);
            float weight = sample.position.w;
            sum = sum + weight * (xyz(sample.albedo) * diffuse + specular);
            covered += weight;
        }
        b->radiance[view.sample_start + ray] = extend(sum, covered);
    }
}

/// Display value of scene-linear light, rounded to 8 bits: see colour.rs.
DEVICE u8 encode(const Batch* b, float linear) {
    const u32 first = (127 - 13) << 23, last = (127 + 5) << 23;
    float smallest = __uint_as_float(first), display;
    if (!(linear > smallest)) {
        display = b->filmic_table[0] * fmaxf(linear / smallest, 0.0f);
    } else {
        u32 bits = min(__float_as_uint(linear), last) - first;
        int i = bits >> 17;
        float fraction = (float)(bits & 0x1ffff) * (1.0f / 131072.0f);
        display = mix(b->filmic_table[i], b->filmic_table[i + 1], fraction);
    }
    return (u8)(int)fminf(display + (0.5f + 0.5f * 0.0033f * 255.0f), 255.0f);
}

KERNEL write_pixels(const Batch* b, int unused) {
    int index = blockIdx.y, pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= b->size * b->size) return;
    const View& view = b->views[index];
    int x = pixel % b->size, y = pixel / b->size, step = b->floor_step, nodes = b->floor_nodes;
    const float4* lattice = b->floor_lattice + (u64)index * nodes * nodes;
    float3 value;
    if (step == 1) {
        value = xyz(lattice[y * nodes + x]);
    } else {
        float fx = ((float)(x % step) + 0.5f) / (float)step, fy = ((float)(y % step) + 0.5f) / (float)step;
        const float4* at = lattice + y / step * nodes + x / step;
        value = mix(mix(xyz(at[0]), xyz(at[1]), fx), mix(xyz(at[nodes]), xyz(at[nodes + 1]), fx), fy);
    }
    // The world in the rows above the horizon, and in its share of the row that the horizon crosses.
    float sky = clamp(view.horizon - (float)y, 0.0f, 1.0f);
    if (sky > 0.0f) value = mix(value, splat(WORLD_RADIANCE), sky);
    int per_pixel = b->supersampling;
    int rx = (x - view.x0) * per_pixel - per_pixel, ry = (y - view.y0) * per_pixel - per_pixel;
    if (!view.is_empty && rx >= -per_pixel && ry >= -per_pixel && rx + per_pixel < view.width &&
        ry + per_pixel < view.height) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int j = 0; j < 3 * per_pixel; j++) {
            int sy = ry + j;
            if (sy < 0 || sy >= view.height) continue;
            const float4* row = b->radiance + view.sample_start + (u64)sy * view.width;
            float4 part = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            for (int i = 0; i < 3 * per_pixel; i++) {
                int sx = rx + i;
                if (sx < 0 || sx >= view.width) continue;
                float4 light = row[sx];
                float weight = b->filter[i];
                part.x += weight * light.x;
                part.y += weight * light.y;
                part.z += weight * light.z;
                part.w += weight * light.w;
            }
            float weight = b->filter[j];
            sum.x += weight * part.x;
            sum.y += weight * part.y;
            sum.z += weight * part.z;
            sum.w += weight * part.w;
        }
        value = (1.0f - sum.w) * value + xyz(sum);
    }
    u8* out = b->images + ((u64)view.image * b->size * b->size + pixel) * 3;
    out[0] = encode(b, value.x);
    out[1] = encode(b, value.y);
    out[2] = encode(b, value.z);
}
