#!/usr/bin/env bash
# Checks that each feature compiles alone, that pairs of accelerators compile, and that the CPU build has no CUDA crate.
#   cargo install --locked cargo-hack
#   scripts/check_features.sh            the features of every crate, and pairs of those of the facade
#   scripts/check_features.sh tree       the dependencies of the CPU build alone (seconds)
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none

# dependencies FEATURES: names of the crates that the facade pulls in with these features
dependencies() { cargo tree --locked -p cuprum --no-default-features --features "$1" --edges normal --prefix none --format '{p}' | cut -d' ' -f1 | sort -u; }
cuda='^(cudarc|libloading|cuprum-backend-(cuda|cub|cutensor))$'
if dependencies cpu,linalg,fft,eval,dlpack,ndarray,nalgebra,faer,approx,serde | grep -E "$cuda"; then
  echo "the CPU build pulls in the CUDA crates above"
  exit 1
fi
# The pattern must match the crates of a CUDA build. Otherwise the check above proves nothing.
[ "$(dependencies cpu,cub,cutensor | grep -cE "$cuda")" = 5 ] || { echo "the CUDA build lacks one of the CUDA crates: mend this script"; exit 1; }
# The other way round: a build for CUDA alone has no CPU kernels.
if dependencies cuda | grep -E '^(cuprum-(backend-cpu|cpu-.*)|rayon|gemm|faer)$'; then
  echo "the CUDA build pulls in the CPU crates above"
  exit 1
fi
echo "the CPU build has no CUDA crate, the CUDA build no CPU crate"
[ "${1:-}" != tree ] || exit 0

cargo hack check --locked --workspace --each-feature --exclude cuprum --exclude cuprum-example-accelerator --exclude cuprum-example-dlpack
# --no-dev-deps would change the manifests, so only the library is checked.
cargo hack check --locked -p cuprum --lib --feature-powerset --depth 2 --group-features ndarray,nalgebra,faer,approx,serde
