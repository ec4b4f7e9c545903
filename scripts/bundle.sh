#!/usr/bin/env bash
# Make target/bundle: stripped release binaries and a run.sh, for a GPU machine that has no Rust toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/bundle
rm -rf "$out" && mkdir -p "$out"

cargo build --release --locked -p cuprum-cli
# The newest executable of a cargo target, from cargo's own messages.
executable() { "$@" --message-format=json | python3 -c '
import json, sys
last = [m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")][-1:]
print(*last)'; }
cp target/release/cuprum "$out/cuprum"
cp "$(executable cargo test --release --locked --test conformance --no-run)" "$out/conformance"
cp "$(executable cargo bench --locked --bench workloads --no-run)" "$out/workloads"
strip "$out/cuprum" "$out/conformance" "$out/workloads"
cp scripts/bundle-run.sh "$out/run.sh"
cp -r benches/peers "$out/peers"
cp benches/ratios.py "$out/peers/"
du -sh "$out"
size=$(du -sm "$out" | cut -f1)
[ "$size" -lt 64 ] || { echo "the bundle has $size MiB, more than 64"; exit 1; }
