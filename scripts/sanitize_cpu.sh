#!/usr/bin/env bash
# Runs CPU tests under AddressSanitizer (accesses outside of allocations, leaks) and ThreadSanitizer (data races).
#   rustup toolchain install nightly --component rust-src
#   scripts/sanitize_cpu.sh [address] [thread]      (default: both)
# The standard library is built with the sanitizer too: ThreadSanitizer reports false races otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only
target=x86_64-unknown-linux-gnu folder=${CARGO_TARGET_DIR:-target}
for sanitizer in ${*:-address thread}; do
  # Blocks of the memory pool exceed their arrays, so that AddressSanitizer sees accesses outside of blocks only. Threads of the pool never
  # end, and memory that they own at exit is no leak.
  export RUSTFLAGS="-Zsanitizer=$sanitizer" ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/scripts/tsan.txt"
  export CARGO_TARGET_DIR=$folder/sanitize-$sanitizer CUPRUM_NUM_THREADS=4
  sanitized() { cargo +nightly test -Zbuild-std --target $target --locked "$@"; }
  sanitized -p cuprum-cpu-base -p cuprum-cpu-sort --lib
  sanitized -p cuprum-core --lib --test memory --test arrays
  sanitized -p cuprum-backend-cpu --test kernels
  features=(-p cuprum --no-default-features --features cpu,linalg,fft,eval,distributed)
  sanitized "${features[@]}" --test properties --test row_programs
  sanitized "${features[@]}" --test conformance -- --device cpu --quick
  echo "$sanitizer: passed"
done
