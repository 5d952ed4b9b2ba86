#!/usr/bin/env bash
# Runs Muon's kernels on the host, without a GPU, and compares them with the formula. Needs g++ and an x86-64 processor.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
for type in bf16 float; do
  echo "$type"
  g++ -std=c++17 -O2 -Wall -Wno-unknown-pragmas -DSTORAGE=$type -o "$folder/muon" "$here/muon.cpp" -lpthread
  "$folder/muon"
done
