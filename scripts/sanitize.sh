#!/usr/bin/env bash
# Runs the scripts of tests/large under compute-sanitizer, with the kernels of cub and of the base. Their arrays are large enough for
# several iterations of every grid-stride loop, unlike those of conformance. Prints a line per run. Fails if a run reports a hazard or
# an error, or exceeds the time budget.
#   sanitize.sh [racecheck] [memcheck]      (default: both)
# CUPRUM: the command (default: cuprum in the script's folder, else target/release/cuprum). JOBS: parallel runs (default 4).
# BUDGET: total seconds (default 280). OUT: folder of the logs (default ./results).
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ -d "$here/large" ]; then lists=$here/large default=$here/cuprum; else lists=$here/../tests/large default=$here/../target/release/cuprum; fi
cuprum=${CUPRUM:-$default} JOBS=${JOBS:-4} BUDGET=${BUDGET:-280} OUT=${OUT:-$PWD/results}
tools=${*:-racecheck memcheck}
mkdir -p "$OUT"
# Pool blocks exceed the size of their arrays, which would hide accesses past the end from memcheck.
export CUPRUM_GPU_MEMORY_POOL=0 CUPRUM_COMPILE=wait
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# evaluate LIST ORDER [COMMAND...]: runs the list under the order of accelerators ORDER, `base` for the base alone
evaluate() {
  local list=$1 order=${2#base}
  shift 2
  local left=$((BUDGET - SECONDS))
  [ "$left" -gt 0 ] || return 124
  timeout "$left" "$@" "$cuprum" eval --device cuda --accelerators "$order" --file "$lists/$list.txt"
}
# check TOOL LIST ORDER: one run under a tool, or without one (`warm`), which fills the kernel cache
check() {
  local tool=$1 list=$2 order=$3 start=$SECONDS rc verdict=ok
  local log=$OUT/$tool-$list-$order.log
  if [ "$tool" = warm ]; then
    evaluate "$list" "$order" >"$log" 2>&1
    rc=$?
  else
    evaluate "$list" "$order" "$sanitizer" --tool "$tool" --error-exitcode 9 >"$log" 2>&1
    rc=$?
    # Check the summary too, because racecheck exits with 0 after warnings.
    grep -Eq 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' "$log" || verdict=FAILED
  fi
  [ "$rc" = 0 ] || verdict=FAILED
  [ "$rc" != 124 ] || verdict='FAILED (out of time)'
  printf '%-10s %-10s %-5s %4ds rc=%d %s  %s\n' "$tool" "$list" "$order" $((SECONDS - start)) "$rc" "$verdict" "$(grep SUMMARY "$log" | tail -n 1)"
}
for tool in warm $tools; do
  # Segments first: with a short budget, the kernel with the most barriers still runs.
  for list in segment $(cd "$lists" && ls ./*.txt | sed 's|./||; s|\.txt$||' | grep -v '^segment$'); do
    for order in cub base; do
      while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n; done
      check "$tool" "$list" "$order" &
    done
  done
  wait
done | tee "$OUT/sanitize.txt"
failed=$(grep -c FAILED "$OUT/sanitize.txt")
echo "$(wc -l <"$OUT/sanitize.txt") runs, $failed failed, ${SECONDS}s"
[ "$failed" = 0 ]
