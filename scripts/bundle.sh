#!/usr/bin/env bash
# Builds target/bundle for a GPU machine without a Rust toolchain: an archive of stripped release binaries, and run.sh, which unpacks it.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=target/bundle out=target/bundle-files
rm -rf "$bundle" "$out" && mkdir -p "$bundle" "$out"

# Tests and benchmarks unwind. If the command does too, the three share compiled dependencies, and the archive finds equal code.
export CARGO_PROFILE_RELEASE_PANIC=unwind
cargo build --release --locked -p cuprum-cli
# executable COMMAND...: prints the executable that a cargo command builds, read from cargo's JSON messages
executable() { "$@" --message-format=json | python3 -c '
import json, sys
last = [m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")][-1:]
print(*last)'; }
cp target/release/cuprum "$out/cuprum"
cp "$(executable cargo test --release --locked --test conformance --no-run)" "$out/conformance"
cp "$(executable cargo bench --locked --bench workloads --no-run)" "$out/workloads"
strip "$out/cuprum" "$out/conformance" "$out/workloads"
cp scripts/sanitize.sh scripts/sanitize_conformance.sh "$out/"
cp -r tests/large "$out/large"
cp -r benches/peers "$out/peers"
cp benches/ratios.py "$out/peers/"
# The binaries share most of their code. A dictionary of 96 MiB covers all of them.
tar -C "$out" --owner=0 --group=0 -c . | xz -T1 --lzma2=preset=3,dict=96MiB >"$bundle/files.tar.xz"
cp scripts/bundle-run.sh "$bundle/run.sh"
unpacked=$(du -sm "$out" | cut -f1) size=$(du -sm "$bundle" | cut -f1)
rm -rf "$out"
echo "$bundle has $size MiB, unpacked $unpacked MiB"
[ "$size" -lt 64 ] || { echo "the limit is 64 MiB"; exit 1; }
