#!/usr/bin/env bash
# Runs the engine's operations on a GPU under NVIDIA's compute-sanitizer: memory out of bounds (memcheck), memory that is
# read before it is written (initcheck), barriers that not all threads reach (synccheck).
#
#   tests/compute_sanitizer.sh BINARY [DEVICE]
#
# compute-sanitizer comes with the CUDA toolkit, or alone with `pip install nvidia-cuda-sanitizer-api`; COMPUTE_SANITIZER may
# name it. Every buffer is an allocation of its own here (EQUICAPS_SEPARATE_BUFFERS), or else the checker would see the pool
# as one. Only our own kernels are checked; those of cuBLASLt and cuDNN are left out, but not from initcheck, which has to see
# what they write. Each tool has a time; where it ends early, what was checked until then counts. Below four minutes in all.
set -uo pipefail
binary=${1:?the path of equicaps}
device=${2:-cuda:0}
sanitizer=${COMPUTE_SANITIZER:-}
if [ -z "$sanitizer" ]; then
  for place in "$(command -v compute-sanitizer)" /usr/local/cuda*/bin/compute-sanitizer \
    "${VIRTUAL_ENV:-/nowhere}"/lib/python3*/site-packages/nvidia/*/bin/compute-sanitizer; do
    if [ -f "$place" ]; then sanitizer=$place; break; fi
  done
fi
if [ -z "$sanitizer" ]; then echo "no compute-sanitizer: set COMPUTE_SANITIZER"; exit 2; fi
chmod +x "$sanitizer" 2>/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Compiled kernels are kept, so that the checked runs do not compile.
echo "== without a checker"
timeout 60 "$binary" check ops --device "$device" --quiet > "$work/plain" 2>&1
echo "status $?: $(tail -1 "$work/plain")"
timeout 30 "$binary" check renders --random 3 --size 32 --quality fast --device "$device" --quiet > "$work/plain" 2>&1
echo "status $?: $(tail -1 "$work/plain")"

failed=0
libraries='cudnn|cutlass|gemm|xmma|sm80_|sm90_|cublas|nvjet|splitK'
# Seconds, tool, then the command.
check() {
  local seconds=$1 tool=$2
  shift 2
  echo "== $tool: $*"
  local began=$SECONDS
  local skip=(--kernel-name-exclude "regex=$libraries")
  [ "$tool" = initcheck ] && skip=()
  EQUICAPS_SEPARATE_BUFFERS=1 timeout --signal=INT --kill-after=5 "$seconds" \
    "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 10 --launch-timeout 60 \
    --target-processes application-only "${skip[@]}" \
    "$binary" "$@" > "$work/out" 2>&1
  local status=$?
  grep -E 'ERROR SUMMARY|Invalid|Barrier error|Program hit' "$work/out" | head -20
  # In which kernels something was found, and how often; what libraries do in their own memory is theirs.
  grep -oE 'at [A-Za-z_0-9:<>, ]+\+0x' "$work/out" | sed 's/+0x//' | sort | uniq -c | sort -rn > "$work/places"
  head -10 "$work/places"
  if grep -vqE "$libraries" "$work/places"; then echo "errors found"; failed=1; fi
  case $status in
    99) echo "status 99" ;;
    124 | 137) echo "not finished in $seconds s: what was checked until then counts" ;;
    *) echo "status $status after $((SECONDS - began)) s: $(grep -v '^=====' "$work/out" | tail -1)" ;;
  esac
}
check 35 memcheck check ops --device "$device" --quiet
check 12 memcheck check renders --random 3 --size 32 --quality fast --device "$device" --quiet
check 35 memcheck check ops --precision mixed --device "$device" --quiet
check 90 initcheck check ops --device "$device" --quiet
check 15 synccheck check ops --device "$device" --quiet
check 10 synccheck check renders --random 3 --size 32 --quality fast --device "$device" --quiet
exit $failed
