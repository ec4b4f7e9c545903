#!/usr/bin/env bash
# Runs the bundle: info, conformance, tour and benches. Writes logs to OUT (default: ./results) and prints a summary.
#   run.sh [info] [conformance] [memcheck] [sanitize] [tour] [bench] [native] [peers]      (default: info conformance tour bench)
# The first run unpacks the binaries into the script's folder; `run.sh unpack` only unpacks.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -e "$here/.unpacked" ]; then
  # Python is the fallback if tar has no xz.
  tar -xf "$here/files.tar.xz" -C "$here" 2>/dev/null || python3 -m tarfile -e "$here/files.tar.xz" "$here" || exit 1
  touch "$here/.unpacked"
fi
[ "$*" != unpack ] || exit 0
OUT=${OUT:-$PWD/results}
mkdir -p "$OUT"
steps=${*:-info conformance tour bench}
summary=()
# run NAME COMMAND...: writes OUT/NAME.log, and adds the last line and the exit code to the summary
run() {
  local name=$1 start=$SECONDS
  shift
  "$@" >"$OUT/$name.log" 2>&1
  local rc=$?
  summary+=("$(printf '%-14s rc=%d %4ds  %s' "$name" "$rc" $((SECONDS - start)) "$(grep -v '^ *$' "$OUT/$name.log" | tail -n 1 | cut -c1-110)")")
}
for step in $steps; do
  case $step in
    info) run info "$here/cuprum" info ;;
    conformance) run conformance "$here/conformance" --jobs "$(nproc)" ;;
    # After conformance, which fills the kernel cache. Without the pool, whose blocks exceed the requested size and hide accesses past the end.
    memcheck) CUPRUM_GPU_MEMORY_POOL=0 run memcheck compute-sanitizer --tool memcheck --target-processes all --error-exitcode 9 "$here/conformance" --jobs "$(nproc)" ;;
    # Large arrays under racecheck and memcheck, for at most five minutes.
    sanitize) run sanitize bash "$here/sanitize.sh" ;;
    # CUB without cuprum; needs nvcc. Run before `peers`, so that its table includes the results.
    native)
      nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
      run native-build "$nvcc" -O3 -std=c++17 -arch=native --extended-lambda -o "$OUT/native_cub" "$here/peers/native_cub.cu"
      run peers-gpu-native "$OUT/native_cub"
      ;;
    peers)
      for peer in cupy torch; do
        run "peers-$peer" python3 "$here/peers/works.py" --peer $peer
        run "peers-gpu-$peer" env CUPY_ACCELERATORS=cub python3 "$here/peers/gpu.py" --peer $peer
      done
      run ratios-gpu python3 "$here/peers/ratios.py" --limit GB_s=copy_f32_128M "$OUT/bench-gpu.log" "$OUT"/peers-gpu-*.log
      ;;
    tour) run tour "$here/cuprum" tour ;;
    bench)
      run bench "$here/workloads" --json
      run bench-gpu "$here/workloads" --suite gpu --json
      ;;
    *) echo "unknown step '$step'"; exit 2 ;;
  esac
done
printf '%s\n' "${summary[@]}"
