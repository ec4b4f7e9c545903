#!/usr/bin/env bash
# Runs unsafe code under miri: the host memory pool, and the kernels of the CPU backend at small sizes.
#   rustup toolchain install nightly --component miri,rust-src
#   scripts/miri.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# Isolation: memory statistics come from the system. Leaks: pool threads never end. Provenance and tree borrows: rayon's queues convert
# integers to pointers and violate stacked borrows.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-tree-borrows ${MIRIFLAGS:-}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/miri}
miri() { cargo +nightly miri test --locked "$@"; }
miri -p cuprum-core --lib -- pool:: buffer::
miri -p cuprum-core --test memory
miri -p cuprum-cpu-base --lib -- cache:: threads:: transpose::
miri -p cuprum-cpu-sort --lib -- vector::
miri -p cuprum-backend-cpu --test kernels -- memory::
