#!/usr/bin/env bash
# Compare models that the core grows on this machine with those that other processors grow.
#
#   tools/portable/run.sh
#
# Compiles main.cpp for this machine, once with and once without wide instructions and with
# clang++ where there is one, and for 64-bit ARM where aarch64-linux-gnu-g++ and qemu-aarch64
# (or qemu-aarch64-static) are there. Fails if any prints other digests.
set -euo pipefail

repository=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags=(-std=c++20 -O3 -ffp-contract=off -fno-trapping-math -fno-math-errno -pthread
       -I "$repository/native")

compile() {
  "$1" "${flags[@]}" "${@:3}" "$repository/tools/portable/main.cpp" -o "$folder/$2"
}

compile "${CXX:-g++}" here
expected=$("$folder/here")
echo "$expected"

check() {
  if [[ "$2" == "$expected" ]]; then
    echo "$1: the same"
  else
    echo "$1: other digests"; echo "$2"; exit 1
  fi
}

check "baseline instructions" "$(LHTREE_INSTRUCTIONS=baseline "$folder/here")"
check "at most AVX2" "$(LHTREE_INSTRUCTIONS=avx2 "$folder/here")"
if command -v clang++ > /dev/null; then
  compile clang++ clang
  check "clang++" "$("$folder/clang")"
fi
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
if [[ -n "$emulator" ]] && command -v aarch64-linux-gnu-g++ > /dev/null; then
  compile aarch64-linux-gnu-g++ arm -static -Wno-psabi  # a note on GCC before 10.1
  check "aarch64 under emulation" "$("$emulator" "$folder/arm")"
else
  echo "aarch64: skipped, there is no compiler or no emulator"
fi
