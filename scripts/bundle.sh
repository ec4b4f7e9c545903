#!/usr/bin/env bash
# Make target/bundle: an archive of stripped release binaries, and a run.sh that unpacks it, for a GPU machine that has no Rust toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=target/bundle out=target/bundle-files
rm -rf "$bundle" "$out" && mkdir -p "$bundle" "$out"

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
cp scripts/sanitize.sh "$out/"
cp -r tests/large "$out/large"
cp -r benches/peers "$out/peers"
cp benches/ratios.py "$out/peers/"
# The binaries have most of their code in common, which a dictionary of 96 MiB finds.
tar -C "$out" --owner=0 --group=0 -c . | xz -T1 --lzma2=preset=3,dict=96MiB >"$bundle/files.tar.xz"
cp scripts/bundle-run.sh "$bundle/run.sh"
unpacked=$(du -sm "$out" | cut -f1) size=$(du -sm "$bundle" | cut -f1)
rm -rf "$out"
echo "$bundle has $size MiB, unpacked $unpacked MiB"
[ "$size" -lt 64 ] || { echo "the limit is 64 MiB"; exit 1; }
