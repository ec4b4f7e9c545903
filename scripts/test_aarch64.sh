#!/usr/bin/env bash
# Runs the tests of core and of the CPU crates for aarch64, by emulation on other processors.
#   apt-get install qemu-user gcc-aarch64-linux-gnu
#   scripts/test_aarch64.sh [CARGO TEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
rustup target add "$target"
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none
if [ "$(uname -m)" != aarch64 ]; then
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
fi
if [ $# -gt 0 ]; then exec cargo test --locked --target "$target" "$@"; fi
crates=(core cpu-base cpu-elementwise cpu-fft cpu-linalg cpu-sort backend-cpu io)
cargo test --locked --target "$target" "${crates[@]/#/--package=cuprum-}" --lib --tests --no-fail-fast
