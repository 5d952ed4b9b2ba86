#!/usr/bin/env bash
# Several ranks on the GPUs of this machine, or all on one: tests/ranks_gpu.sh BINARY [DEVICE]
#
# DEVICE is cuda:0 (all ranks on one GPU, which NCCL 2.30 and later allow with NCCL_MULTI_RANK_GPU_ENABLE=1) or cuda (a GPU
# each). Needs NCCL where `BINARY devices` finds it; mpirun where the binary is built with MPI. Prints a line for each check
# and ends with status 1 if one failed.
set -u
bin=$(realpath "$1")
device=${2:-cuda:0}
export NCCL_MULTI_RANK_GPU_ENABLE=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Exchanges of all ranks have to fit onto one GPU at the same time, or they wait for each other for ever.
[ "$device" = cuda ] || export NCCL_MAX_CTAS=${NCCL_MAX_CTAS:-4}
# One call may not outlast this.
limit=${LIMIT:-240}
work=$(mktemp -d)
# Ranks on one GPU take turns of milliseconds at every exchange, unless the driver's MPS lets them run side by side.
if command -v nvidia-cuda-mps-control > /dev/null; then
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
  mkdir "$work/mps" && nvidia-cuda-mps-control -d > /dev/null 2>&1 && echo "with MPS"
fi
trap 'echo quit | nvidia-cuda-mps-control > /dev/null 2>&1; rm -rf "$work"' EXIT
failed=0
port=$((20000 + RANDOM % 20000))

line() { # name, result (ok or anything else), details
  printf '%-44s %-6s %s\n' "$1" "$2" "$3"
  if [ "$2" != ok ]; then failed=1; fi
}

# Ranks that find each other by an address, so that no launcher ends them: ranks N LOG ARGUMENTS...
ranks() {
  local count=$1 log=$2
  shift 2
  port=$((port + 1))
  pids=()
  for ((rank = 0; rank < count; rank++)); do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$count LOCAL_WORLD_SIZE=$count MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      timeout "$limit" "$bin" "$@" > "$log.$rank" 2>&1 &
    pids+=($!)
  done
}
join() { # status of rank 0
  local status=0 rank
  for rank in "${!pids[@]}"; do
    wait "${pids[$rank]}"
    local one=$?
    if [ "$rank" = 0 ]; then status=$one; fi
  done
  return $status
}
# The process itself, below `timeout`.
inner() { pgrep -P "$1" | head -1; }

small=(--preset small --method equicaps --device "$device" --quiet --set precision=f32 --set image_size=64 --set batch=48
  --set logging.every_steps=1 --set checkpoints.every_epochs=1 --set probes.held_out_every=0)
# Two steps an epoch.
short=(--set epochs=4)
"$bin" render --quiet --procedural 6x20 --views 8 --size 64 --quality fast --device "${device/#cuda/cuda}" \
  --out "$work/views" > /dev/null 2>&1 || "$bin" render --quiet --procedural 6x20 --views 8 --size 64 --quality fast --out "$work/views" > /dev/null
data=(--data "$work/views")
checkpoint() { ls "$1"/checkpoints/*.safetensors 2> /dev/null | tail -1; }
sum() { # of all tensors of the last checkpoint, not of the settings it names
  python3 - "$(checkpoint "$1")" <<'PY'
import hashlib, struct, sys
content = open(sys.argv[1], 'rb').read()
print(hashlib.sha256(content[8 + struct.unpack('<Q', content[:8])[0]:]).hexdigest()[:16])
PY
}
same() { # whether the last checkpoints of two runs have the same tensors
  local a b
  a=$(sum "$1" 2> /dev/null) b=$(sum "$2" 2> /dev/null)
  [ -n "$a" ] && [ "$a" = "$b" ] && echo ok || echo BAD
}
losses() { # largest relative difference of the losses of the first ten steps of two runs
  python3 - "$1" "$2" <<'PY'
import json, sys
def read(run):
    lines = map(json.loads, open(run + '/metrics.jsonl'))
    return [line['values']['loss'] for line in lines if line['kind'] == 'step'][:10]
a, b = map(read, sys.argv[1:])
worst = max((abs(x - y) / abs(x) for x, y in zip(a, b)), default=float('nan'))
print(f'{worst:.1e}', 'ok' if a and len(a) == len(b) and worst < 1e-3 else 'BAD')
PY
}
rate() { # mean device and step time over the later half of a run
  python3 - "$1" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + '/metrics.jsonl')]
steps = [line['timing'] for line in lines if line['kind'] == 'step' and line.get('timing')]
steps = steps[len(steps) // 2:]
print(f"{sum(s['device_ms'] for s in steps) / max(1, len(steps)):.2f}")
PY
}

echo "== $("$bin" devices 2> /dev/null | grep -A3 'several ranks' | tr '\n' ' ')"

# 1. One rank through NCCL: the same numbers, and what it costs at the size of real runs. The same convolutions in both.
"$bin" render --quiet --procedural 55x40 --views 10 --size 128 --quality fast --device cuda:0 --out "$work/large-views" > /dev/null 2>&1
one() { # name, more arguments; with NCCL where EQUICAPS_NCCL is set
  local run=$work/$1
  shift
  timeout "$limit" "$bin" train "$@" --run "$run" > "$run.log" 2>&1 || { echo "$run failed:"; tail -3 "$run.log"; }
}
large=(--data "$work/large-views" --preset small --method equicaps --device "$device" --quiet --set batch=880 --set epochs=60
  --set logging.every_steps=10 --set checkpoints.every_epochs=0 --set probes.held_out_every=0)
one one "${data[@]}" "${small[@]}" "${short[@]}"
one large "${large[@]}"
EQUICAPS_NCCL=1 one one1 "${data[@]}" "${small[@]}" "${short[@]}" --choices-of "$work/one"
EQUICAPS_NCCL=1 one large1 "${large[@]}" --choices-of "$work/large"
one large2 "${large[@]}" --choices-of "$work/large"
read -r worst verdict < <(losses "$work/one" "$work/one1")
line "one rank with NCCL against without: losses" "$verdict" "$worst"
line "one rank with NCCL against without: a step" ok \
  "$(rate "$work/large1") ms against $(rate "$work/large") and $(rate "$work/large2") ms (for information: 1760 images of 128x128)"

# 2. Parity of 2 and 4 ranks in float32, all methods and backbones, graphs captured, same bits twice.
for count in ${CHECK-2 4}; do
  if timeout 600 "$bin" check ranks --ranks $count --device "$device" --launch "mpirun --oversubscribe --bind-to none -n $count" > "$work/check$count" 2> "$work/check$count.err"; then
    line "check ranks --ranks $count" ok "$(tail -1 "$work/check$count")"
  else
    line "check ranks --ranks $count" BAD "$(tail -1 "$work/check$count") $(grep error "$work/check$count.err" | head -1)"
  fi
  cat "$work/check$count"
done

# 3. Runs: 2 and 4 ranks against one; twice; with and without graphs.
for count in 2 4; do
  for name in first again ungraphed; do
    more=()
    [ $name = ungraphed ] && more=(--set graphs=false)
    ranks $count "$work/log" train "${data[@]}" "${small[@]}" "${short[@]}" "${more[@]}" --run "$work/$name$count"
    join || line "$count ranks, $name" BAD "$(cat "$work"/log.* | grep -h error | head -2 | tr '\n' ' ')"
  done
  read -r worst verdict < <(losses "$work/one" "$work/first$count")
  line "$count ranks against one: losses of ten steps" "$verdict" "$worst"
  line "$count ranks twice: same bits" "$(same "$work/first$count" "$work/again$count")" "$(sum "$work/first$count")"
  line "$count ranks with and without graphs: same bits" "$(same "$work/first$count" "$work/ungraphed$count")" "$(rate "$work/first$count") ms, $(rate "$work/ungraphed$count") ms"
done

# 4. 16 bits.
for count in 1 2; do
  ranks $count "$work/log" train "${data[@]}" "${small[@]}" --set precision=mixed --set epochs=2 --run "$work/mixed$count"
  join || line "$count ranks in 16 bits" BAD "$(cat "$work"/log.* | grep -h error | head -2 | tr '\n' ' ')"
done
read -r worst verdict < <(losses "$work/mixed1" "$work/mixed2")
line "2 ranks against one in 16 bits: losses" ok "$worst (for information)"

# 5. A signal to rank 1: all end with 75 and the run resumes to the same bits; on another number it says so.
ranks 2 "$work/log" train "${data[@]}" "${small[@]}" "${short[@]}" --run "$work/stopped"
for _ in $(seq 600); do [ -n "$(checkpoint "$work/stopped")" ] && break; sleep 0.05; done
kill -TERM "$(inner "${pids[1]}")"
join; status=$?
line "SIGTERM to rank 1" "$([ $status = 75 ] && echo ok || echo BAD)" "rank 0 ended with $status"
cp -r "$work/stopped" "$work/other"
ranks 2 "$work/log" train --device "$device" --quiet --resume "$work/stopped"
join
line "resumed on 2: same bits as without" "$(same "$work/stopped" "$work/first2")" "$(sum "$work/stopped")"
ranks 4 "$work/log" train --device "$device" --resume "$work/other"
join; status=$?
said=$(grep -h "this run used" "$work/log.0" | head -1)
line "resumed on 4" "$([ $status = 0 ] && [ -n "$said" ] && echo ok || echo BAD)" "$said"

# 6. Views rendered on the fly, each rank its own share.
fresh=(--data procedural:6x20 --set refresh=0.3 --set procedural.views=8 --set procedural.quality=fast)
for count in 1 2; do
  ranks $count "$work/log" train "${fresh[@]}" "${small[@]}" --set epochs=4 --run "$work/fresh$count"
  join || line "views on the fly on $count ranks" BAD "$(cat "$work"/log.* | grep -h error | head -2 | tr '\n' ' ')"
done
read -r worst verdict < <(losses "$work/fresh1" "$work/fresh2")
line "views on the fly: 2 ranks against one" "$verdict" "$worst"

# 7. mpirun, where the binary has MPI.
if command -v mpirun > /dev/null && "$bin" devices 2> /dev/null | grep -q 'found    MPI'; then
  if timeout "$limit" mpirun --oversubscribe --bind-to none -n 2 "$bin" train "${data[@]}" "${small[@]}" "${short[@]}" \
    --run "$work/mpi" > "$work/mpi.log" 2>&1; then
    line "2 ranks of mpirun: same bits" "$(same "$work/mpi" "$work/first2")" "$(sum "$work/mpi")"
  else
    line "2 ranks of mpirun" BAD "$(grep -h error "$work/mpi.log" | head -1)"
  fi
fi

# 8. A rank that is killed, and one that hangs: the other ends within 60 s and names it. Without MPS, whose server does not
# outlive a client that is killed.
if [ -n "${CUDA_MPS_PIPE_DIRECTORY-}" ]; then
  echo quit | nvidia-cuda-mps-control > /dev/null 2>&1
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
fi
for how in KILL STOP; do
  ranks 2 "$work/log" train "${data[@]}" "${small[@]}" --set epochs=40 --run "$work/lost$how"
  for _ in $(seq 1200); do [ -n "$(checkpoint "$work/lost$how")" ] && break; sleep 0.05; done
  victim=$(inner "${pids[1]}")
  began=$(date +%s)
  kill -$how "$victim"
  wait "${pids[0]}"; status=$?
  took=$(($(date +%s) - began))
  kill -KILL "$victim" 2> /dev/null
  wait "${pids[1]}" 2> /dev/null
  said=$(grep -h error "$work/log.0" | head -1)
  verdict=BAD; [ $took -le 60 ] && [ $status -ne 0 ] && grep -q 'rank 1' <<< "$said" && verdict=ok
  line "rank 1 gets SIG$how" $verdict "$took s: $said"
done
ranks 2 "$work/log" train --device "$device" --quiet --resume "$work/lostKILL"
join && line "the run of the killed rank resumes" ok "" || line "the run of the killed rank resumes" BAD "$(grep -h error "$work/log.0")"
exit $failed
