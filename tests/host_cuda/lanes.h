// What kernels find before them on the host: the words and functions of CUDA C++ that those of the renderer and of the views
// use. Every thread of a block is a fiber. The lanes of a warp meet at its collective operations, which all lanes that are
// left take part in, and the threads of a block at its barriers; between them lanes run one after the other.

#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__ __attribute__((visibility("default")))
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
// One block runs at a time on a thread.
#define __shared__ static thread_local

struct uchar4 {
    unsigned char x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct float3 {
    float x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace host {

enum State { READY, AT_WARP, AT_BLOCK, DONE };

struct Lane {
    void* stack_pointer;
    uint3 index;
    int number;
    State state;
    unsigned turn;
};

struct Warp {
    // What lanes bring to a collective operation. One that goes on early writes its next value beside what others still read.
    uint64_t values[2][32];
    unsigned live;
};

typedef void (*Kernel)(uint64_t, uint64_t);

struct Block {
    void* scheduler;
    Lane* current;
    std::vector<Lane> lanes;
    std::vector<Warp> warps;
    uint3 grid, size, index;
    Kernel kernel;
    uint64_t arguments[2];
    char* stacks;
};
static thread_local Block block;
static const size_t STACK = 256 << 10;

// Keeps the place of this fiber in `*save` and goes on at `load`.
extern "C" void host_switch(void** save, void* load);
asm(R"(
.text
.local host_switch
.type host_switch, @function
host_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

static Warp& warp() { return block.warps[block.current->number / 32]; }
static int lane() { return block.current->number % 32; }

static void wait(State state) {
    block.current->state = state;
    host_switch(&block.current->stack_pointer, block.scheduler);
}

static void begin() {
    block.kernel(block.arguments[0], block.arguments[1]);
    warp().live &= ~(1u << lane());
    wait(DONE);
}

static void prepare_lanes(size_t count) {
    block.lanes.resize(count);
    block.warps.assign((count + 31) / 32, Warp());
    for (size_t i = 0; i < count; i++) {
        unsigned x = i % block.size.x, y = i / block.size.x % block.size.y, z = i / block.size.x / block.size.y;
        // `host_switch` takes six registers from the stack and returns to `begin`, with the stack as after a call.
        void** top = (void**)(block.stacks + (i + 1) * STACK) - 2;
        *top = (void*)begin;
        block.lanes[i] = {top - 6, {x, y, z}, (int)i, READY, 0};
        block.warps[i / 32].live |= 1u << i % 32;
    }
}

// Runs the lanes of a warp until all of them are done or at a barrier of the block; whether any of them moved.
static bool run_warp(Lane* first, Lane* last) {
    bool moved = false;
    for (;;) {
        for (Lane* lane = first; lane != last; lane++) {
            if (lane->state != READY) continue;
            block.current = lane;
            host_switch(&block.scheduler, lane->stack_pointer);
            moved = true;
        }
        auto is_at = [](State state) { return [state](const Lane& lane) { return lane.state == state; }; };
        if (std::none_of(first, last, is_at(AT_WARP)) || std::any_of(first, last, is_at(AT_BLOCK))) return moved;
        for (Lane* lane = first; lane != last; lane++) {
            if (lane->state == AT_WARP) lane->state = READY;
        }
    }
}

static void run_block() {
    size_t count = (size_t)block.size.x * block.size.y * block.size.z;
    prepare_lanes(count);
    for (;;) {
        bool moved = false;
        for (size_t from = 0; from < count; from += 32) {
            moved = run_warp(&block.lanes[from], &block.lanes[0] + std::min(from + 32, count)) || moved;
        }
        bool is_done = true;
        for (Lane& lane : block.lanes) is_done = is_done && lane.state == DONE;
        if (is_done) return;
        if (!moved) {
            fprintf(stderr, "the lanes of a block wait for one another: some are at a barrier that others never reach\n");
            abort();
        }
        bool is_barrier = true;
        for (Lane& lane : block.lanes) is_barrier = is_barrier && (lane.state == DONE || lane.state == AT_BLOCK);
        if (!is_barrier) continue;
        for (Lane& lane : block.lanes) {
            if (lane.state == AT_BLOCK) lane.state = READY;
        }
    }
}

template <typename T>
static uint64_t bits(T value) {
    uint64_t result = 0;
    memcpy(&result, &value, sizeof(T));
    return result;
}
template <typename T>
static T from_bits(uint64_t bits) {
    T result;
    memcpy(&result, &bits, sizeof(T));
    return result;
}

// What all lanes of the warp bring.
static const uint64_t* exchange(uint64_t value) {
    uint64_t* values = warp().values[block.current->turn++ & 1];
    values[lane()] = value;
    wait(AT_WARP);
    return values;
}

template <typename T>
static T of_lane(T value, int from) {
    return from_bits<T>(exchange(bits(value))[from & 31]);
}

// What `add` makes of the values of all lanes.
template <typename Add>
static unsigned fold(uint64_t value, Add add) {
    const uint64_t* all = exchange(value);
    unsigned result = 0;
    for (int i = 0; i < 32; i++) {
        if (warp().live >> i & 1) result = add(result, all[i], i);
    }
    return result;
}

}  // namespace host

// Runs a kernel; `sizes` are those of the grid and of a block.
extern "C" __attribute__((visibility("default"))) void host_launch(void* kernel, const unsigned* sizes,
                                                                   const uint64_t* arguments) {
    using host::block;
    std::atomic<uint64_t> next{0};
    uint64_t total = (uint64_t)sizes[0] * sizes[1] * sizes[2];
    auto work = [&] {
        size_t bytes = (size_t)sizes[3] * sizes[4] * sizes[5] * host::STACK;
        void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) abort();
        block.stacks = (char*)stacks;
        block.grid = {sizes[0], sizes[1], sizes[2]};
        block.size = {sizes[3], sizes[4], sizes[5]};
        block.kernel = (host::Kernel)kernel;
        memcpy(block.arguments, arguments, sizeof block.arguments);
        for (uint64_t i; (i = next++) < total;) {
            block.index = {(unsigned)(i % sizes[0]), (unsigned)(i / sizes[0] % sizes[1]), (unsigned)(i / sizes[0] / sizes[1])};
            host::run_block();
        }
        munmap(stacks, bytes);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); i++) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
}

#define threadIdx (host::block.current->index)
#define blockIdx (host::block.index)
#define blockDim (host::block.size)
#define gridDim (host::block.grid)

static inline void __syncthreads() { host::wait(host::AT_BLOCK); }
static inline void __syncwarp() { host::exchange(0); }
static inline unsigned __ballot_sync(unsigned, bool value) {
    return host::fold(value, [](unsigned all, uint64_t value, int lane) { return all | (unsigned)value << lane; });
}
static inline unsigned __reduce_add_sync(unsigned, unsigned value) {
    return host::fold(value, [](unsigned sum, uint64_t value, int) { return sum + (unsigned)value; });
}
static inline unsigned __reduce_max_sync(unsigned, unsigned value) {
    return host::fold(value, [](unsigned most, uint64_t value, int) { return std::max(most, (unsigned)value); });
}
template <typename T>
static inline unsigned __match_any_sync(unsigned, T value) {
    uint64_t own = host::bits(value);
    return host::fold(own, [own](unsigned all, uint64_t value, int lane) { return all | (value == own ? 1u : 0u) << lane; });
}
template <typename T>
static inline T __shfl_sync(unsigned, T value, int from) {
    return host::of_lane(value, from);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int mask) {
    return host::of_lane(value, host::lane() ^ mask);
}
template <typename T>
static inline T __shfl_up_sync(unsigned, T value, int step) {
    return host::of_lane(value, host::lane() < step ? host::lane() : host::lane() - step);
}
template <typename T>
static inline T atomicAdd(T* target, T value) {
    return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
}

template <typename T>
static inline T __ldg(const T* address) {
    return *address;
}
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline int __float_as_int(float x) { return host::from_bits<int>(host::bits(x)); }
static inline unsigned __float_as_uint(float x) { return host::from_bits<unsigned>(host::bits(x)); }
static inline float __int_as_float(int x) { return host::from_bits<float>(host::bits(x)); }
static inline float __uint_as_float(unsigned x) { return host::from_bits<float>(host::bits(x)); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
template <typename A, typename B>
static inline auto min(A a, B b) -> decltype(a + b) {
    return a < b ? a : b;
}
template <typename A, typename B>
static inline auto max(A a, B b) -> decltype(a + b) {
    return a > b ? a : b;
}

// What driver.cpp puts in the place of assembly.
static inline void host_unpack(unsigned halves, float& low, float& high) {
    _Float16 both[2];
    memcpy(both, &halves, sizeof both);
    low = both[0];
    high = both[1];
}
