#!/usr/bin/env bash
# Run unsafe code under miri: the pool of host memory, and the CPU backend's kernels at small sizes.
#   rustup toolchain install nightly --component miri,rust-src
#   scripts/miri.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# Statistics are read from the system, and threads of the pool never end. Rayon's queues turn numbers into pointers and break the
# older of the two sets of rules for references.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-tree-borrows ${MIRIFLAGS:-}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/miri}
miri() { cargo +nightly miri test --locked "$@"; }
miri -p cuprum-core --lib -- pool:: buffer::
miri -p cuprum-core --test memory
miri -p cuprum-backend-cpu --lib -- cache:: threads:: transpose:: sort::vector::
miri -p cuprum-backend-cpu --test kernels -- memory::
