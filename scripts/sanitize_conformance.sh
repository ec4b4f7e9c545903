#!/usr/bin/env bash
# Runs all of conformance on a GPU under compute-sanitizer: memcheck, racecheck, synccheck and initcheck, each with the kernels of the
# base, of `cub` and of `cutensor`, which must be ready. The last two run the families that they serve. About 35 minutes on an H100 with
# 16 cores.
#   sanitize_conformance.sh [TOOL...]      (default: all four)
# CONFORMANCE: the test program (default: conformance in the script's folder). JOBS: parallel runs (default: one per core). ORDERS: the
# orders of accelerators (default: `base cub cutensor`). OUT: folder of the logs (default ./results/sanitize).
# Fails if a case fails, and for each error except two kinds:
# - initcheck reports kernels that read bytes which they do not use: `scatter_combine`, the bytes beside an element of one or two bytes;
#   `copy_rows`, a copy of the result of `empty`; cuSOLVER's `gebal` and `lacpy` kernels, bytes of `eig`.
# - memcheck reports each allocation that exceeds the device's memory. Cases make four.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export CONFORMANCE=${CONFORMANCE:-$here/conformance} OUT=${OUT:-$PWD/results/sanitize} SHARDS=160
# Pool blocks exceed the size of their arrays, which would hide accesses past the end from memcheck.
export CUPRUM_GPU_MEMORY_POOL=0 CUPRUM_COMPILE=wait CUPRUM_REQUIRE_GPU=1 CUPRUM_NUM_THREADS=1
export SANITIZER=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
export KNOWN_READS='at (scatter_combine|copy_rows|void gebal_|void lacpy_kernel)'
jobs=${JOBS:-$(nproc)}

families() {
  case $1 in
    base) ;;
    cub) echo reduce scan sort select histogram ;;
    cutensor) echo contract products reduce copy map ;;
  esac
}

# shard TOOL ORDER NUMBER FAMILY...: runs a shard, and prints its errors
shard() {
  local tool=$1 order=$2 number=$3 log=$OUT/$1-$2-$3.log
  shift 3
  "$SANITIZER" --tool "$tool" --print-limit 100000 "$CONFORMANCE" --shard="$number/$SHARDS" --device cuda:0 --accelerators "${order#base}" "$@" >"$log" 2>&1
  # A run without a summary has errors.
  local errors=$(grep -o 'SUMMARY: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)
  case $tool in
    initcheck) errors=$((${errors:-1} - $(grep -A1 'Uninitialized' "$log" | grep -Ec "$KNOWN_READS"))) ;;
    memcheck) errors=$((${errors:-1} - $(grep -c 'CUDA_ERROR_OUT_OF_MEMORY' "$log"))) ;;
  esac
  local failed=$(grep -c '"Failed"' "$log")
  grep -q '^"End"' "$log" || failed="$failed, and the run did not end"
  echo "$tool $order $number: $(grep -c '^"Passed"' "$log") passed, $failed failed, ${errors:-?} errors"
}
export -f shard

mkdir -p "$OUT"
for order in ${ORDERS:-base cub cutensor}; do
  # The kernels are compiled once, without a tool.
  "$CONFORMANCE" --jobs "$jobs" --device cuda:0 --accelerators "${order#base}" $(families "$order") >"$OUT/warm-$order.log" 2>&1 || tail -n 3 "$OUT/warm-$order.log"
  for tool in ${*:-memcheck racecheck synccheck initcheck}; do
    seq $SHARDS | xargs -P "$jobs" -I{} bash -c "shard $tool $order {} $(families "$order" | tr '\n' ' ')" >"$OUT/$tool-$order.txt"
    bad=$(grep -vc ' 0 failed, 0 errors$' "$OUT/$tool-$order.txt")
    echo "$tool $order: $(awk '{n += $4} END {print n}' "$OUT/$tool-$order.txt") passed, $bad of $SHARDS runs with failures or errors, ${SECONDS}s"
    [ "$bad" = 0 ] || { grep -v ' 0 failed, 0 errors$' "$OUT/$tool-$order.txt"; found=1; }
  done
done
exit "${found:-0}"
