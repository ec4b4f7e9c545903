#!/usr/bin/env python3
"""Writes crates/eval/src/numpy_names.txt: the public functions and ufuncs of NumPy, one path per line.

Run with the NumPy of scripts/goldens-requirements.txt. `eval` uses the list to tell a function that this version lacks from a typing error.
"""
import pathlib

import numpy as np

NAMESPACES = ["", "linalg", "fft", "random", "char", "emath", "ma", "polynomial"]
SKIPPED = {"char", "ma", "emath"}  # strings, masked arrays and automatic domains are not part of this project


def paths():
    for namespace in NAMESPACES:
        if namespace in SKIPPED:
            continue
        module = getattr(np, namespace) if namespace else np
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            is_skipped_type = isinstance(value, type) and issubclass(value, (np.generic, Warning, Exception))
            if not name.startswith("_") and callable(value) and not is_skipped_type:
                yield f"{namespace}.{name}" if namespace else name


target = pathlib.Path(__file__).parent.parent / "crates/eval/src/numpy_names.txt"
target.write_text("".join(f"{path}\n" for path in sorted(set(paths()))))
print(f"{target}: {sum(1 for _ in target.open())} names of NumPy {np.__version__}")
