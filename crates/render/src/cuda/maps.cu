// Images over surfaces, and what materials make of them: the formulas of maps.rs, mesh.rs and masks.rs.

#define MAX_TEXELS 2.0f

/// Which copy of an image to look up where neighbouring rays lie `footprint` apart, in squared texture coordinates.
DEVICE int map_level(const Map& map, float footprint) {
    float texels = footprint * fabsf((float)map.width * map.scale[0] * ((float)map.height * map.scale[1]));
    int level = 0;
    while (texels > MAX_TEXELS && level + 1 < (int)map.levels) {
        texels *= 0.25f;
        level++;
    }
    return level;
}

/// The two texels around a repeated coordinate and the weight of the second.
DEVICE void texel_pair(float coordinate, int size, int& first, int& second, float& weight) {
    float x = (coordinate - floorf(coordinate)) * (float)size - 0.5f;
    float low = floorf(x);
    weight = x - low;
    first = (int)low;
    first = first < 0 ? first + size : first >= size ? first - size : first;
    second = first + 1 == size ? 0 : first + 1;
}

DEVICE float4 texel(const View& view, u32 place) {
    uchar4 t = view.texels[place];
    return make_float4((float)t.x, (float)t.y, (float)t.z, (float)t.w);
}
DEVICE float4 mix(float4 a, float4 b, float t) {
    return make_float4(mix(a.x, b.x, t), mix(a.y, b.y, t), mix(a.z, b.z, t), mix(a.w, b.w, t));
}

/// Bytes at a texture coordinate: bilinear, repeated.
DEVICE float4 map_lookup(const View& view, const Map& map, float2 uv, int level) {
    u32 start = map.start, width = map.width, height = map.height;
    for (int i = 0; i < level; i++) {
        start += width * height;
        width = max(width / 2, 1u);
        height = max(height / 2, 1u);
    }
    int x0, x1, y0, y1;
    float fx, fy;
    texel_pair(map.scale[0] * uv.x + map.offset[0], (int)width, x0, x1, fx);
    texel_pair(1.0f - (map.scale[1] * uv.y + map.offset[1]), (int)height, y0, y1, fy);
    float4 top = mix(texel(view, start + y0 * width + x0), texel(view, start + y0 * width + x1), fx);
    float4 bottom = mix(texel(view, start + y1 * width + x0), texel(view, start + y1 * width + x1), fx);
    return mix(top, bottom, fy);
}

DEVICE float srgb_decode(const Batch* b, float value) {
    float x = clamp(value, 0.0f, 255.0f) * 4.0f;
    int i = (int)x;
    return mix(b->srgb_table[i], b->srgb_table[i + 1], x - (float)i);
}

DEVICE float3 map_colour(const Batch* b, const View& view, const Map& map, float2 uv, float footprint) {
    float4 value = map_lookup(view, map, uv, map_level(map, footprint));
    return vec(srgb_decode(b, value.x), srgb_decode(b, value.y), srgb_decode(b, value.z));
}

DEVICE bool has_maps(const Material& m) {
    return (m.texture.width | m.opacity.width | m.emission_map.width | m.surface_map.width | m.normal_map.width) != 0;
}

DEVICE float3 albedo(const Batch* b, const View& view, const Material& m, float2 uv, float footprint) {
    return m.texture.width == 0 ? vec(m.base_colour) : map_colour(b, view, m.texture, uv, footprint);
}

/// Looked up one copy finer than colours: see maps.rs.
DEVICE float opacity(const View& view, const Material& m, float2 uv, float footprint) {
    if (m.opacity.width == 0) return m.alpha;
    return m.alpha * (map_lookup(view, m.opacity, uv, map_level(m.opacity, 0.25f * footprint)).w * (1.0f / 255.0f));
}

DEVICE float3 emission(const Batch* b, const View& view, const Material& m, float2 uv, float footprint) {
    float3 own = vec(m.emission);
    return m.emission_map.width == 0 ? own : own * map_colour(b, view, m.emission_map, uv, footprint);
}

DEVICE float2 uv_at(const Shading& s, float u, float v) {
    float w = 1.0f - u - v;
    return make_float2(w * s.uvs[0] + u * s.uvs[2] + v * s.uvs[4], w * s.uvs[1] + u * s.uvs[3] + v * s.uvs[5]);
}

/// Area in texture coordinates over area in the object.
DEVICE float uv_density(const Shading& s) {
    float ax = s.uvs[2] - s.uvs[0], ay = s.uvs[3] - s.uvs[1], bx = s.uvs[4] - s.uvs[0], by = s.uvs[5] - s.uvs[1];
    float3 normal = cross(vec(s.edge1), vec(s.edge2));
    return fabsf(ax * by - ay * bx) / fmaxf(sqrtf(dot(normal, normal)), 1e-12f);
}

/// The texel of `size` before a repeated coordinate, which is not negative, and how far the coordinate lies beyond its middle.
DEVICE u32 texel_before(float coordinate, u32 size, float length, float& weight) {
    // The middle of the first texel lies at 1: what lies before is beyond the last.
    float x = (coordinate - floorf(coordinate)) * length + 0.5f, low = floorf(x);
    weight = x - low;
    return min((u32)((int)low - 1), size - 1);
}

/// Share of the light that passes a triangle where the weights of its second and third corner are `u`, `v`.
DEVICE float passes(const Pane& pane, const u32* quads, float u, float v) {
    float4 across = __ldg(&pane.across), down = __ldg(&pane.down);
    uint4 copy = __ldg(&pane.copy);
    if (__float_as_int(across.w) >= 0) return across.w;
    float fx, fy;
    u32 x = texel_before(across.x + u * across.y + v * across.z, copy.x, __uint_as_float(copy.z), fx);
    u32 y = texel_before(down.x + u * down.y + v * down.z, copy.y, __uint_as_float(copy.w), fy);
    u32 quad = __ldg(quads + ((__float_as_uint(across.w) & 0x7fffffff) + y * copy.x + x));
    float top = mix((float)(quad & 255), (float)(quad >> 8 & 255), fx);
    float bottom = mix((float)(quad >> 16 & 255), (float)(quad >> 24), fx);
    return 1.0f - down.w * mix(top, bottom, fy);
}
