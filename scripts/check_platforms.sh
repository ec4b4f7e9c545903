#!/usr/bin/env bash
# Checks that the crates compile for each supported platform (docs/platforms.md). Needs no linker, emulator or SDK of the platform.
#   scripts/check_platforms.sh            all targets, libraries and the command
#   scripts/check_platforms.sh quick      Windows and WebAssembly, libraries only: the step of CI
#   scripts/check_platforms.sh TARGET..   these targets
# Installs missing targets with rustup.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none
wasm=wasm32-unknown-unknown
all="x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-pc-windows-msvc x86_64-pc-windows-gnu aarch64-apple-darwin $wasm"
packages=(--workspace --exclude cuprum-example-accelerator --exclude cuprum-example-dlpack)
case "${1:-}" in
  "") targets=$all ;;
  quick)
    targets="x86_64-pc-windows-msvc $wasm"
    packages+=(--exclude cuprum-cli --lib)
    ;;
  *) targets=$* ;;
esac
# shellcheck disable=SC2086 # a list of targets
rustup target add $targets
for target in $targets; do
  start=$SECONDS
  if [ "$target" = "$wasm" ]; then
    # The CPU backend without threads: the target has none, so every kernel runs on the calling thread.
    cargo check --locked --quiet --target "$target" -p cuprum --no-default-features --features cpu
    [ "${1:-}" = quick ] || cargo check --locked --quiet --target "$target" -p cuprum --no-default-features --features cpu,linalg,fft,eval
  else
    cargo check --locked --quiet --target "$target" "${packages[@]}" --all-features
  fi
  echo "$target compiles ($((SECONDS - start))s)"
done
