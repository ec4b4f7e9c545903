"""The input arrays of conformance cases, named `{kind}_{dtype}`, such as `a_f32`."""

import ml_dtypes
import numpy as np

DTYPES = {
    "bool": np.dtype(bool),
    **{f"i{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{f"u{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
    "f16": np.dtype("f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "c64": np.dtype("c8"),
    "c128": np.dtype("c16"),
}

LISTS = {
    "signed": ["i8", "i16", "i32", "i64"],
    "unsigned": ["u8", "u16", "u32", "u64"],
    "floats": ["f16", "bf16", "f32", "f64"],
    "complexes": ["c64", "c128"],
}
LISTS["ints"] = LISTS["signed"] + LISTS["unsigned"]
LISTS["inexact"] = LISTS["floats"] + LISTS["complexes"]
LISTS["reals"] = LISTS["ints"] + LISTS["floats"]
LISTS["numbers"] = LISTS["ints"] + LISTS["inexact"]
LISTS["every"] = ["bool"] + LISTS["numbers"]
# Representative dtypes, for cases that would be too many with every dtype.
LISTS["some"] = ["bool", "i8", "i32", "u8", "u64", "f16", "f32", "f64", "c64"]

# Values at fixed indices, where two inputs are equal or rounding has ties.
FIXED = [0, 1, -1, 2.5, -0.5, 3]


def _random(dtype, shape, low, high, rng):
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u":
        low = max(low, 0)
    if dtype.kind in "iu":
        return rng.integers(low, high + 1, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return values.astype(dtype)


def _with_fixed(values):
    dtype = values.dtype
    if dtype.kind != "b":
        fixed = np.array(FIXED)
        fixed = abs(fixed) if dtype.kind == "u" else fixed
        values[: len(FIXED)] = fixed.astype(dtype)
    return values


def _specials(dtype):
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        top = info.max
        values = [info.min, top, 0, 1, 2, 7, top - 1, top // 2, top // 2 + 1]
        if dtype.kind == "i":
            values += [-1, -2, -7, info.min + 1, info.min // 2]
        return np.array(values, dtype)
    nan, inf = np.nan, np.inf
    if dtype.kind == "c":
        parts = [(nan, 0), (0, nan), (inf, 1), (1, -inf), (-inf, nan), (inf, inf), (0, 0), (-0.0, -0.0), (0, -0.0), (-0.0, 1)]
        parts += [(1, 0), (0, 1), (-1, 0), (-1, -0.0), (-1, -1), (3, 4), (0.5, -2)]
        return np.array([complex(*p) for p in parts], dtype)
    info = ml_dtypes.finfo(dtype)
    edges = [info.smallest_subnormal, info.tiny, info.max]
    values = [nan, inf, -inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.140625, 100, -100, 10000]
    return np.array(values + [float(v) for v in edges] + [-float(v) for v in edges], np.float64).astype(dtype)


def make():
    """Returns all inputs by name."""
    inputs = {}
    for number, (name, dtype) in enumerate(DTYPES.items()):
        rng = np.random.default_rng(1000 + number)

        def draw(shape, low, high):
            return _random(dtype, shape, low, high, rng)  # noqa: B023

        kinds = {
            "a": _with_fixed(draw(18, -9, 9)),
            "b": _with_fixed(draw(18, -5, 5)),
            "p": draw(18, 1, 20),  # positive
            "u": draw(18, -1, 1) if dtype.kind in "fcV" else draw(18, 0, 1),  # between -1 and 1
            "k": draw(18, 0, 6),  # exponents, shift counts
            "l": draw(203, -60, 60),
            "m": draw((4, 5), -9, 9),
            "n": draw((5, 3), -9, 9),
            "c": draw((2, 3, 4), -9, 9),
            "z": draw((), 2, 9),
            "e": draw((0, 3), 0, 1),
            "s": _specials(dtype),
        }
        # Several vector registers plus a tail; compresses well.
        kinds["x"], kinds["y"] = np.tile(kinds["a"], 23), np.tile(kinds["b"], 23)
        inputs.update({f"{kind}_{name}": np.asarray(array) for kind, array in kinds.items()})
    inputs["index"] = np.array([2, 0, -1, 1, 1])
    inputs["index2"] = np.array([[0, -2], [1, 1]], np.int32)
    inputs["offsets"] = np.array([0, 3, 3, 4, 11, 18])
    return inputs


def stand_ins(inputs):
    """Returns the bfloat16 inputs as float16, to find dtypes, and as float32, to find values."""
    of = {n: a for n, a in inputs.items() if n.endswith("_bf16")}
    return {n + "h": a.astype(np.float16) for n, a in of.items()} | {n + "w": a.astype(np.float32) for n, a in of.items()}
