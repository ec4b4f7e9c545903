#!/usr/bin/env bash
# Runs the tests of the CPU backend in release builds at each SIMD level that the processor supports. Development builds stop at AVX2 and
# are not vectorised, so this is the only test of the loops that users run.
#   scripts/test_simd_levels.sh [LEVEL...]     (default: baseline avx2 avx512)
set -euo pipefail
cd "$(dirname "$0")/.."
# Without link-time optimisation the build takes a third of the time. The loops are the same, since each is compiled within its crate.
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
levels=${*:-baseline avx2 avx512}
for level in $levels; do
  if [ "$level" = avx512 ] && ! grep -qw avx512vl /proc/cpuinfo; then
    echo "avx512: this processor lacks it, not tested"
    continue
  fi
  CUPRUM_SIMD=$level cargo test --release --locked -p cuprum-cpu-base -p cuprum-cpu-math -p cuprum-cpu-sort -p cuprum-backend-cpu --lib --tests
  CUPRUM_SIMD=$level cargo test --release --locked --no-default-features --features cpu,linalg,fft,eval --test conformance --test properties --test row_programs
  echo "$level: passed"
done
