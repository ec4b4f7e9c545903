#!/usr/bin/env python3
"""Times reading and writing of files by the `cuprum` command and by NumPy.

    cargo build --release -p cuprum-cli && python3 scripts/bench_files.py [MEGABYTES] [FOLDER]

Prints a row per format: the fastest of five runs each, in milliseconds, and NumPy's time divided by cuprum's. The files stay in the
page cache, so that the rows show the programs and not the disk. Run it on an idle machine.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = ROOT / "target/release/cuprum"
RUNS = 5


def fastest(f):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        f()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times)


def cuprum(expression, *arguments):
    """Returns the fastest times of reading and writing as the command reports them."""
    reads, writes = [], []
    for _ in range(RUNS):
        done = subprocess.run([COMMAND, "eval", expression, *arguments, "--time", "--device", "cpu"], capture_output=True, text=True, check=True)
        reads.append(float(re.search(r"inputs ([\d.]+) ms", done.stderr).group(1)))
        writes.append(float(re.search(r"output ([\d.]+) ms", done.stderr).group(1)))
    return min(reads), min(writes)


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    rows = megabytes * 1_000_000 // 80
    a = np.random.default_rng(0).random((rows, 10))
    paths = {name: str(folder / f"numpy.{name}") for name in ("npy", "npz", "csv", "fortran.npy", "deflated.npz")}
    small = a[: rows // 20]
    columns = [("npy", a, lambda p, x: np.save(p, x), np.load), ("fortran.npy", np.asfortranarray(a), lambda p, x: np.save(p, x), np.load)]
    columns += [("npz", a, lambda p, x: np.savez(p, x=x), lambda p: np.load(p)["x"])]
    columns += [("deflated.npz", small, lambda p, x: np.savez_compressed(p, x=x), lambda p: np.load(p)["x"])]
    columns += [("csv", small, lambda p, x: np.savetxt(p, x, delimiter=",", fmt="%.17g"), lambda p: np.loadtxt(p, delimiter=","))]
    print(f"{'file':14} {'MB':>6} {'read':>8} {'NumPy':>9} {'ratio':>6} {'write':>8} {'NumPy':>9} {'ratio':>6}")
    for name, array, save, load in columns:
        path = paths[name]
        write_numpy = fastest(lambda: save(path, array))
        read_numpy = fastest(lambda: load(path))
        out = str(folder / f"cuprum.{name.rsplit('.', 1)[-1]}")
        read, write = cuprum("x", f"x={path}", "-o", out)
        size = pathlib.Path(path).stat().st_size / 1e6
        ratio = "-" if name == "deflated.npz" else f"{write_numpy / write:.1f}x"  # the command writes stored members
        print(f"{name:14} {size:6.0f} {read:8.1f} {read_numpy:9.1f} {read_numpy / read:5.1f}x {write:8.1f} {write_numpy:9.1f} {ratio:>6}")


main()
