#!/usr/bin/env python3
"""Compares readers of files with NumPy's and SciPy's: whether they accept mutated files, and the values.

    cargo build -p cuprum-sparse --example read_files
    python3 scripts/differential_files.py --count 2000 --seed 1 --program target/debug/examples/read_files

A file is composed of valid parts, few of which change: a header's text, a number, a name, a checksum, a comment, a line end.
Each read must end within a second and within a limit on memory, without a panic. If both readers accept a file, the values must be equal.
If one refuses it, the difference is printed unless a rule of DOCUMENTED holds.
"""

import argparse
import io
import json
import os
import pathlib
import pickle
import random
import re
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib

import numpy as np
import scipy.io
import scipy.sparse

SECONDS = 1.0
# Differences by intention: a reader, an expression that the description of the difference contains, and the reason as a comment.
DOCUMENTED = [
    # NumPy evaluates the header as a Python expression; cuprum reads a dictionary of literals.
    ("npy|npy_mapped", r"refused: .*damaged npy header"),
    # More elements along an axis than memory has bytes, in an array of no elements.
    ("npy|npy_mapped", r"refused: .*array is too large.*wanted .*array\(\[\]"),
    # Python 2 wrote integers with L. NumPy reads them in one form of the header only.
    ("npy|npy_mapped", r"gives .*Cannot parse header"),
    # Names that numpy.save does not write, strings, and floats of other sizes.
    ("npy|npy_mapped|npz", r"refused: .*dtype .* is not supported"),
    # cuprum checks lengths, numbers of members and names when it opens an archive. NumPy checks a member when it is read.
    ("npz", r"refused: .*(damaged|truncated|Invalid checksum|two arrays have|not an npy file|declares|overlap|encrypted|method)"),
    # cuprum reads the central directory only, and no members without the suffix `.npy`.
    ("npz", r"gives .*(BadZipFile|NotImplementedError|UnicodeDecodeError|ValueError|EOFError)"),
    # Indices must be integers, the format one text, and the shape an axis of two integers. SciPy ignores elements after the last of
    # `indptr`, and a shape that is no multiple of a block.
    ("sparse_npz",
        r"refused: .*(indices must be integers|one text of at most|must be two integers|must not decrease|data must be 2-D|"
        r"indptr must end|multiple of the shape)"),
    # SciPy asks for the truth value of `_is_array`.
    ("sparse_npz", r"gives .*truth value"),
    # Lines and ends of lines of white space are empty, whatever the delimiter. A sign before zero is accepted for unsigned integers.
    ("loadtxt", r"gives .*the number of columns changed"),
    ("loadtxt", r"gives .*could not convert string '([ \\txfbrv0-9]*|-0+)'"),
    # The specification names five words of the header, and which of them exclude each other. Text after a number is an error.
    ("mtx",
        r"refused: .*(not all of its properties|exclude each other|Hermitian matrix|is square|not a number of|not one number of|"
        r"more items than|more elements|indices from|ends before)"),
    # SciPy takes no comments or empty lines among the elements, and no other case of the banner.
    ("mtx", r"gives .*(Too many lines|Too many values|Missing banner|Invalid integer value|Invalid floating-point value)"),
]
DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
NAMES = {"bool": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
    "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128"}


def random_array(rng, dtype=None, shape=None):
    dtype = np.dtype(dtype or rng.choice(DTYPES))
    shape = shape if shape is not None else rng.choice([(), (0,), (1,), (3,), (2, 3), (3, 0), (2, 1, 2)])
    values = np.array([rng.randint(0, 100) for _ in range(int(np.prod(shape)))]).reshape(shape)
    return values.astype(dtype) if dtype.kind != "b" else values > 50


def number(rng):
    """Returns a text that is or resembles a number of a header."""
    return rng.choice(["0", "1", "2", "3", "7", "-1", "-0", "+1", "1_0", "01", "0x2", "2L", "1.0", "1e0", "True", "None", "'1'", str(2**31),
        str(2**63 - 1), str(2**63), str(2**64), str(10**30), " 2 ", "(2)", "2,", "", "3*1", "1+1", "2j"])


# ---- npy ----


def npy_header(rng, array):
    """Returns the text of a header, in few cases with an unusual part."""
    descr = rng.choice([repr(array.dtype.str)] * 6 + [repr(array.dtype.newbyteorder().str), repr(array.dtype.str[1:]),
        repr(array.dtype.name)])
    if rng.random() < 0.15:
        descr = rng.choice(["'|b1'", "'?'", "'<b1'", "'>b1'", "'=f8'", "'f'", "'d'", "'<f16'", "'|O'", "'<U3'", "'|S4'", "'<M8[ns]'",
            "'V8'", "'<i3'", "'|i1'", "'<i1'", "'>u1'", "'i'", "'l'", "'L'", "'q'", "'e'", "'F'", "'D'", "'g'", "'B'", "'b'", "'p'",
            "'float'", "'int'", "'complex'", "'float64'", "'<f8 '", "''", "'x'", "[('a', '<i4')]", "('<f4', (2,))", "'2f4'", "'(2,)f4'",
            "'f4,i4'", "'f4,'", "None", "8", "'<F8'", "'< f8'", "b'<f8'", "u'<f8'", "'\\x3cf8'", "'double'", "'half'", "'single'",
            "'intc'", "'uint'", "'bool_'", "'bool8'", "'float128'", "'longdouble'", "'a'", "'<c32'", "'str'", "'|u1'", "'|f8'", "'|i4'"])
    order = rng.choice(["False"] * 6 + ["True", "True", "0", "1", "None", "'True'", "false", "not True", "True and False"]
        if rng.random() < 0.3 else ["False", "True"])
    items = [str(n) for n in array.shape]
    shape = "(" + "".join(item + ", " for item in items) + ")"
    if rng.random() < 0.25:
        if items and rng.random() < 0.7:
            items[rng.randrange(len(items))] = number(rng)
        else:
            items.insert(rng.randint(0, len(items)), number(rng))
        shape = rng.choice(["({},)", "({})", "[{}]", "({},)", "({}, )", "( {},)", "{}"]).format(", ".join(items))
        shape = shape.replace("(,)", "()")
    keys = [("descr", descr), ("fortran_order", order), ("shape", shape)]
    if rng.random() < 0.08:
        keys.append(("extra", "1"))
    if rng.random() < 0.04:
        keys.pop(rng.randrange(3))
    if rng.random() < 0.2:
        rng.shuffle(keys)
    quote = rng.choice(["'", "'", "'", '"'])
    separators = rng.choice([(": ", ", ")] * 4 + [(":", ","), (" : ", " , "), (":  ", ",\n"), (":\t", ",\t"), (": ", "\n, ")])
    text = "{" + separators[1].join(f"{quote}{key}{quote}{separators[0]}{value}" for key, value in keys) + rng.choice([", ", ", ", "",
        ","]) + "}"
    if rng.random() < 0.1:
        text = rng.choice(["{}", " {}", "{} # comment", "{}\0", "{};", "({})", "{}\n\n", "\n{}", "{},", "dict({})", "{}x", "\t{}", "{} {}",
            "\\\n{}"]).replace("{}", text)
    return text


def npy(rng, array=None):
    """Returns the bytes of a file."""
    array = random_array(rng) if array is None else array
    header = npy_header(rng, array)
    version = rng.choice([(1, 0)] * 6 + [(2, 0), (3, 0), (1, 1), (0, 0), (4, 0), (2, 1)] if rng.random() < 0.3 else [(1, 0), (2, 0), (3,
        0)])
    encoded = header.encode("utf8", "replace") if version == (3, 0) or rng.random() < 0.5 else header.encode("latin1", "replace")
    wide = version[0] >= 2
    pad = -(len(encoded) + 1 + 8 + (4 if wide else 2)) % 64 if rng.random() < 0.9 else rng.randint(0, 5)
    padding = b" " * pad + (b"\n" if rng.random() < 0.95 else b"")
    if rng.random() < 0.03:
        padding = b"\0" * pad + b"\n"
    if rng.random() < 0.02:
        padding = b" " * 12000 + b"\n"
    length = len(encoded) + len(padding)
    if rng.random() < 0.05:
        length += rng.choice([-2, -1, 1, 5, 1000, 60000])
    packed = struct.pack("<I" if wide else "<H", max(0, length) % (2**32 if wide else 2**16))
    magic = b"\x93NUMPY" if rng.random() < 0.98 else rng.choice([b"\x93NUMPZ", b"\x92NUMPY", b"NUMPY", b""])
    elements = array.tobytes()
    if rng.random() < 0.08:
        elements = rng.choice([elements[:-1], elements[: len(elements) // 2], elements + b"\1", elements * 2, b""])
    if array.dtype == bool and elements and rng.random() < 0.3:
        elements = bytes(rng.choice([0, 1, 2, 255]) for _ in elements)
    return magic + bytes(version) + packed + encoded + padding + elements


def read_npy(path, _):
    return {"": np.load(path, allow_pickle=False)}


# ---- npz ----


def npz(rng):
    """Returns the bytes of a zip file whose records are written here, with few faults."""
    names = rng.sample(["a.npy", "b.npy", "arr_0.npy", "dir/c.npy", "é.npy", "x", "n.npy.npy", "./d.npy", ".npy", "A.NPY",
        "with space.npy", "a\\b.npy", "/r.npy", "../u.npy"], rng.randint(0, 3))
    if names and rng.random() < 0.05:
        names.append(names[0])
    out, central = io.BytesIO(), []
    if rng.random() < 0.05:
        out.write(b"#!prefix\n" * rng.randint(1, 5))
    for name in names:
        good = random_array(rng)
        buffer = io.BytesIO()
        np.save(buffer, good)
        data = buffer.getvalue() if rng.random() < 0.9 else npy(rng, good)
        if not name.lower().endswith(".npy") and rng.random() < 0.5:
            data = b"some text"
        method = rng.choice([0, 8])
        packed = data
        if method == 8:
            compressor = zlib.compressobj(rng.choice([0, 1, 9]), zlib.DEFLATED, -15)
            packed = compressor.compress(data) + compressor.flush()
        crc, packed_len, data_len, flags = zlib.crc32(data), len(packed), len(data), 0
        raw_name = name.encode("utf8") if rng.random() < 0.8 else name.encode("cp437", "replace")
        if any(byte > 127 for byte in raw_name) and rng.random() < 0.8:
            flags |= 0x800
        fault = rng.random()
        if fault < 0.03:
            crc ^= 1
        elif fault < 0.06:
            data_len += rng.choice([-1, 1, 2**20, 2**31])
        elif fault < 0.09:
            packed_len += rng.choice([-1, 1, 100])
        elif fault < 0.11:
            method = rng.choice([12, 14, 93, 99, 1])
        elif fault < 0.13:
            flags |= rng.choice([1, 0x40, 0x20, 0x2000])
        elif fault < 0.16 and packed:
            packed = bytearray(packed)
            packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
            packed = bytes(packed)
        descriptor = rng.random() < 0.15
        zip64 = rng.random() < 0.15
        extra = struct.pack("<HHQQ", 1, 16, data_len % 2**64, packed_len % 2**64) if zip64 else b""
        if rng.random() < 0.1:
            extra += rng.choice([b"\x55\x54\x05\x00\x03abcd", b"\x00\x00\x00\x00", b"\x01", b"\xff\xff\x04\x00abcd", b"\xff\xff\xff\xffab"])
        sizes = (0xFFFFFFFF, 0xFFFFFFFF) if zip64 else (packed_len % 2**32, data_len % 2**32)
        offset = out.tell()
        local_name = raw_name if rng.random() < 0.97 else b"other.npy"
        local = (0, 0, 0) if descriptor else (crc % 2**32, *sizes)
        out.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 45 if zip64 else 20, flags | (8 if descriptor else 0), method, 0, 33, *local,
            len(local_name), len(extra)))
        out.write(local_name + extra + packed)
        if descriptor:
            out.write(struct.pack("<IIII", 0x08074B50, crc % 2**32, packed_len % 2**32, data_len % 2**32))
        if rng.random() < 0.03:
            offset += rng.choice([-1, 1, 2**20])
        comment = b"note" if rng.random() < 0.05 else b""
        central.append(struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 45 if zip64 else 20, flags | (8 if descriptor else 0), method, 0,
            33, crc % 2**32, *sizes, len(raw_name), len(extra), len(comment), 0, 0, 0, offset % 2**32) + raw_name + extra + comment)
    start = out.tell()
    directory = b"".join(central)
    count = len(central) if rng.random() < 0.97 else rng.choice([0, 1, 5, 65535])
    length = len(directory) if rng.random() < 0.97 else rng.choice([1, len(directory) + 1, 2**32 - 1])
    comment = b"zip comment" if rng.random() < 0.05 else b""
    out.write(directory + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, length, start, len(comment)) + comment)
    data = out.getvalue()
    if rng.random() < 0.04:
        data += rng.choice([b"\0", b"trailing bytes" * 3])
    if rng.random() < 0.03:
        data = data[: -rng.randint(1, 30)]
    return data


def read_npz(path, _):
    with np.load(path, allow_pickle=False) as archive:
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("no npz")
        # Members without the suffix are no arrays for cuprum. Names are compared by their number, because a name that is not ASCII and has
        # no flag is UTF-8 here and code page 437 in Python.
        names = sorted((name for name in archive.files if name + ".npy" in archive.zip.namelist()),
            key=lambda name: archive.zip.getinfo(name + ".npy").header_offset)
        return {str(n): np.asarray(archive[name]) for n, name in enumerate(names) if not isinstance(archive[name], bytes)}


# ---- tables ----


def field(rng):
    """Returns the text of a number, or of something that resembles it.

    Not generated: numbers that NumPy rounds twice (float32, float16), digits with `_` (float16 only), `J`, white space outside ASCII.
    """
    plain = rng.random()
    if plain < 0.5:
        return rng.choice(["0", "1", "-2", "3.5", "-0.25", "1e3", "1E-2", "+4", "7", "100", ".5", "5.", "-0"])
    return rng.choice(["1e400", "-1e400", "1e-400", "inf", "-inf", "+inf", "nan", "NaN", "-nan", "NAN", "Inf", "INFINITY", "infinity",
        "-Infinity", "infin", "nan(1)", "0x10", "0x1p3", "0x1.8", "1d3", "1D3", "1e", "1e+", "e5", ".", "-", "+", "--1", "+-1", "1.2.3",
        "1,5", "1 2", "1+2j", "1-2j", "(1+2j)", "2j", "j", "1+j", "1+2i", "(1)", "1 + 2j", "1+-2j", "nan+nanj", "inf-infj", "True", "true",
        "False", "T", "0.1", "123456789012345678901234567890", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "-9223372036854775809", "18446744073709551615", "18446744073709551616", "255", "256", "-1", "-129", "65504", "65520",
        "3.4028236e38", "1.7976931348623159e308", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "0." + "0" * 330 + "1",
        "1" * 310, "1" + "0" * 400, "0" * 500 + "1", "1." + "0" * 900 + "1", "9007199254740993", "9007199254740992.5000000000001",
        "1e0005", "1e-0", "00", "007", "-007", "1e5", "2.0", "2.5", "NA", "N/A", "null", "none", "None", "", " ", '"1"', '"1.5"', '""',
        '"a"', '"1""2"', "'1'", "1#", "1f", "1l", "1L", "−1", "abc", "1;2", "1\\", "$1", "1%", "1\t", "\t1", "1\x0b", "1\x0c", "1\0",
        "\0"])


def table(rng):
    """Returns the bytes of a text and the options of the readers."""
    delimiter = rng.choice([None, None, ",", ",", ";", "\t", " ", "|", ":"] + (["e", "x", "+", "-", ".", "\x0b", "'"] if rng.random() < 0.1
        else []))
    separator = delimiter or rng.choice([" ", "  ", "\t", " \t "])
    rows, columns = rng.choice([0, 1, 1, 2, 3]), rng.choice([1, 1, 2, 3])
    dtype = rng.choice(["f8", "f8", "f8", "f4", "f2", "i8", "i4", "i1", "u1", "u8", "bool", "c16", "c8"])
    common = {"b": ["0", "1", "2", "-1"], "i": ["0", "1", "-2", "+4", "7", "100"], "u": ["0", "1", "+4", "7",
        "100"]}.get(np.dtype(dtype).kind)
    make = lambda: field(rng) if rng.random() < 0.12 or common is None and rng.random() < 0.4 else rng.choice(common or ["0", "1", "-2",
        "3.5", "1e3", ".5"])  # noqa: E731
    lines = []
    for _ in range(rows):
        count = columns if rng.random() < 0.96 else max(0, columns + rng.choice([-1, 1]))
        line = separator.join(make() for _ in range(count))
        if rng.random() < 0.08:
            line = rng.choice([" ", "  ", separator, ""]) + line
        if rng.random() < 0.08:
            line += rng.choice([" ", "\t", separator, "  ", " " + separator])
        lines.append(line)
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        lines.insert(rng.randint(0, len(lines)), rng.choice(["", "# comment", "#", "#1,2", "% c", "//", separator] + ([] if delimiter
            else [" ", " # x", "\t", "\x0c"])))
    for i in range(len(lines)):
        if rng.random() < 0.04:
            lines[i] += rng.choice(["# note", " # note", "#", "%x", " // x"])
    ends = rng.choice([["\n"]] * 6 + [["\r\n"], ["\r"], ["\n", "\r\n"], ["\n", "\r"], ["\r\n", "\r", "\n"]])
    text = "".join(line + rng.choice(ends) for line in lines)
    if rng.random() < 0.2:
        text = text.rstrip("\r\n")
    data = text.encode("utf8")
    if rng.random() < 0.02:
        data = data + b"\n"
    options = {"dtype": dtype}
    if delimiter:
        options["delimiter"] = delimiter
    if rng.random() < 0.1:
        options["comments"] = rng.choice([text for text in ["%", "//", "", "#1", "x", "e"] if text != delimiter])
    if rng.random() < 0.1:
        options["skip_rows"] = rng.choice([0, 1, 2, 5])
    if rng.random() < 0.1:
        options["max_rows"] = rng.choice([1, 2, 5])
    if rng.random() < 0.1:
        options["ndmin"] = rng.choice([0, 1, 2])
    if rng.random() < 0.1:
        options["usecols"] = rng.choice([[0], [1], [-1], [0, 0], [1, 0], [-2, 0], [5], [-5]])
    # NumPy does not combine quotes with comments of several characters.
    return data.replace(b'"', b"" if len(options.get("comments", "")) > 1 else b'"'), options


def read_table(path, options):
    keywords = dict(options)
    if "skip_rows" in keywords:
        keywords["skiprows"] = keywords.pop("skip_rows")
    if "comments" in keywords and not keywords["comments"]:
        keywords["comments"] = None
    quote = None if len(keywords.get("comments") or "") > 1 else '"'
    return {"": np.loadtxt(path, quotechar=quote, encoding="utf8", **keywords)}


def table_with_gaps(rng):
    """Returns the bytes of a text for genfromtxt. Its fields are numbers or missing, because other fields become NaN in NumPy and are an
    error here (docs of genfromtxt)."""
    delimiter = rng.choice([",", ",", ";", "\t", None])
    dtype = rng.choice(["f8", "f8", "f4", "i8", "i4", "u1", "c16"])
    # A missing unsigned number is the maximum; NumPy fails.
    missing = [""] if delimiter and dtype != "u1" else []
    numbers = ["0", "1", "7", "100"] + ([] if dtype == "u1" else ["-2", "+4"]) + ([] if dtype[0] in "iu" else ["3.5", ".5", "1e3", "nan",
        "inf"])
    columns = rng.choice([1, 2, 3])
    lines = []
    for _ in range(rng.choice([0, 1, 2, 3, 4])):
        count = columns if rng.random() < 0.97 else columns + rng.choice([-1, 1])
        fields = [rng.choice(missing) if missing and rng.random() < 0.15 else rng.choice(numbers) for _ in range(count)]
        blank = lambda: " " if rng.random() < 0.1 and delimiter != "\t" else ""  # noqa: E731
        lines.append((delimiter or rng.choice([" ", "  ", "\t"])).join(blank() + text + blank() for text in fields))
        if rng.random() < 0.08:
            lines[-1] += rng.choice(["# note", " # note", "#"])
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        lines.insert(rng.randint(0, len(lines)), rng.choice(["", "# comment", "#", "#1,2"]))
    end = rng.choice(["\n", "\n", "\r\n"])
    text = end.join(lines) + (end if rng.random() < 0.8 else "")
    options = {"dtype": dtype}
    if delimiter:
        options["delimiter"] = delimiter
    for key, values in {"skip_rows": [0, 1, 2, 9], "max_rows": [1, 2, 9], "ndmin": [0, 1, 2], "usecols": [[0], [1], [-1], [0, 0], [1, 0],
        [5]], "skip_footer": [1, 2], "fill_value": [5]}.items():
        if rng.random() < 0.12 and not (key == "skip_footer" and ("max_rows" in options or "usecols" in options)):
            options[key] = rng.choice(values)
    return text.encode(), options


def read_table_with_gaps(path, options):
    names = {"skip_rows": "skip_header", "fill_value": "filling_values"}
    return {"": np.genfromtxt(path, encoding="utf8", **{names.get(key, key): value for key, value in options.items()})}


def options_text(options):
    parts = dict(options)
    if "delimiter" in parts:
        parts["delimiter"] = ord(parts["delimiter"])
    if "usecols" in parts:
        parts["usecols"] = ",".join(map(str, parts["usecols"]))
    if "dtype" in parts:
        parts["dtype"] = NAMES[parts["dtype"]]
    return "&".join(f"{key}={value}" for key, value in parts.items())


# ---- written tables ----


def conversion(rng):
    """Returns a format of one number."""
    flags = "".join(rng.sample("-+ 0#", rng.choice([0, 0, 0, 1, 1, 2])))
    width = rng.choice(["", "", "", "1", "5", "10", "25"])
    precision = rng.choice(["", "", ".", ".0", ".1", ".3", ".6", ".10", ".17", ".18", ".30"])
    before, after = rng.choice([("", "")] * 6 + [("<", ">"), ("%%", ""), ("", "%%"), ("é", ""), ("a b", " c")])
    return f"{before}%{flags}{width}{precision}{rng.choice('ddieEfFgGGgfess')}{after}"


def written_table(rng):
    """Returns the bytes of an npy file, and the options of savetxt."""
    dtype = np.dtype(rng.choice(["f8", "f8", "f8", "f4", "f2", "i8", "i4", "u1", "u8", "bool", "c16", "c8"]))
    shape = rng.choice([(1,), (3,), (2, 2), (1, 3), (2, 1), (0,), (0, 2), (2, 0)])
    values = ["0", "-0.0", "1", "-1", "0.5", "1.5", "2.5", "0.1", "123456.789", "1e5", "1e6", "999999.5", "9.9999995", "0.0001", "0.00001",
        "1e16", "1e17", "1e22", "1e23", "1e100", "1.7976931348623157e308", "5e-324", "1e-310", "2.2250738585072014e-308", "inf", "-inf",
        "nan", "65504", "0.000123456", "1e-5", "99.5", "-0.05", "9007199254740993", "0.30000000000000004", "100", "255", "1234567"]
    count = int(np.prod(shape))
    with np.errstate(all="ignore"):
        if dtype.kind in "bui":
            limits = np.iinfo(dtype) if dtype.kind != "b" else None
            numbers = [rng.choice([0, 1, limits.max, limits.min, 7, 100]) if limits else rng.random() < 0.5 for _ in range(count)]
        else:
            numbers = [float(rng.choice(values)) for _ in range(count)]
            if dtype.kind == "c":
                numbers = [complex(x, float(rng.choice(values))) for x in numbers]
        array = np.array(numbers, dtype).reshape(shape)
    columns = shape[1] if len(shape) == 2 else 1
    # NumPy takes `%%` in lists only, and lists for real numbers only.
    options = {"fmt": conversion(rng).replace("%%", "x")}
    if columns > 1 and rng.random() < 0.3 and dtype.kind != "c":
        options["fmt"] = [conversion(rng) for _ in range(columns)]
    for key, choices in {"delimiter": [",", "; ", "\t", ""], "header": ["x y", "a\nb", "é", "a\n", "\n"], "footer": ["end", "a\nb"],
        "comments": ["", "% ", "//"], "newline": ["\r\n", "\n", "|"]}.items():
        # A newline also ends each line of a header of several lines (docs of TextFormat).
        if rng.random() < 0.2 and key != "newline" or rng.random() < 0.1 and not any("\n" in options.get(key, "") for key in ("header",
            "footer")):
            options[key] = rng.choice(choices)
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue(), options


def write_table(path, options):
    buffer = io.BytesIO()
    np.savetxt(buffer, np.load(path), encoding="utf8", **options)
    return {"": np.frombuffer(buffer.getvalue(), np.uint8)}


def format_text(options):
    texts = {key: value if isinstance(value, str) else "\1".join(value) for key, value in options.items()}
    return "&".join(f"{key}={value.encode('utf8').hex()}" for key, value in texts.items())


# ---- Matrix Market ----


def matrix_market(rng):
    """Returns the bytes of a file."""
    kind = rng.choice(["coordinate", "coordinate", "array"])
    number_field = rng.choice(["real", "real", "integer", "complex", "pattern", "double", "unsigned-integer"])
    symmetry = rng.choice(["general", "general", "symmetric", "skew-symmetric", "hermitian"])
    rows = rng.randint(1, 4)
    columns = rows if symmetry != "general" and rng.random() < 0.95 else rng.randint(1, 4)
    banner = ["%%MatrixMarket", "matrix", kind, number_field, symmetry]
    if rng.random() < 0.1:
        i = rng.randrange(5)
        banner[i] = rng.choice([banner[i].upper(), banner[i].title(), banner[i] + "x", "", "%%MatrixMarket", "vector", "logical",
            banner[i][:-1]])
    head = rng.choice([" ", " ", " ", "  ", "\t"]).join(banner) + rng.choice(["", "", "", " ", " extra"])
    lines = [head]
    for _ in range(rng.choice([0, 0, 1, 2])):
        lines.append(rng.choice(["% comment", "%", "", " ", "%%more", " % indented"]))

    def value():
        plain = lambda: field(rng) if rng.random() < 0.06 else rng.choice(["1", "2", "-3", "0",
            "7"] if "integer" in number_field else ["1", "2.5", "-3e1", ".5", "0"])  # noqa: E731
        return "" if number_field == "pattern" else f"{plain()} {plain()}" if number_field == "complex" else plain()

    if kind == "array":
        cells = [(i, j) for j in range(columns) for i in range(rows) if symmetry == "general" or i > j or i == j
            and symmetry != "skew-symmetric"]
        lines.append(f"{rows} {columns}")
        entries = [value() for _ in cells]
    else:
        cells = [(i + 1, j + 1) for i in range(rows) for j in range(columns) if symmetry == "general" or i > j or i == j
            and symmetry != "skew-symmetric"]
        chosen = rng.sample(cells, rng.randint(0, len(cells)))
        if rng.random() < 0.1 and cells:
            chosen.append(rng.choice(cells))
        if rng.random() < 0.04:
            chosen.append(rng.choice([(0, 1), (rows + 1, 1), (1, columns + 1), (-1, 1), (1, 2**31), (1, 2**63), (1, 2)]))
        lines.append(f"{rows} {columns} {len(chosen)}")
        entries = [f"{i} {j} {value()}".rstrip() for i, j in chosen]
    if rng.random() < 0.06:
        entries = entries[:-1] if rng.random() < 0.5 else [*entries, "1 1 1"]
    if rng.random() < 0.08:
        words = lines[-1].split()
        words[rng.randrange(len(words))] = rng.choice(["0", "-1", "1.0", "1e1", "", "99999999999", str(2**63), str(2**64), "x", "+1", "01"])
        lines[-1] = " ".join(words)
    for i in range(len(entries)):
        if rng.random() < 0.04:
            entries[i] = rng.choice([" ", "\t"]) + entries[i]
        if rng.random() < 0.04:
            entries[i] += rng.choice([" ", "\t", " 5", " % c", "x", "%"])
        if rng.random() < 0.03:
            entries[i] = re.sub(" ", rng.choice(["\t", "   ", ","]), entries[i], count=1)
    for _ in range(rng.choice([0] * 8 + [1, 2])):
        entries.insert(rng.randint(0, len(entries)), rng.choice(["", " ", "% comment", "%"]))
    end = rng.choice(["\n"] * 6 + ["\r\n", "\r"])
    text = end.join(lines + entries) + (end if rng.random() < 0.85 else "") + rng.choice([""] * 9 + ["\n\n", "\0", "trailing", " "])
    return (b"\xef\xbb\xbf" if rng.random() < 0.02 else b"") + text.encode("utf8")


def coordinates(a):
    """Returns the elements of a sparse array in the order of rows and columns."""
    a = scipy.sparse.coo_array(a)
    if max(a.shape) <= 1000:
        return {"": a.toarray()}
    return {"row": np.asarray(a.row, "i8"), "column": np.asarray(a.col, "i8"), "data": a.data}


def read_matrix_market(path, _):
    return coordinates(scipy.io.mmread(path, spmatrix=False))


def ours_matrix(arrays):
    """Returns the elements of a sparse array that the program printed."""
    shape = tuple(int(n) for n in arrays["shape"])
    data = arrays["data"]
    return coordinates(scipy.sparse.coo_array((data, (arrays["row"], arrays["column"])), shape=shape))


# ---- sparse npz ----


def sparse_npz(rng):
    """Returns the bytes of a file of scipy.sparse.save_npz whose members are changed."""
    kind = rng.choice(["csr", "csc", "coo", "bsr", "dia"])
    dense = random_array(rng, rng.choice(["f8", "f4", "i4", "i8", "bool", "c16", "u1"]), rng.choice([(2, 2), (4, 6), (2, 4), (0, 3), (1, 1),
        (4, 0)]))
    dense[dense.astype(float) > 60] = 0
    members = {}
    buffer = io.BytesIO()
    container = scipy.sparse.coo_array if rng.random() < 0.5 else scipy.sparse.coo_matrix
    scipy.sparse.save_npz(buffer, container(dense).asformat(kind), compressed=rng.random() < 0.5)
    buffer.seek(0)
    with np.load(buffer) as archive:
        members = {name: archive[name] for name in archive.files}
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        name = rng.choice(sorted(members))
        array = members[name]
        change = rng.randrange(9)
        if change == 0:
            members.pop(name)
        elif name == "format":
            members[name] = rng.choice([np.array(b"csr"), np.array("csr"), np.array(kind), np.array(b"lil"), np.array(1),
                np.array([kind.encode()]), np.array(b"CSR"), np.array(b"csr\0")])
        elif change == 1 and array.size:
            array = np.array(array)
            array.flat[rng.randrange(array.size)] = rng.choice([0, 1, 3, 5, 100, -1 if array.dtype.kind in "if" else 1])
            members[name] = array
        elif change == 2:
            members[name] = array.astype(rng.choice(["i8", "i4", "i2", "f8", "f4", "bool", "f2", "c8"] + ([] if name == "offsets"
                else ["u4", "u8"])))
        elif change == 3:
            members[name] = array[:-1] if array.ndim else array.reshape(1)
        elif change == 4:
            members[name] = np.append(array, array.flat[:1] if array.size else np.zeros(1, array.dtype))
        elif change == 5 and name == "shape":
            members[name] = np.array(rng.choice([[2, 2, 2], [4], [-1, 2], [2**40, 2], [2**62, 2**62], [100, 100], [], [2.0, 3.0]]))
        elif change == 6:
            members[name] = array.reshape(rng.choice([(1, -1), (-1, 1)])) if array.size else array
        elif change == 7:
            members[rng.choice(["extra", "_is_array", "maxprint"])] = np.array(rng.choice([True, False, 1, 5]))
        else:
            members[name] = array[::-1].copy() if array.ndim else array
    out = io.BytesIO()
    np.savez(out, **members)
    return out.getvalue()


def read_sparse_npz(path, _):
    a = scipy.sparse.load_npz(path)
    if a.format in ("csr", "csc", "bsr"):
        a.check_format(full_check=True)
    return coordinates(a)


# ---- safetensors ----


def safetensors(rng):
    """Returns the bytes of a file, and the arrays if it is valid."""
    codes = {"bool": "BOOL", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64",
        "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64"}
    entries, arrays, data = {}, {}, b""
    for name in rng.sample(["a", "b", "é", "", "a.b", "x/y", "weight"], rng.randint(0, 3)):
        code = rng.choice(list(codes))
        array = random_array(rng, code)
        entries[name] = {"dtype": codes[code], "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        arrays[name] = array
        data += array.tobytes()
    if rng.random() < 0.3:
        entries["__metadata__"] = {"format": "pt"}
    text, is_valid = json.dumps(entries, ensure_ascii=rng.random() < 0.5), True
    if rng.random() < 0.6:
        is_valid = False
        numbers = list(re.finditer(r"\d+", text))
        change = rng.randrange(8)
        if change == 0 and numbers:
            found = rng.choice(numbers)
            text = text[: found.start()] + rng.choice(["0", "1", "-1", "1.0", "1e0", str(2**63), str(2**64), "null", '"1"', "[]",
                "01"]) + text[found.end() :]
        elif change == 1:
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice(["{", "}", ",", ":", '"', "[", "]", " ", "\n", "\\", "\0", "null", "[" * 2000]) + text[at:]
        elif change == 2:
            at = rng.randint(0, len(text))
            text = text[:at] + text[at + rng.randint(1, 5) :]
        elif change == 3:
            text = text.replace('"F', rng.choice(['"f', '"BF', '"F8_']), 1)
        elif change == 4:
            data = rng.choice([data + b"\0", data[:-1], b"", data * 2])
        elif change == 5:
            text = text.replace('"shape"', rng.choice(['"Shape"', '"dtype"', '"extra": 1, "shape"', '"shape": [1], "shape"']), 1)
        elif change == 6:
            text = text.replace('"a"', '"b"')
        else:
            text = rng.choice([" " + text, text + " " * 9, text + "\0", "\n" + text, text + text, "[" + text + "]", "\ufeff" + text])
    encoded = text.encode("utf8")
    encoded += b" " * (-len(encoded) % 8)
    length = len(encoded)
    if rng.random() < 0.05:
        is_valid, length = False, rng.choice([0, 1, length - 1, length + 1, 2**32, 2**63, 2**64 - 1])
    return struct.pack("<Q", length) + encoded + data, arrays if is_valid else None


# ---- comparison ----

READERS = {"savetxt": (written_table, write_table), "npy": (npy, read_npy), "npy_mapped": (npy, read_npy), "npz": (npz, read_npz),
    "loadtxt": (table, read_table), "genfromtxt": (table_with_gaps, read_table_with_gaps), "mtx": (matrix_market, read_matrix_market),
    "sparse_npz": (sparse_npz, read_sparse_npz), "safetensors": (safetensors, None)}


def parse_answer(line):
    """Returns the arrays or the message that the program printed, and its seconds."""
    status, seconds, *rest = line.split("\t")
    if status == "error":
        return rest[0], float(seconds)
    arrays = {}
    for name, dtype, shape, data in zip(*[iter(rest)] * 4, strict=True):
        shape = tuple(int(n) for n in shape.split(",")) if shape else ()
        arrays[name.encode().decode("unicode_escape") if "\\u{" not in name else re.sub(r"\\u\{(\w+)\}", lambda m: chr(int(m[1], 16)),
            name)] = np.frombuffer(bytes.fromhex(data), np.dtype({"bfloat16": "u2"}.get(dtype, dtype))).reshape(shape)
    return arrays, float(seconds)


def same(want, got):
    if want.dtype.newbyteorder("=") != got.dtype or want.shape != got.shape:
        return False
    return bool(np.all((want == got) & (np.signbit(want.real) == np.signbit(got.real)) | (want != want) & (got != got)))


def read_in_child(read, path, options):
    """Returns arrays, or a message. Returns None if the reader ended its process, as SciPy's does for some files."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            result = read(path, options)
        except Exception as error:  # noqa: BLE001 -- errors of NumPy are results
            result = f"{type(error).__name__}: {error}"
        with os.fdopen(send, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None  # noqa: S301


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="number of files of each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=READERS)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/differential_files"))
    parser.add_argument("--program", required=True, help="the example read_files of cuprum-sparse")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    cases = []
    for reader in args.only or READERS:
        rng = random.Random(f"{args.seed} {reader}")
        make, read = READERS[reader]
        for n in range(args.count):
            made = make(rng)
            data, extra = made if isinstance(made, tuple) else (made, {})
            path = args.out / f"{reader}_{n}"
            path.write_bytes(data)
            options = extra if reader in ("loadtxt", "genfromtxt", "savetxt") else {}
            want = read_in_child(read, path, options) if read else extra
            cases.append((reader, path, options, want))
    lines = "".join(f"{reader}\t{path}\t{(format_text if reader == 'savetxt' else options_text)(options)}\n" for reader, path, options,
        _ in cases)
    run = subprocess.run([args.program], input=lines, capture_output=True, text=True)  # noqa: S603
    answers = run.stdout.splitlines()
    failures = 0
    if len(answers) != len(cases):
        failures += 1
        print(f"the program ended at {cases[len(answers)][1]}: {run.stderr[-2000:]}")
    for (reader, path, options, want), answer in zip(cases, answers, strict=False):
        got, seconds = parse_answer(answer)
        problem = None
        if seconds > SECONDS:
            problem = f"takes {seconds} seconds"
        if isinstance(got, dict) and reader == "npz":
            got = {str(n): array for n, array in enumerate(got.values())}
        if isinstance(got, dict) and reader in ("mtx", "sparse_npz"):
            try:
                got = ours_matrix(got)
            except Exception as error:  # noqa: BLE001
                problem = f"invalid result: {error}"
        if isinstance(got, str) and isinstance(want, dict):
            problem = f"refused: {got}; wanted {str(want)[:200]}"
        elif reader == "savetxt" and isinstance(got, dict) and isinstance(want, dict):
            got, want = got[""].tobytes(), want[""].tobytes()
            problem = f"{got}, not {want}" if got != want else None
        elif isinstance(got, dict) and isinstance(want, str):
            problem = f"gives {str(got)[:200]}; {want[:200]}"
        elif isinstance(got, dict) and isinstance(want, dict):
            if sorted(got) != sorted(want):
                problem = f"names {sorted(got)}, not {sorted(want)}"
            else:
                wrong = [name for name in want if not same(want[name], got[name])]
                problem = f"{[(got[name], want[name]) for name in wrong]}" if wrong else None
        if problem and not any(re.fullmatch(readers, reader) and re.match(text, problem, re.DOTALL) for readers, text in DOCUMENTED):
            failures += 1
            print(f"{path} {options}: {path.read_bytes()[:300] if reader != 'npz' else ''}\n    {problem[:600]}")
    print(f"{len(cases)} files, {sum(isinstance(want, dict) for *_, want in cases)} accepted by the reference; {failures} differences",
        flush=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
