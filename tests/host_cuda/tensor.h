// What kernels of the engine find before them on the host, beside lanes.h: number types, copies to shared memory that are done
// at once, and tensor cores, whose matrices the lanes of a warp show one another. Stands for crates/engine/src/cuda/prelude.cuh
// as far as muon.cpp needs it.

#pragma once

#include "lanes.h"

#define __align__(bytes) __attribute__((aligned(bytes)))

typedef unsigned short u16;
typedef unsigned int u32;

struct bf16 {
    u16 bits;
};
static inline float to_float(float x) { return x; }
static inline float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
template <typename S>
static inline S from_float(float x);
template <>
inline float from_float<float>(float x) {
    return x;
}
// Rounded to the nearest, to even ones between two.
template <>
inline bf16 from_float<bf16>(float x) {
    u32 bits = __float_as_uint(x);
    return {(u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
static inline u32 pack_bf16(float low, float high) {
    return from_float<bf16>(low).bits | (u32)from_float<bf16>(high).bits << 16;
}
static inline float low_half(u32 pair) { return __uint_as_float(pair << 16); }
static inline float high_half(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

static inline double block_sum(double x, double* scratch) {
    __syncthreads();
    if (threadIdx.x == 0) scratch[0] = 0;
    __syncthreads();
    for (unsigned turn = 0; turn < blockDim.x; turn++) {
        if (threadIdx.x == turn) scratch[0] += x;
        __syncthreads();
    }
    return scratch[0];
}

// Addresses in shared memory are whole ones here.
static inline uint64_t shared_address(const void* pointer) { return (uint64_t)pointer; }
static inline void copy_async(uint64_t to, const void* from) {
    if (to % 16 != 0 || (uint64_t)from % 16 != 0) {
        fprintf(stderr, "a copy of 16 bytes begins at an address that is no multiple of 16\n");
        abort();
    }
    memcpy((void*)to, from, 16);
}
static inline void copy_commit() {}
template <int LEFT>
static inline void copy_wait() {}

namespace host {

// What all lanes bring, kept.
static void exchange_all(u32* all, u32 value) {
    const uint64_t* values = exchange(value);
    for (int i = 0; i < 32; i++) all[i] = (u32)values[i];
}

static void load_matrices(u32* r, uint64_t address, bool is_transposed) {
    uint64_t rows[32];
    memcpy(rows, exchange(address), sizeof rows);
    int outer = lane() / 4, inner = lane() % 4 * 2;
    for (int matrix = 0; matrix < 4; matrix++) {
        u32 pair = 0;
        for (int e = 0; e < 2; e++) {
            int row = is_transposed ? inner + e : outer, column = is_transposed ? outer : inner + e;
            pair |= (u32)((const u16*)rows[matrix * 8 + row])[column] << 16 * e;
        }
        r[matrix] = pair;
    }
}

}  // namespace host

static inline void load_matrices(u32* r, uint64_t address) { host::load_matrices(r, address, false); }
static inline void load_matrices_transposed(u32* r, uint64_t address) { host::load_matrices(r, address, true); }

// d(16 x 8) += a(16 x 16) b(16 x 8)
static inline void multiply(float* d, const u32* a, u32 b0, u32 b1) {
    u32 left[4][32], right[2][32];
    for (int i = 0; i < 4; i++) host::exchange_all(left[i], a[i]);
    host::exchange_all(right[0], b0);
    host::exchange_all(right[1], b1);
    for (int e = 0; e < 4; e++) {
        int row = host::lane() / 4, column = host::lane() % 4 * 2 + e % 2;
        for (int k = 0; k < 16; k++) {
            u32 x = left[e / 2 + k / 8 * 2][row * 4 + k % 8 / 2], y = right[k / 8][column * 4 + k % 8 / 2];
            d[e] += k % 2 ? high_half(x) * high_half(y) : low_half(x) * low_half(y);
        }
    }
}
