#!/usr/bin/env python3
"""Writes the corpora of the fuzz targets with NumPy. Tests read the npy and npz files as well.

    python3 fuzz/make_corpora.py
"""
import io
import json
import pathlib
import random
import struct
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "corpus"


def write(target, name, data):
    folder = HERE / target
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def npz(save, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, part) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


six = np.arange(6).reshape(2, 3)
for code in "?bhilBHILefdFD":
    write("npy", f"c_{np.dtype(code).name}.npy", npy(six.astype(code)))
for name, array, version in [
    ("big_endian_int32", six.astype(">i4"), None),
    ("big_endian_complex128", six.astype(">c16"), None),
    ("fortran_float32", np.asfortranarray(six.astype("f4")), None),
    ("fortran_big_endian_float64", np.asfortranarray(six.astype(">f8")), None),
    ("version_2_float64", six.astype("f8"), (2, 0)),
    ("version_3_float64", six.astype("f8"), (3, 0)),
]:
    write("npy", f"{name}.npy", npy(array, version))
write("npy", "scalar.npy", npy(np.array(2.5)))
write("npy", "empty.npy", npy(np.zeros((0, 3), "i8")))
write("npy", "structured.npy", npy(np.zeros(2, [("x", "<f4"), ("y", "<i4")])))

write("npz", "stored.npz", npz(np.savez, a=six, b=six[0].astype("f4")))
write("npz", "deflated.npz", npz(np.savez_compressed, a=six, b=six[0].astype("f4")))
write("npz", "empty.npz", npz(np.savez))
zipfile.ZIP64_LIMIT = 16  # larger members and offsets have 64-bit sizes
write("npz", "zip64.npz", npz(np.savez, a=six, b=six[0].astype("f4")))

write("safetensors", "two.safetensors", safetensors({"a": ("F32", [2, 2], bytes(16)), "b": ("I64", [1], bytes(8))}, {"format": "pt"}))
write("safetensors", "small.safetensors", safetensors({"h": ("BF16", [3], bytes(6)), "q": ("F8_E4M3", [2], bytes(2)), "t": ("BOOL", [2], bytes([0, 1]))}))
write("safetensors", "none.safetensors", safetensors({}))

# Headers as text, whose length the target computes; a zero byte separates the data.
write("safetensors", "header", b'{"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[],"data_offsets":[4,5]}}\0abcde')
write("safetensors", "header_metadata", b'{"__metadata__":{"k":"v"},"a\\n":{"shape":[0,3],"dtype":"F64","data_offsets":[0,0]}}')

# The first two bytes are the options of the target.
write("csv", "commas", b"\x0c\x001,2.5,-3e4\n4,nan,inf\n")
write("csv", "names", b"\x8c\x00time,\"speed, m/s\"\n0,1.5\n1,2.5\n")
write("csv", "blanks", b"\x0c\x04# comment\n1 2 3\n\n4 5 6 # seven\n")
write("csv", "missing", b"\xcc\x401;2\r\n;NA\r\n3;\r\n")
write("csv", "returns", b"\x0c\x001,2\r\r3,4\r\n5,6\r")
write("csv", "integers", b"\x04\x801,2,3\n4,5,6\n7,8,9\n")
write("csv", "comments", b"\x04\x30x y // z\n1 - % 2\nx 3\n")
write("csv", "numbers", b"\x0c\x00 1,+2.5e-3 ,007\r\n\n-0,1e400,123456789012345678901234567890\n")
write("csv", "ranges", b"\x01\x04-128 127\n+0 128\n")
write("csv", "complex", b"\x0e\x00(1+2j),3j\n-1.5,2-1e3j\n")

for i, text in enumerate([
    "sqrt(sum(a**2, axis=-1)) + 1",
    "x = a[:, ::-1]; y = x.T @ x\ny[0, -1] * 2.5j",
    "[1, (2, 'x', None), True][1:]; np.linspace(0, 1, 5).reshape(5, 1)",
    "where(a > 0, a, -a).max() if a.any() else n // 2 % 3",
    "einsum('ij,kj->ik', a, a); concatenate((n, n[::-1]), axis=0)",
    "b = a.astype('int8') << 2 | 1; print(b, ~b, not True and 1 or 0 <= 2 < 3)",
    "a += 1; a.mean(0, keepdims=True).round(2); zeros((2, 3), dtype=float32)",
    "broadcast_to(1.0, (9**9, 9)).sum(0)[::2] + linspace(0, 1, 50).max()",
    "0x_ff + 1_000 - 1e-3 ** -2; (1, 2)[-1]; 'ab' 'c'",
]):
    write("eval", f"script_{i}", text)

# Expressions over nested sequences that share their items.
write("eval", "shared_items", "x = s\n" + "x = (x, x)\n" * 22 + "(x, 1) == ((x[0], x[1]), 1)")
for i, text in enumerate([
    "import numpy as xp, cupy\nxp.linalg.norm(xp.pi, ord=None)[None, ..., xp.newaxis, 1:2, ::-1, a[(1, 2)], b[3,]].T",
    "not a or b and -c ** -d if e < f <= g != h else ~i // j % k @ l << m >> n & o ^ p | q",
    "x = (y, [z, w[0]]) = [1, (2, [3, 4])]; x[1:] += 1,\n() = ()",
    "'a\\n\\x41\\u00e9' \"b\" r'\\d' u'' ; 0x_ff + 0o17 - 0b1 * 1_0.5e-1_0 / .5j ** 1e999 # end",
    "f(a, b=1, c=[d(e)(g), (h).i, (np).j, 1 .real, {}])",
]):
    write("parse", f"text_{i}", text)
for i, data in enumerate([[0, 0, 49, 2], [0, 30, 0, 40, 1, 40, 32, 34, 9, 42, 10, 35], [0, 87, 8, 44, 7, 47, 4, 61, 25, 82, 26, 83, 27]]):
    write("parse", f"tokens_{i}", bytes(data))

for i, data in enumerate([[3, 2, 3, 4, 0, 1, 5, 7, 9], [2, 4, 4, 25, 1, 3, 2, 33, 205, 225, 1], [1, 3, 12, 2, 3, 4, 1, 6, 0, 0, 1], [4, 1, 2, 3, 4, 31, 2, 1, 15, 4, 6]]):
    write("layout", f"views_{i}", bytes(data))

# Structure, dtype, device, axes, pointers; then the offset, and pairs of extent and stride. Small numbers are the byte modulo 7, less 2.
for name, data in {
    "matrix": [0, 11, 0, 2, 0, 0, 5, 5, 5, 3, 0, 0],
    "reversed": [0, 3, 0, 2, 0, 8, 5, 1, 6, 3],
    "c_order": [0x80, 12, 0, 3, 5, 0, 4, 0, 4, 0, 5, 0],
    "scalar": [0x40, 14, 225, 0, 0, 16],
    "bools": [3, 0, 0, 1, 8, 0, 6, 3],
    "broadcast": [1, 9, 0, 2, 0, 2, 250, 2, 5, 3],
    "copied": [0, 4, 0, 1, 0, 0, 5, 3] + [0] * 14 + [1, 2],
    "stride_of_a_single_element": [0, 11, 0, 2, 0, 0, 4, 3, 3, 200],
    "huge": [0, 8, 0, 2, 0, 0, 200, 200, 230, 3],
    "other_types": [0, 240, 2, 32, 4, 240, 9, 1, 0],
    "null": [0, 12, 0, 2, 7, 0, 5, 3, 5, 3],
    "axes": [0, 12, 0, 231, 0, 0],
    "misaligned": [0, 12, 0, 1, 8, 0, 5, 3],
}.items():
    write("dlpack", name, bytes(data))

# Descriptions of inputs, with few faults: bytes from 224 choose a fault.
generator = random.Random(2026)
for target, start in [("npy", [4]), ("npz", [2]), ("safetensors", [0]), ("eval", [0]), ("layout", [])]:
    for i in range(8):
        length = generator.randrange(20, 120)
        write(target, f"described_{i}", bytes(start + generator.choices(range(224 if i < 6 else 256), k=length)))
