#!/usr/bin/env bash
# Makes the package of every crate and builds each from its package, as crates.io and docs.rs do.
#   scripts/check_packages.sh [--no-verify]      --no-verify: without the builds
# Limit of crates.io for a package: 10 MiB.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none
target=${CARGO_TARGET_DIR:-target}
python3 scripts/set_version.py --check
cargo package --workspace --locked --allow-dirty --exclude cuprum-example-accelerator --exclude cuprum-example-dlpack "$@"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
for package in "$target"/package/cuprum*-"$version".crate; do
  size=$(stat -c %s "$package")
  printf '%8d KiB  %s\n' $((size / 1024)) "$(basename "$package")"
  [ "$size" -lt $((10 << 20)) ] || { echo "too large for crates.io"; exit 1; }
done
