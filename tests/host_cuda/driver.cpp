// The CUDA driver and NVRTC, as far as the renderer and views of photographs call them, for machines without a GPU: "device"
// memory is the host's, kernels are compiled by g++ (see lanes.h) and have run when their launch returns. So tests can check
// what kernels compute; nothing is said about their speed, about what runs at the same time, or about networks.

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {

typedef void* Handle;
typedef void (*Launch)(void* kernel, const unsigned* sizes, const uint64_t* arguments);

struct Program {
    std::string text, log, image;
};
struct Function {
    Launch launch;
    void* kernel;
};

const int NOT_SUPPORTED = 801;
const std::string HEAD = "HOST ";

// Where lanes.h is, and where kernels go.
std::string folder() {
    const char* found = getenv("HOST_CUDA");
    return found ? found : ".";
}

void* allocate(size_t bytes) { return aligned_alloc(512, (bytes / 512 + 1) * 512); }

void replace(std::string& text, size_t from, size_t to, const std::string& by) { text.replace(from, to - from, by); }

// The kernels' text as g++ takes it.
std::string for_host(std::string text) {
    for (size_t at; (at = text.find("asm(")) != std::string::npos;) {
        size_t end = text.find(");", at) + 2;
        bool is_root = text.substr(at, end - at).find("sqrt.approx") != std::string::npos;
        replace(text, at, end, is_root ? "result = sqrtf(x);" : "host_unpack(halves, low, high);");
    }
    std::string offset = "__INTADDR__(&((type*)0)->field)";
    size_t at = text.find(offset);
    if (at != std::string::npos) replace(text, at, at + offset.size(), "__builtin_offsetof(type, field)");
    return text;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorName(int, const char** text) { return *text = "HOST_ERROR", 0; }
int cuGetErrorString(int, const char** text) { return *text = "the host cannot do this", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int size, int) { return snprintf(name, size, "the host, for tests"), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
    // Compute capability, multiprocessors, second-level cache, shared memory.
    switch (attribute) {
        case 75: return *value = 9, 0;
        case 76: return *value = 0, 0;
        case 16: return *value = 2, 0;
        case 38: return *value = 1 << 20, 0;
        case 97: return *value = 200 << 10, 0;
        default: return *value = 0, 0;
    }
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = 4ull << 30, 0; }
int cuDevicePrimaryCtxRetain(Handle* context, int) { return *context = (Handle)1, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(Handle) { return 0; }

int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = 3ull << 30, *total = 4ull << 30, 0; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) { return *address = (uint64_t)allocate(bytes), *address ? 0 : 2; }
int cuMemFree_v2(uint64_t address) { return free((void*)address), 0; }
int cuMemHostAlloc(void** address, size_t bytes, unsigned) { return *address = allocate(bytes), *address ? 0 : 2; }
int cuMemFreeHost(void* address) { return free(address), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Handle) { return memcpy((void*)to, from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Handle) { return memcpy(to, (void*)from, bytes), 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Handle) {
    return memmove((void*)to, (void*)from, bytes), 0;
}
int cuMemsetD8Async(uint64_t to, uint8_t value, size_t count, Handle) { return memset((void*)to, value, count), 0; }
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, Handle) {
    for (size_t i = 0; i < count; i++) ((unsigned*)to)[i] = value;
    return 0;
}

int cuStreamCreate(Handle* stream, unsigned) { return *stream = (Handle)1, 0; }
int cuStreamDestroy_v2(Handle) { return 0; }
int cuStreamSynchronize(Handle) { return 0; }
int cuStreamWaitEvent(Handle, Handle, unsigned) { return 0; }
int cuEventCreate(Handle* event, unsigned) { return *event = new double(0), 0; }
int cuEventDestroy_v2(Handle event) { return delete (double*)event, 0; }
int cuEventRecord(Handle event, Handle) {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return *(double*)event = std::chrono::duration<double, std::milli>(now).count(), 0;
}
int cuEventSynchronize(Handle) { return 0; }
int cuEventQuery(Handle) { return 0; }
int cuEventElapsedTime(float* milliseconds, Handle from, Handle to) {
    return *milliseconds = (float)(*(double*)to - *(double*)from), 0;
}

// Only networks are captured.
int cuStreamBeginCapture_v2(Handle, int) { return NOT_SUPPORTED; }
int cuStreamEndCapture(Handle, Handle*) { return NOT_SUPPORTED; }
int cuGraphInstantiateWithFlags(Handle*, Handle, unsigned long long) { return NOT_SUPPORTED; }
int cuGraphLaunch(Handle, Handle) { return NOT_SUPPORTED; }
int cuGraphExecDestroy(Handle) { return NOT_SUPPORTED; }
int cuGraphDestroy(Handle) { return NOT_SUPPORTED; }

int cuModuleLoadData(Handle* module, const void* image) {
    *module = dlopen((const char*)image + HEAD.size(), RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "%s\n", dlerror());
    return *module ? 0 : 200;
}
int cuModuleGetFunction(Handle* function, Handle module, const char* name) {
    void* kernel = dlsym(module, name);
    if (!kernel) return 500;
    *function = new Function{(Launch)dlsym(module, "host_launch"), kernel};
    return 0;
}
int cuFuncSetAttribute(Handle, int, int) { return 0; }
// Kernels have an address and an `int` as their arguments.
int cuLaunchKernel(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x, unsigned y, unsigned z,
                   unsigned, Handle, void** arguments, void**) {
    unsigned sizes[6] = {grid_x, grid_y, grid_z, x, y, z};
    uint64_t values[2] = {*(uint64_t*)arguments[0], *(uint32_t*)arguments[1]};
    ((Function*)function)->launch(((Function*)function)->kernel, sizes, values);
    return 0;
}

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* architectures) { return *architectures = 90, 0; }
int nvrtcCreateProgram(Handle* program, const char* text, const char*, int, const char* const*, const char* const*) {
    return *program = new Program{text, "", ""}, 0;
}
int nvrtcDestroyProgram(Handle* program) { return delete (Program*)*program, *program = nullptr, 0; }
int nvrtcCompileProgram(Handle handle, int count, const char* const* options) {
    static int number = 0;
    Program& program = *(Program*)handle;
    std::string base = folder() + "/kernel-" + std::to_string(getpid()) + "-" + std::to_string(number++);
    std::ofstream(base + ".cpp") << "#include \"lanes.h\"\n" << for_host(program.text);
    std::string command = "g++ -std=c++17 -O2 -march=native -ffp-contract=off -fvisibility=hidden -fPIC -shared -w -pthread";
    command += " -I'" + folder() + "'";
    if (getenv("HOST_CUDA_SANITIZE")) command += " -g -fsanitize=address,undefined,float-cast-overflow";
    for (int i = 0; i < count; i++) {
        if (strncmp(options[i], "-D", 2) == 0) command += std::string(" '") + options[i] + "'";
    }
    command += " -o '" + base + ".so' '" + base + ".cpp' 2> '" + base + ".log'";
    bool is_good = system(command.c_str()) == 0;
    std::stringstream log;
    log << std::ifstream(base + ".log").rdbuf();
    program.log = log.str();
    program.image = HEAD + base + ".so";
    return is_good ? 0 : 6;
}
int nvrtcGetProgramLogSize(Handle program, size_t* bytes) { return *bytes = ((Program*)program)->log.size() + 1, 0; }
int nvrtcGetProgramLog(Handle program, char* text) { return strcpy(text, ((Program*)program)->log.c_str()), 0; }
int nvrtcGetCUBINSize(Handle program, size_t* bytes) { return *bytes = ((Program*)program)->image.size() + 1, 0; }
int nvrtcGetCUBIN(Handle program, char* image) { return strcpy(image, ((Program*)program)->image.c_str()), 0; }
}
