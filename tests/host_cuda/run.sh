#!/usr/bin/env bash
# Runs a command with kernels on the host, so that they can be checked without a GPU: tests/host_cuda/run.sh COMMAND...
#   tests/host_cuda/run.sh cargo test --release -p render -p dataset --lib -- cuda:: --skip compile
#   tests/host_cuda/run.sh target/release/equicaps check renders --random 20 --size 64 --device cuda:0
# Only kernels of the renderer and of views of photographs run so. Needs g++ and an x86-64 processor. With HOST_CUDA_SANITIZE=1 kernels
# are compiled with AddressSanitizer, which ends the program where one reads or writes outside of a buffer, and with
# UndefinedBehaviorSanitizer, which says where something has no defined result ("runtime error").
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
# A folder of its own, so that several can run at a time.
export HOST_CUDA="$here/../../target/host_cuda/$$"
trap 'rm -rf "$HOST_CUDA"' EXIT
mkdir -p "$HOST_CUDA"
cp "$here/lanes.h" "$HOST_CUDA"
g++ -std=c++17 -O2 -Wall -fPIC -shared -o "$HOST_CUDA/libcuda.so.1" "$here/driver.cpp" -ldl
ln -s libcuda.so.1 "$HOST_CUDA/libnvrtc.so.13"
unset VIRTUAL_ENV
if [ -n "${HOST_CUDA_SANITIZE:-}" ]; then
  export HOST_CUDA_SANITIZE EQUICAPS_SEPARATE_BUFFERS=1 ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0
  LD_PRELOAD="$(g++ -print-file-name=libasan.so)"
  export LD_PRELOAD
fi
LD_LIBRARY_PATH="$HOST_CUDA:${LD_LIBRARY_PATH:-}" XDG_CACHE_HOME="$HOST_CUDA/cache" "$@"
