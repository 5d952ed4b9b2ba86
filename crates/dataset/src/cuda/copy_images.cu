// Copies of images between places in device memory: many at once, each of the same size.

// Addresses come in pairs: from, to. `vectors` times 16 bytes each.
extern "C" __global__ void copy_images(const unsigned long long* addresses, int vectors)
{
    const uint4* from = reinterpret_cast<const uint4*>(addresses[2 * blockIdx.y]);
    uint4* to = reinterpret_cast<uint4*>(addresses[2 * blockIdx.y + 1]);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += gridDim.x * blockDim.x)
        to[i] = from[i];
}
