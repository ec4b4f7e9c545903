#!/usr/bin/env python3
"""Times reading and writing of files by the `cuprum` command, by NumPy, and by pandas, polars and safetensors where they are installed.

    cargo build --release -p cuprum-cli && python3 scripts/bench_files.py [MEGABYTES] [FOLDER] [PROGRAM]

Prints a row per format, direction and program: the fastest of five runs, in milliseconds, and its time divided by cuprum's. The files
stay in the page cache, so that the rows show the programs and not the disk. Run it on an idle machine.
PROGRAM times another library: `PROGRAM FILE.npy OUT.npy` prints its name, and the milliseconds of reading and of writing float64.
"""
import importlib.util
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


def cuprum(path, out):
    """Returns the fastest times of reading and writing as the command reports them."""
    reads, writes = [], []
    for _ in range(RUNS):
        command = [COMMAND, "eval", "x", f"x={path}", "-o", out, "--time", "--device", "cpu"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        reads.append(float(re.search(r"inputs ([\d.]+) ms", done.stderr).group(1)))
        writes.append(float(re.search(r"output ([\d.]+) ms", done.stderr).group(1)))
    return min(reads), min(writes)


def program(path, command, out):
    """Returns the name and times that another program prints."""
    name, read, write = subprocess.run([command, path, out], capture_output=True, text=True, check=True).stdout.split()
    return name, float(read), float(write)


def peers(kind, array):
    """Yields name, save and load of each program for a kind of file. The first writes the file that all read."""
    if kind == "csv":
        yield "NumPy", lambda p: np.savetxt(p, array, delimiter=",", fmt="%.17g"), lambda p: np.loadtxt(p, delimiter=",")
        if importlib.util.find_spec("pandas"):
            import pandas

            frame = pandas.DataFrame(array)
            yield "pandas", lambda p: frame.to_csv(p, header=False, index=False), lambda p: pandas.read_csv(p, header=None).to_numpy()
        if importlib.util.find_spec("polars"):
            import polars

            table = polars.DataFrame(array)
            yield "polars", lambda p: table.write_csv(p, include_header=False), lambda p: polars.read_csv(p, has_header=False).to_numpy()
    elif kind == "safetensors":
        if importlib.util.find_spec("safetensors"):
            from safetensors.numpy import load_file, save_file

            yield "safetensors", lambda p: save_file({"x": array}, p), lambda p: load_file(p)["x"].sum()
    elif kind == "npz":
        yield "NumPy", lambda p: np.savez(p, x=array), lambda p: np.load(p)["x"]
    elif kind == "deflated.npz":
        yield "NumPy", lambda p: np.savez_compressed(p, x=array), lambda p: np.load(p)["x"]
    else:
        yield "NumPy", lambda p: np.save(p, array), np.load


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    other = sys.argv[3] if len(sys.argv) > 3 else None
    rows = megabytes * 1_000_000 // 80
    a = np.random.default_rng(0).random((rows, 10))
    small = a[: rows // 20]
    arrays = {"npy": a, "fortran.npy": np.asfortranarray(a), "npz": a, "deflated.npz": small, "safetensors": a, "csv": small}
    print(f"{'file':13} {'MB':>5}  {'':5} {'cuprum':>9}  peers")
    for kind, array in arrays.items():
        path, out = str(folder / f"peer.{kind}"), str(folder / f"cuprum.{kind.rsplit('.', 1)[-1]}")
        times = []
        for name, save, load in peers(kind, array):
            write = fastest(lambda: save(path if not times else str(folder / f"{name}.{kind}")))
            times.append((name, fastest(lambda: load(path)), write))
        if not times:
            continue
        if kind == "npy" and other:
            times.append(program(path, other, str(folder / "other.npy")))
        read, write = cuprum(path, out)
        size = pathlib.Path(path).stat().st_size / 1e6
        for direction, mine, at in (("read", read, 1), ("write", write, 2)):
            if kind == "deflated.npz" and direction == "write":
                continue  # the command writes stored members
            ratios = ", ".join(f"{t[0]} {t[at]:.1f} ({t[at] / mine:.1f}x)" for t in times)
            print(f"{kind:13} {size:5.0f}  {direction:5} {mine:9.1f}  {ratios}")


main()
