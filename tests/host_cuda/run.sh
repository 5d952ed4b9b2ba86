#!/usr/bin/env bash
# Runs a command with kernels on the host, so that they can be checked without a GPU: tests/host_cuda/run.sh COMMAND...
#   tests/host_cuda/run.sh cargo test --release -p render -p dataset device
#   tests/host_cuda/run.sh target/release/equicaps check renders --random 20 --size 64 --device cuda:0
# Only kernels of the renderer and of views of photographs run so. Needs g++ and an x86-64 processor.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
export HOST_CUDA="$here/../../target/host_cuda"
rm -rf "$HOST_CUDA"
mkdir -p "$HOST_CUDA"
cp "$here/lanes.h" "$HOST_CUDA"
g++ -std=c++17 -O2 -Wall -fPIC -shared -o "$HOST_CUDA/libcuda.so.1" "$here/driver.cpp" -ldl
ln -s libcuda.so.1 "$HOST_CUDA/libnvrtc.so.13"
unset VIRTUAL_ENV
LD_LIBRARY_PATH="$HOST_CUDA:${LD_LIBRARY_PATH:-}" XDG_CACHE_HOME="$HOST_CUDA/cache" exec "$@"
