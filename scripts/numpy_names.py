#!/usr/bin/env python3
"""Writes crates/eval/src/numpy_names.txt: the public functions and ufuncs of NumPy, one per line.

A line is `path(parameters)`, or `path` if NumPy's function has no readable signature. A name that is not planned has ` # reason`.
`eval` uses the list to tell a function that this version lacks from a typing error, and docs/numpy.md compares it with the
declared functions. Run with the NumPy of scripts/goldens-requirements.txt.
"""
import fnmatch
import inspect
import pathlib
import re

import numpy as np

NAMESPACES = ["", "linalg", "fft", "random", "char", "emath", "ma", "polynomial"]
SKIPPED = {"char", "ma", "emath"}  # strings, masked arrays and automatic domains are not part of this project
REASONS = {
    "dates and times": ["busday*", "datetime_*", "is_busday", "isnat"],
    "the deprecated matrix class": ["asmatrix", "bmat", "matrix"],
    "Python objects, callbacks and iterators": [
        "frompyfunc", "ufunc", "nditer", "dtype", "ndarray", "poly1d", "ndenumerate", "ndindex", "nested_iters", "flatiter", "iterable", "broadcast",
    ],
    "functions of closures, in Rust only": ["apply_along_axis", "apply_over_axes", "fromfunction", "mask_indices", "vectorize"],
    "files and other libraries, in Rust only": [
        "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed", "fromfile", "from_dlpack",
    ],
    "settings and internals of NumPy": [
        "*errcall", "seterr", "geterr", "errstate", "*bufsize", "show_config", "show_runtime", "get_include", "info", "*printoptions",
        "test", "*.test", "shares_memory", "may_share_memory", "require", "typename", "mintypecode"
    ],
    "records and raw memory": ["recarray", "record", "memmap", "frombuffer", "fromregex", "fromstring"],
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
    return next((why for why, patterns in REASONS.items() if any(fnmatch.fnmatch(path, p) for p in patterns)), None)


def paths():
    for namespace in NAMESPACES:
        if namespace in SKIPPED:
            continue
        module = getattr(np, namespace) if namespace else np
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            is_skipped_type = isinstance(value, type) and issubclass(value, (np.generic, Warning, Exception))
            if not name.startswith("_") and callable(value) and not is_skipped_type:
                path = f"{namespace}.{name}" if namespace else name
                why = reason(path)
                yield path, f"{path}{signature(value)}" + (f" # {why}" if why else "")


target = pathlib.Path(__file__).parent.parent / "crates/eval/src/numpy_names.txt"
lines = [line for _, line in sorted(set(paths()))]
target.write_text("".join(f"{line}\n" for line in lines))
print(f"{target}: {len(lines)} names of NumPy {np.__version__}")
