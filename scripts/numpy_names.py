#!/usr/bin/env python3
"""Writes crates/eval/src/numpy_names.txt: the public names of NumPy, one per line.

A line is `kind path(parameters)`, or `kind path` if the name has no readable signature. The kinds are function, ufunc, class, type and
constant. A name that `eval` lacks has ` # reason`; the reason `in Rust: path` names the Rust item.
`eval` uses the list to tell a function that this version lacks from a typing error, and docs/numpy.md compares it with the
declared functions. Run with the NumPy of scripts/goldens-requirements.txt.
"""
import fnmatch
import inspect
import pathlib
import re
import types

import numpy as np

NAMESPACES = ["", "linalg", "fft", "random", "char", "emath", "ma", "polynomial"]
SKIPPED = {"char", "ma", "emath"}  # strings, masked arrays and automatic domains are not part of this project
REASONS = {
    "dates and times": ["busday*", "datetime_*", "is_busday", "isnat", "datetime64", "timedelta64"],
    "the deprecated matrix class": ["asmatrix", "bmat", "matrix"],
    "Python objects, callbacks and iterators": [
        "frompyfunc", "nditer", "poly1d", "nested_iters", "flatiter",
    ],
    "settings and internals of NumPy": [
        "*errcall", "seterr", "geterr", "errstate", "*bufsize", "show_config", "show_runtime", "get_include", "info",
        "test", "*.test", "ScalarType", "typecodes", "sctypeDict",
    ],
    "records, text and Python objects as elements": [
        "recarray", "record", "fromregex", "flexible", "character", "void", "str_", "bytes_", "object_",
    ],
    "extended precision, which no accelerator has": ["longdouble", "clongdouble", "float128", "complex256"],
    "classes of polynomials": ["polynomial.*"],
}
RUST = {
    "broadcast": "broadcast_shapes",
    "frombuffer": "NdArray",
    "fromfile": "io::fromfile",
    "genfromtxt": "io::genfromtxt",
    "index_exp": "s",
    "load": "io::load",
    "loadtxt": "io::loadtxt",
    "memmap": "io::memmap",
    "ndarray": "NdArray",
    "ndenumerate": "AxisIter",
    "ndindex": "indices",
    "printoptions": "with_printoptions",
    "s_": "s",
    "save": "io::save",
    "savetxt": "io::savetxt",
    "savez": "io::save_npz",
    "savez_compressed": "io::save_npz_compressed",
    "ufunc": "Op",
    "vectorize": "vectorize",
}


def signature(value):
    """The parameters as text, with `?` for a default that means "not given". Empty if they are not readable."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<class '(\w+)'>", r"\1", text.replace("<no value>", "?"))
    return re.sub(r"=<[^>]*>", "=?", text)


def reason(path):
    if path in RUST:
        return f"in Rust: {RUST[path]}"
    return next((why for why, patterns in REASONS.items() if any(fnmatch.fnmatch(path, p) for p in patterns)), None)


def kind(value):
    """The kind of a public name. Modules have none."""
    if isinstance(value, np.ufunc):
        return "ufunc"
    if isinstance(value, types.ModuleType):
        return None
    if isinstance(value, type):
        return "type" if issubclass(value, np.generic) else "class"
    is_grid = type(value).__module__.startswith("numpy.lib")
    return "function" if callable(value) and not is_grid else "constant"


def paths():
    for namespace in NAMESPACES:
        if namespace in SKIPPED:
            continue
        module = getattr(np, namespace) if namespace else np
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            path = f"{namespace}.{name}" if namespace else name
            if name.startswith("_") or kind(value) is None or (namespace and not callable(value)):
                continue
            if isinstance(value, type) and issubclass(value, (Warning, Exception)):
                continue
            why = reason(path)
            parameters = signature(value) if callable(value) else ""
            yield path, f"{kind(value)} {path}{parameters}" + (f" # {why}" if why else "")


target = pathlib.Path(__file__).parent.parent / "crates/eval/src/numpy_names.txt"
lines = [line for _, line in sorted(set(paths()))]
target.write_text("".join(f"{line}\n" for line in lines))
print(f"{target}: {len(lines)} names of NumPy {np.__version__}")
