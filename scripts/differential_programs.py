"""Generators of random index expressions and of random programs for scripts/differential.py.

`--kind indices`: reads, assignments and updates at indices, and functions that select or store elements.
`--kind programs`: three to eight statements over shared names: views, deferred chains, updates in place, reductions.

A program gives NumPy's result only if no variable shares memory with another, because eval's views are copies on write. So the reference
copies the value of each assignment. Sums are generated only of elements whose sum is exact in any order.
"""

import ast
import re

import numpy as np

NAMES = {np.dtype(dtype): name for name, dtype in {"bool": bool, "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2",
    "u32": "u4", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}.items()}
SHAPES = {"v": (7,), "w": (12,), "o": (1,), "m": (4, 5), "n": (5, 3), "c": (2, 3, 4), "z": (), "e": (0, 3), "f": (0,), "s": (3, 3), "p": (2,
    1, 3, 2), "q": (2, 3, 1, 2, 2), "l": (300, 70)}
LARGE = ["bool", "i32", "u8", "f32", "f64"]


class CopyAssigned(ast.NodeTransformer):
    """Copies the assigned arrays, so that no two variables share memory."""

    def visit_Assign(self, node):
        if isinstance(node.targets[0], ast.Name | ast.Tuple):
            node.value = ast.Call(ast.Name("_own", ast.Load()), [node.value], [])
        return node


def own(value):
    if isinstance(value, tuple):
        return tuple(map(own, value))
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


def multiplies_exactly(value):
    """Returns whether products of the complex numbers are exact, whatever the order of their additions."""
    parts = np.concatenate([np.ravel(value.real), np.ravel(value.imag)])
    return bool(np.all(np.abs(parts) < 32) and np.all(parts * 16 == np.floor(parts * 16)))


def run(names, text):
    """Returns the value of the last statement."""
    *statements, last = CopyAssigned().visit(ast.parse(text)).body
    names = dict(names, _own=own)
    exec(compile(ast.fix_missing_locations(ast.Module(statements, [])), text, "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(last.value), text, "eval"), names)  # noqa: S307


# ---- indices ----


class Indices:
    """Generates index expressions."""

    def __init__(self, names, rng):
        self.names, self.rng, self.reads = names, rng, False
        self.dtypes = list(NAMES.values())

    def maybe(self, probability):
        return self.rng.random() < probability

    def integer(self, n):
        """Returns an index of an axis of n elements, rarely out of bounds."""
        if n == 0 or self.maybe(0.03):
            return self.rng.choice([n, -n - 1, n + 3, -n - 4, 2**31, -(2**63)])
        return self.rng.randrange(-n, n)

    def slice(self, n):
        bound = lambda: "" if self.maybe(0.4) else self.rng.choice([*range(-n - 2, n + 3), "None", 2**40, -(2**40)])  # noqa: E731
        step = self.rng.choice(["", "", "", ":", ":1", ":2", ":-1", ":-1", ":-2", ":3", ":-3", ":7", f":{2**62}", f":{-(2**62)}"])
        if self.maybe(0.02):
            step = ":0"
        return f"{bound()}:{bound()}{step}"

    def nested(self, shape, item):
        if not shape:
            return str(item())
        return "[" + ", ".join(self.nested(shape[1:], item) for _ in range(shape[0])) + "]"

    def integers(self, n, shape):
        """Returns an index array or list."""
        text = self.nested(shape, lambda: self.integer(n))
        kind = self.rng.random()
        if kind < 0.35:
            return text if shape else str(self.integer(n))
        dtype = self.rng.choice(["int8", "int16", "int32", "int64", "int64", "intp", "uint8", "uint16", "uint32", "uint64"])
        if kind < 0.45 and shape:
            return f"array({text})"
        if dtype.startswith("u"):
            text = text.replace("-", "")
            text = self.nested(shape, lambda: abs(self.integer(n)) % max(n, 1))
        elif any(len(digits) > 3 for digits in text.replace("-", " ").replace("[", " ").replace("]", " ").replace(",", " ").split()):
            return f"array({text})"
        # An order that is not C's would change which of several values for one element remains.
        if kind < 0.55 and len(shape) == 2 and self.reads:
            return f"array({text}, '{dtype}').T"
        return f"array({text}, '{dtype}')"

    def mask(self, shape):
        """Returns a boolean mask, rarely of a wrong shape."""
        if self.maybe(0.06):
            shape = tuple(max(n + self.rng.choice([-1, 0, 1]), 0) for n in shape)
        density = self.rng.choice([0, 0.3, 0.5, 0.8, 1])
        text = self.nested(shape, lambda: self.maybe(density))
        if self.maybe(0.3) and shape and 0 not in shape:
            return text
        if 0 in shape:
            return f"zeros({shape}, 'bool')"
        return f"array({text})"

    def items(self, shape):
        """Returns the items of an index of an array of `shape`."""
        rng, parts, axis = self.rng, [], 0
        extents = rng.choice([(), (1,), (2,), (3,), (3,), (2, 3), (2, 1), (1, 3), (0,), (2, 2, 2)])
        stop = len(shape) if self.maybe(0.5) else rng.randint(0, len(shape))
        if self.maybe(0.04):
            stop += 1
        ellipsis = rng.randint(0, stop) if self.maybe(0.35) else -1
        arrays = rng.choice([0, 0, 0.3, 0.6, 0.9])
        while axis < stop:
            if axis == ellipsis:
                parts.append("...")
                axis = max(axis, len(shape) - (stop - axis)) if self.maybe(0.97) else axis
                ellipsis, stop = -1, max(stop, axis + 1) if axis >= stop else len(shape)
                if axis >= len(shape):
                    break
            n = shape[axis] if axis < len(shape) else 1
            if self.maybe(0.12):
                parts.append("None")
            if self.maybe(0.03):
                parts.append(rng.choice(["True", "False", "array(True)", "np.True_"]))
            if self.maybe(arrays):
                if self.maybe(0.25):
                    count = rng.randint(1, min(2, max(len(shape) - axis, 1)))
                    parts.append(self.mask(shape[axis : axis + count]))
                    axis += count
                    continue
                # Lengths broadcast in most cases.
                cut = extents[rng.randint(0, len(extents)) :] if self.maybe(0.4) else extents
                cut = tuple(1 if self.maybe(0.15) else n for n in cut)
                if self.maybe(0.03):
                    cut = (rng.randint(1, 5),)
                parts.append(self.integers(n, cut))
            elif self.maybe(0.4):
                parts.append(str(self.integer(n)))
            else:
                parts.append(self.slice(n))
            axis += 1
        if ellipsis >= 0 and axis == ellipsis or self.maybe(0.02):
            parts.append("...")
        if self.maybe(0.05):
            parts.append("None")
        if self.maybe(0.01):
            parts.append(rng.choice(["1.5", "[1.5]", "array([0.0])", "1j", "[]", "[[]]", "array([], 'float32')", "()", "[True, 1]",
                "(0, 1)", "[(0, 1)]", "z_i32", "z_bool", "z_f64", "m_i8"]))
        return parts

    def index(self, shape):
        if self.maybe(0.12):
            dimensions = self.rng.randint(0, len(shape))
            return self.mask(shape[:dimensions])
        parts = self.items(shape)
        if not parts:
            return self.rng.choice(["...", "()", "None", ":", "True", "False"])
        return ", ".join(parts) + ("," if self.maybe(0.03) else "")

    def source(self):
        """Returns an expression of a random array."""
        kind = self.rng.choice("vvwmmnccccppqqqzefso")
        text = f"{kind}_{self.rng.choice(self.dtypes)}"
        axes = len(SHAPES[kind])
        if axes and self.maybe(0.25):
            text += self.rng.choice(["[::-1]", "[1:]", "[::2]", "[:1]"])
        if axes > 1 and self.maybe(0.25):
            text += self.rng.choice([".T", "[:, ::-1]", ".swapaxes(0, -1)", "[:, 1:]", "[..., ::2]"])
        return text

    def array(self, shape, dtype):
        """Returns an array of a shape. Values for unsigned integers are not negative, because their conversion is undefined in C."""
        name = self.rng.choice(self.dtypes) if self.maybe(0.5) else NAMES[dtype]
        text = f"{self.rng.choice('vw')}_{name}"
        if dtype.kind == "u" and name[0] in "fc":
            text = f"abs({text})" if name[0] == "f" else f"abs(real({text}))"
        if dtype.kind == "b" and name[0] == "f" and self.maybe(0.5):
            text = f"{text} // 3"
        if shape == () and self.maybe(0.5):
            return f"{text}[{self.rng.randrange(7)}]"
        return f"resize({text}, {shape})"

    def scalar(self, dtype):
        if self.maybe(0.03):
            return self.rng.choice(["300", "-1", "2**40", "2**63", "2**64", "-2**63", "1e400", "inf", "nan", "2j", "1+2j"])
        if dtype.kind in "bui":
            return self.rng.choice(["1", "0", "7", "True", "2.5", "100"])
        return self.rng.choice(["1", "-3", "2.5", "True", "-0.0", "inf"] + (["1j", "2-1j"] if dtype.kind == "c" else []))

    def value(self, shape, dtype):
        """Returns a value for elements of `shape`, in few cases of a shape that does not broadcast."""
        kind = self.rng.random()
        if kind < 0.25:
            return self.scalar(dtype)
        if kind < 0.3 and shape and len(shape) < 3:
            return self.nested(shape[-1:] if self.maybe(0.3) else shape, lambda: self.rng.choice([0, 1, 2, 7, True, 1.5]))
        # An array of one element for one element is True for bool, and an exception of another kind for each other dtype.
        if shape == ():
            return self.scalar(dtype) if self.maybe(0.5) else self.array((), dtype)
        shape = tuple(1 if self.maybe(0.2) else n for n in shape)
        if self.maybe(0.2):
            shape = shape[self.rng.randint(0, len(shape)) :]
        if self.maybe(0.1):
            shape = (1,) * self.rng.randint(1, 2) + shape
        if self.maybe(0.05):
            shape = tuple(max(0, n + self.rng.choice([-1, 0, 1, 1])) for n in shape) + ((2,) if self.maybe(0.2) else ())
        return self.array(shape, dtype)

    def evaluate(self, text):
        try:
            return np.asarray(run(self.names, text))
        except Exception:  # noqa: BLE001 -- only the shape is of interest
            return None

    def exception(self, text):
        """Returns the name of NumPy's exception."""
        try:
            run(self.names, text)
        except Exception as error:  # noqa: BLE001
            return type(error).__name__
        return ""

    def dtype_of(self, text, dtype):
        """Returns the dtype of a computation of an array of `dtype` and a value."""
        value = self.evaluate(text)
        if value is None or value.dtype not in NAMES:
            return dtype
        return np.result_type(dtype, value) if "_" in text or "[" in text else np.result_type(dtype, type(value.item()) if value.ndim == 0
            else value)

    def operator(self, dtype):
        operators = ["+=", "+=", "-=", "*=", "//=", "%=", "/="]
        if dtype.kind in "biu":
            operators += ["&=", "|=", "^=", "<<=", ">>="]
        return self.rng.choice(operators)

    def expression(self):
        """Returns a random expression and its rule."""
        source = self.source()
        array = self.evaluate(source)
        form = self.rng.choice(["get", "get", "get", "set", "set", "set", "update", "update", "nested", "at", "function", "function",
            "function"])
        if form == "function":
            text = self.function(source, array)
            return text, self.rule(array, text)
        self.reads = form == "get"
        index = self.index(array.shape)
        self.reads = False
        if form == "get":
            return f"{source}[{index}]", "ulp 0"
        selected = self.evaluate(f"{source}[{index}]")
        shape = selected.shape if selected is not None else (2,)
        # NumPy checks an index before the value.
        value = self.value(shape, array.dtype) if selected is not None else "1"
        if form == "set":
            return f"x = copy({source}); x[{index}] = {value}; x", "ulp 0"
        if form == "nested":
            first = self.rng.choice(["0", "-1", "::-1", "1:", "...", "None", ":, 0", "..., 0", "True"])
            selected = self.evaluate(f"{source}[{first}]")
            if selected is None or selected.ndim == 0:
                return f"{source}[{first}]", "ulp 0"
            index = self.index(selected.shape)
            target = self.evaluate(f"{source}[{first}][{index}]")
            value = self.value(target.shape if target is not None else (2,), array.dtype)
            # eval refuses an assignment to an element of a copy, which has no effect.
            if any(sign in first for sign in ["True"]):
                return f"{source}[{first}][{index}]", "ulp 0"
            operators = ["=", "=", "+="] if np.can_cast(self.dtype_of(value, array.dtype), array.dtype, "same_kind") else ["="]
            return f"x = copy({source}); x[{first}][{index}] {self.rng.choice(operators)} {value}; x", "ulp 0"
        if form == "at":
            function = self.rng.choice(["add", "add", "subtract", "multiply", "maximum", "minimum", "fmax", "negative", "logical_or",
                "bitwise_xor"])
            index = index.rstrip(",")
            where = f"({index},)" if "," in index else index
            if ":" in where or "..." in where or where in "()":
                where = self.integers(array.shape[0] if array.ndim else 1, self.rng.choice([(), (3,), (2, 2), (0,)]))
                selected = self.evaluate(f"{source}[{where}]")
                value = self.value(selected.shape if selected is not None else (2,), array.dtype)
            # Values of a wider dtype are combined in it or refused (limits.md). NumPy checks an index before the value, and reads outside
            # of a value that it broadcasts to several axes of indices or that has more axes than the selection.
            selected, given = self.evaluate(f"{source}[{where}]"), self.evaluate(value)
            value = "True" if selected is None or given is not None and given.ndim and given.shape != selected.shape else value
            value = value if self.dtype_of(value, array.dtype) == array.dtype and "**" not in value else "True"
            arguments = where if function == "negative" else f"{where}, {value}"
            return f"x = copy({source}); {function}.at(x, {arguments}); x", "ulp 0"
        operator = self.operator(array.dtype)
        # Complex division and products round in another order.
        rule = self.rule(array, value)
        # NumPy checks the dtype before the shape, eval after it.
        if self.exception(f"x = copy({source}); x[{index}] {operator} {value}; x") == "UFuncTypeError":
            value = "2" if array.dtype.kind != "b" else "True"
        # One element is a scalar, whose new value may be a float without a defined conversion.
        if shape == () and array.dtype.kind in "iu":
            operator, value = "+=", "2"
        return f"x = copy({source}); x[{index}] {operator} {value}; x", rule

    @staticmethod
    def rule(array, value):
        """Magnitudes, quotients and products of complex numbers are rounded in another order: by less than 8 units of the last place."""
        return "ulp 8" if array.dtype.kind == "c" or "_c" in value or "j" in value else "ulp 0"

    def along_axis(self, array, axis):
        """Returns an index array for take_along_axis."""
        shape = list(array.shape)
        n = shape[axis] if shape else 1
        shape[axis] = self.rng.randint(0, 4)
        shape = [1 if i != axis % array.ndim and self.maybe(0.3) else n for i, n in enumerate(shape)]
        if self.maybe(0.05):
            shape = shape[1:] if self.maybe(0.5) else [2, *shape]
        dtype = self.rng.choice(["int64", "int64", "int8", "uint8", "int32", "uint64", "float32" if self.maybe(0.1) else "int64"])
        count = int(np.prod(shape))
        values = [self.integer(n) if dtype[0] != "u" else abs(self.integer(n)) % max(n, 1) for _ in range(count)]
        if any(abs(v) > 100 for v in values):
            dtype = "int64"
            values = [v % 2**62 for v in values]
        return f"array({values}, '{dtype}').reshape({tuple(shape)})"

    def function(self, source, array):
        """Returns a call of a function that selects or stores elements."""
        rng, size, axes = self.rng, array.size, array.ndim
        axis = rng.choice([*range(-axes, axes)] or [0]) if self.maybe(0.97) else axes
        n = array.shape[axis] if axis < axes else 1
        axis_text = str(axis) if self.maybe(0.75) else "None"
        n_chosen = size if axis_text == "None" else n
        mode = rng.choice(["", "", ", mode='raise'", ", mode='wrap'", ", mode='clip'"])
        wide = lambda shape: self.nested(shape, lambda: rng.choice([self.integer(n_chosen), rng.randint(-3 * n_chosen - 3,
            3 * n_chosen + 3)])  # noqa: E731
                                         if "wrap" in mode or "clip" in mode else self.integer(n_chosen))
        shape = rng.choice([(), (1,), (3,), (0,), (2, 2), (1, 3)])
        indices = wide(shape) if self.maybe(0.5) else self.integers(n_chosen, shape)
        # NumPy wraps a far index by repeated additions.
        mode = "" if "wrap" in mode and re.search(r"\d{5}", indices) else mode
        mask = self.mask(array.shape)
        name = rng.choice(["take", "take", ".take", "take_along_axis", "put", "put", ".put", "put_along_axis", "put_along_axis", "place",
            "putmask", "copyto", "copyto", "choose", "compress", "extract", "insert", "insert", "insert", "delete", "delete", "delete",
            "repeat", "roll", ".fill", ".partition", "append", "where"])
        if name == "take":
            return f"take({source}, {indices}, {axis_text}{mode})" if self.maybe(0.8) else f"take({source}, {indices}{mode})"
        if name == ".take":
            return f"{source}.take({indices}, axis={axis_text}{mode})"
        if name in ("take_along_axis", "put_along_axis"):
            if axes == 0:
                return f"take_along_axis({source}, array({self.integer(1)}), None)"
            # NumPy does not store elements of a flattened array that is not contiguous.
            if axis_text == "None" and (name == "take_along_axis" or array.flags.c_contiguous):
                indices = f"array({[self.integer(size) for _ in range(rng.randint(0, 4))]}, 'int64')"
                indices = indices if "9223372036854775808" not in indices else "array([0])"
            else:
                axis_text = str(axis)
                indices = self.along_axis(array, min(axis, axes - 1))
            if name == "take_along_axis":
                return f"take_along_axis({source}, {indices}, {axis_text})"
            selected = self.evaluate(f"take_along_axis({source}, {indices}, {axis_text})")
            value = self.value(selected.shape if selected is not None else (2,), array.dtype)
            return f"x = copy({source}); put_along_axis(x, {indices}, {value}, {axis_text}); x"
        if name == "put":
            indices = self.integers(size, shape) if not mode.endswith(("'wrap'", "'clip'")) else wide(shape)
            mode = "" if "wrap" in mode and re.search(r"\d{5}", indices) else mode
            return f"x = copy({source}); put(x, {indices}, {self.value(rng.choice([shape, (2,), (0,), (5,)]), array.dtype)}{mode}); x"
        if name == ".put":
            return f"x = copy({source}); x.put({self.integers(size, shape)}, {self.value(shape, array.dtype)}); x"
        if name in ("place", "putmask", "copyto"):
            # NumPy rejects arrays that need an unsafe conversion; place and putmask convert them.
            exact = {"b": ["bool"], "u": ["bool", "u8"], "i": ["bool", "i8"], "f": ["bool", "i8", "f16"], "c": ["f32", "i8",
                "c64"]}[array.dtype.kind]
            values = f"resize(v_{rng.choice([*exact, NAMES[array.dtype]])}, {rng.choice([1, 2, 3, 5, array.shape, (), 0])})"
            values = rng.choice(["1", "0", "[1, 0]", "True", values, values, values])
            if name == "copyto":
                value = self.value(array.shape, array.dtype)
                where = self.mask(rng.choice([array.shape, array.shape[1:], array.shape[-1:], ()]))
                where = where if self.maybe(0.9) else rng.choice(["True", "False", "[True]", f"{source} == {source}"])
                return f"x = copy({source}); copyto(x, {value}, where={where}); x"
            mask = mask if self.maybe(0.8) else rng.choice([f"{source} == {source}", f"{source} != 1", "True", "[True, False]"])
            return f"x = copy({source}); {name}(x, {mask}, {values}); x"
        if name == "choose":
            count = rng.randint(1, 4)
            # Choices of Python ints beyond the common dtype are an error (limits.md).
            choices = ", ".join(self.array(rng.choice([shape, shape[:1], ()]), array.dtype) for _ in range(count))
            selector = self.integers(count, shape) if not mode.endswith(("'wrap'", "'clip'")) else self.nested(shape,
                lambda: rng.randint(-9, 9))
            return f"choose({selector}, [{choices}]{mode})"
        if name == "compress":
            condition = self.nested((rng.randint(0, n_chosen + 1) if self.maybe(0.3) else n_chosen,), lambda: rng.choice([True, False, True,
                0, 2]))
            if "2" not in condition and "0" not in condition or self.maybe(0.5):
                condition = condition if self.maybe(0.5) else f"array({condition})"
            return rng.choice([f"compress({condition}, {source}, {axis_text})", f"{source}.compress({condition}, axis={axis_text})"])
        if name == "extract":
            return f"extract({mask if self.maybe(0.7) else f'{source} > 0'}, {source})"
        if name in ("insert", "delete"):
            # eval has no slice objects. NumPy fails for a list of bools and for several unsigned indices.
            mask = self.mask((n_chosen,))
            mask = f"array({mask})" if mask.startswith("[") else mask
            where = rng.choice([str(self.integer(n_chosen)), f"[{self.integer(n_chosen)}]", indices, mask,
                f"array({self.integer(n_chosen)})"])
            where = where.replace("'uint", "'int")
            if name == "delete" or self.exception(f"delete({source}, {where}, {axis_text})"):  # NumPy inserts at some indices out of bounds
                return f"delete({source}, {where}, {axis_text})"
            tail = array.shape[1:] if axis_text != "None" and axes else ()
            value = rng.choice([self.scalar(array.dtype), self.array(rng.choice([(), (1,)]), array.dtype), self.array(rng.choice([(1,
                *tail), (2, *tail), tail, array.shape]), array.dtype)])
            return f"insert({source}, {where}, {value}, {axis_text})"
        if name == "repeat":
            counts = rng.choice([str(rng.randint(-1 if array.size else 0, 3)), self.nested((n_chosen,), lambda: rng.randint(0, 3)), "[2]",
                "array([2], 'uint8')", "[1, 2]"])
            return f"repeat({source}, {counts}, {axis_text})"
        if name == "roll":
            shift = rng.choice([1, -2, 30, "(1, 2)", "[1]", "array([1, -1])"])
            return f"roll({source}, {shift}, {rng.choice([axis_text, axis_text, '(0, 1)', '(0, 0)'])})"
        if name == ".fill":
            return f"x = copy({source}); x.fill({self.value((), array.dtype) if self.maybe(0.5) else self.scalar(array.dtype)}); x"
        if name == ".partition":
            return f"sort({source}, axis={axis_text})"
        if name == "append":
            return f"append({source}, {self.value(array.shape, array.dtype)}, {axis_text})"
        return f"where({mask}, {source}, {self.value(array.shape, array.dtype)})"


# ---- programs ----


def sums_exactly(array):
    """Returns whether the sum of the elements is exact in their dtype in any order."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        return sums_exactly(array.real) and sums_exactly(array.imag)
    if array.dtype.kind != "f":
        return True
    values = array.astype(np.float64).ravel()
    if not np.isfinite(values).all():
        return False
    values = np.abs(values[values != 0])
    if values.size == 0:
        return True
    mantissas, exponents = np.frexp(values)
    integers = (mantissas * 2.0**53).astype(np.int64)
    lowest = exponents - 53 + np.log2((integers & -integers).astype(np.float64)).astype(int)
    return np.log2(values.sum()) - lowest.min() < np.finfo(array.dtype).nmant


class Programs(Indices):
    """Generates programs."""

    TARGETS = ["[1:]", "[:-1]", "[::2]", "[...]", "[:, 0]", "[0]", "[-1]", "[::-1]", "[:, ::-1]", "[..., 1:]", "[:]", "[1:-1]", "[:, 1]",
        "[2]", "[{0} > 1]", "[{0} == {0}.max()]", "[{0}[0] > 0]", "[[0, -1]]", "[[1, 0], 1:]", "[..., [0, -1]]", "[0][1:]", "[1:][0]",
        "[argsort({0}[:, 0], kind='stable')]", "[nonzero({0} > 2)]", "[0, ::-1]", "[{0} < {0}[::-1]]"]
    BINARY = ["+", "-", "*", "+", "-", "*", "/", "//", "%"]
    COMPARE = ["<", "<=", "==", "!=", ">", ">="]
    UNARY = ["-{}", "abs({})", "sqrt(abs({}))", "square({})", "floor({})", "sign({})", "maximum({}, 1)", "clip({}, -3, 3)",
        "{}.astype('float32')", "{}.astype('int64')", "where({0} > 0, {0}, 1)", "{}.astype('float64')", "isnan({})", "{} + 1", "2 * {}",
        "{} - 0.5", "copy({})", "minimum({}, {}[::-1])", "{0} * {0}", "({0} + {0}) * 2"]
    VIEWS = ["{}.T", "{}[::-1]", "{}[1:]", "{}[:-1]", "{}[:, ::2]", "{}[..., 0]", "{}[0]", "{}[-1]", "{}.reshape(-1)", "{}.ravel()",
        "{}[None]", "{}[..., None]", "{}.swapaxes(0, -1)", "{}[:, None]", "{}[1:-1]", "{}[[1, 0]]", "{}.reshape(-1, 1)", "atleast_2d({})",
        "transpose({})[::-1]", "where({0} > 0, {0}, {0}[::-1])", "{}[..., [0, -1]]", "take({}, [0, 0], -1)", "vstack([{0}, {0}])",
        "delete({}, 0, 0)", "insert({}, 1, 2, 0)", "append({0}, {0})", "split({}, 1)[0]", "triu({})", "trim_zeros({})",
        "compress([True, False, True], {}, 0)", "atleast_3d({})", "pad({}, 1)", "resize({}, (2, 3))", "flip({})", "{}[::2]", "{}[:, :1]",
        "squeeze({})", "expand_dims({}, 0)", "roll({}, 1)", "{}[:, 1:]", "diagonal({})", "moveaxis({}, 0, -1)",
        "broadcast_to({0}, (2,) + {0}.shape)", "concatenate([{0}, {0}])", "stack([{0}, {0}[::-1]])", "tile({}, 2)",
        "{0}[argsort({0}, kind='stable')]", "rot90({})", "{}[[0, -1, 0]]", "{0}[{0} > 0]", "tril({})", "repeat({}, 2, 0)", "real({})"]
    REDUCTIONS = ["{}.sum()", "{}.sum(0)", "{}.sum(-1)", "{}.sum(-1, keepdims=True)", "{}.sum(0, keepdims=True)", "cumsum({})",
        "cumsum({}, 0)", "cumsum({}, -1)", "{}.mean(-1)", "{}.mean()", "({} > 0).sum(-1)", "{0}[{0} > 0].sum()",
        "{0}.sum(0) - {0}.sum(0)[::-1]", "{0} - {0}.sum(-1, keepdims=True)", "cumsum({0}[::-1])[::-1]", "cumsum({}, -1)[..., -1]",
        "where({0} > 0, {0}, 0).sum(0)", "add.reduceat({}, [0, 1], 0)", "trace({})", "({0} @ {0}.T)", "einsum('...i->...', {})",
        "subtract.accumulate({}, 0)", "outer({0}[:2], {0}[:2])", "bincount(clip(abs({0}.ravel()), 0, 9).astype('int64'))", "average({})",
        "diff({}, axis=0).sum(0)", "count_nonzero({})", "dot({}.ravel(), {}.ravel())", "diff({})"]
    EXTREMES = ["{}.max()", "{}.min(0)", "{}.max(-1, keepdims=True)", "({0} - {0}.max(-1, keepdims=True))",
        "{0} / ({0}.max(-1, keepdims=True) + 20)", "({0} - {0}.min(0)) + {0}.max(0)",
        "where({0} > {0}.max(-1, keepdims=True) - 2, {0}, 0)", "({0} == {0}.max(0)).argmax(0)", "searchsorted(sort({0}.ravel()), {0})",
        "minimum.reduce({}, -1)", "maximum.reduceat({}, [0, 1], 0)", "isin({0}, {0}[:1])", "digitize({0}.ravel(), [0, 2])",
        "median({}, 0)", "unique({}).size + zeros(2)", "fmax.accumulate({}, 0)", "({0}.max(0) > 1).any()", "{}.argmax()", "{}.argmin(0)",
        "{}.any()", "{}.all(-1)", "sort({})", "sort({}, 0)", "unique({})", "argsort({}, kind='stable')", "maximum.accumulate({})",
        "{}.ptp()", "nonzero({})[0]"]

    def program(self):
        """Returns a random program and its rule."""
        self.live, self.text = {}, []
        large = self.maybe(0.1)
        for name in "ab":
            kind = "l" if large else self.rng.choice("vwmmmssnccpoz")
            dtype = self.rng.choice(LARGE if large else self.dtypes)
            source = f"{kind}_{dtype}" + ("" if self.maybe(0.6) or kind == "z" else self.rng.choice(["[::-1]", ".T", "[1:]", "[:, ::-1]"]))
            self.execute(f"{name} = {source}")
        if not self.live:
            return self.program()
        count = len(self.text) + self.rng.randint(2, 7)
        for _ in range(60):
            if len(self.text) >= count or not self.live:
                break
            self.execute(self.statement())
        name = self.rng.choice(sorted(self.live))
        last = name if not large else f"{name}.ravel()[::{self.rng.choice([1, 7, 97])}]"
        text = "; ".join([*self.text, last])
        # Sorts, minima and maxima may return either zero.
        return text, "ulp 0 anyzero" if any(name in text for name in ["sort", "unique", "max", "min", "clip"]) else "ulp 0"

    def execute(self, statement):
        """Appends a statement unless it fails or its result is too large. Failures are covered by `indices`."""
        names = {name: own(value) for name, value in self.live.items()}
        try:
            module = CopyAssigned().visit(ast.parse(statement))
            scope = dict(self.names, _own=own, **names)
            # A NaN as result raises here, since its conversion to an integer is undefined in C.
            with np.errstate(invalid="raise"):
                exec(compile(ast.fix_missing_locations(module), statement, "exec"), scope)  # noqa: S102
        except Exception:  # noqa: BLE001
            return
        new = {name: scope[name] for name in "abcdefg" if name in scope and isinstance(scope[name], (np.ndarray, np.generic))}
        # Quotients and magnitudes of complex numbers are rounded in another order.
        if any(v.dtype.kind == "c" for v in [*new.values(), *names.values()]) and any(s in statement for s in ["/", "abs", "sign", "mean",
            "average"]):
            return
        values = [np.asarray(v) for v in [*new.values(), *names.values()]]
        if any(s in statement for s in ["*", "square", "dot", "mult"]) and not all(multiplies_exactly(v) for v in values
            if v.dtype.kind == "c"):
            return
        if any(np.asarray(v).dtype not in NAMES or v.ndim > 5 or v.size > 100_000 for v in new.values()):
            return
        self.live = new
        self.text.append(statement)

    @staticmethod
    def converts(value, dtype):
        """Returns whether the conversion of a value to `dtype` is defined in C."""
        value = np.asarray(value)
        if dtype.kind not in "iu" or value.dtype.kind not in "fc":
            return True
        limits = np.iinfo(dtype)
        return bool(np.all((value.real > limits.min) & (value.real < limits.max)))

    def name(self):
        return self.rng.choice(sorted(self.live))

    def shaped(self, shape):
        """Returns a name whose value broadcasts to `shape`."""
        fitting = [n for n, v in self.live.items() if v.shape == shape or v.shape == shape[1:] or v.size == 1 and v.ndim <= len(shape)]
        return self.rng.choice(sorted(fitting)) if fitting else "2"

    def operand(self, depth=2):
        """Returns an expression over live names."""
        text = self.name()
        if self.maybe(0.4):
            text = self.apply(self.rng.choice(self.VIEWS), text)
        if self.maybe(0.5):
            text = self.apply(self.rng.choice(self.UNARY), text)
        if depth and self.maybe(0.5):
            value = self.value_of(text)
            if value is not None:
                other = self.shaped(value.shape)
                if self.maybe(0.3):
                    same = [view for view in self.VIEWS if (v := self.value_of(self.apply(view, other))) is not None
                        and v.shape == value.shape]
                    other = self.apply(self.rng.choice(same), other) if same else other
                text = f"({text} {self.rng.choice(self.BINARY + (self.COMPARE if self.maybe(0.2) else []))} {other})"
        if depth and self.maybe(0.35):
            value = self.value_of(text)
            if value is not None and value.size:
                pool = self.EXTREMES if self.maybe(0.4) or not sums_exactly(value) else self.REDUCTIONS
                reduced = self.apply(self.rng.choice(pool), text)
                text = f"({text} - {reduced})" if self.maybe(0.25) else reduced
        return text

    @staticmethod
    def apply(template, text):
        """Returns an expression of `text`. The real part of a number is an array (limits.md)."""
        if template == "real({})" and text == "2":
            return text
        return template.replace("{0}", text).replace("{}", text)

    def value_of(self, text):
        try:
            return np.asarray(eval(text, dict(self.names, **self.live)))  # noqa: S307
        except Exception:  # noqa: BLE001
            return None

    def target(self, name):
        """Returns an assignment target in the array `name`."""
        value = self.live[name]
        if self.maybe(0.6):
            return name + self.apply(self.rng.choice(self.TARGETS), name)
        return f"{name}[{self.index(value.shape)}]"

    def statement(self):
        rng = self.rng
        name = self.name()
        new = rng.choice("abcdefg")
        kind = rng.random()
        if kind < 0.35:
            return f"{new} = {self.operand()}"
        if np.ndim(self.live[name]) == 0 or not isinstance(self.live[name], np.ndarray):
            return f"{new} = {self.operand()}"
        if kind < 0.65:
            target = self.target(name)
            value = self.value_of(target)
            if value is None:
                return f"{new} = {self.operand()}"
            operator = rng.choice(["=", "=", "=", "+=", "-=", "*=", "//=", "%="])
            same = [v for view in self.VIEWS + ["{}", "{}[:-1]", "{}[1:]", "{}[::-1]"]
                    if (w := self.value_of(v := self.apply(view, self.name()))) is not None and w.shape == value.shape]
            # A right side from the same array tests the order of reads and writes.
            source = rng.choice(same) if same and self.maybe(0.6) else self.operand(1) if self.maybe(0.6) else "2"
            if self.maybe(0.3):
                source = self.apply(rng.choice(self.UNARY), source)
            new_value = self.value_of(source if operator == "=" else f"{target} {operator[:-1]} {source}")
            if new_value is None or not self.converts(new_value, self.live[name].dtype):
                source = "2"
            # NumPy stores into the elements of a mask while it reads an overlapping source.
            if ("True" in target or ">" in target or "==" in target or "<" in target) and operator == "=" and name in source:
                source = f"copy({source})"
            # `Indices.value` gives the reason.
            if value.ndim == 0 and np.ndim(new_value) > 0:
                source = "2"
            return f"{target} {operator} {source}"
        if kind < 0.85:
            same = [v for view in self.VIEWS + ["{}"]
                    if (w := self.value_of(v := self.apply(view,
                        self.name()))) is not None and w.shape == self.live[name].shape]
            source = rng.choice(same) if same and self.maybe(0.6) else self.operand(1)
            return f"{name} {rng.choice(['+=', '-=', '*=', '+=', '//='])} {source}"
        if kind < 0.93:
            function = rng.choice(["add", "subtract", "multiply", "maximum", "negative", "cumsum", "square", "clip"])
            source = rng.choice([name, f"{name}[::-1]", f"{name}.T", self.operand(1)])
            if function in ("negative", "square"):
                return f"{function}({source}, out={name})"
            if function == "cumsum":
                # `out` of another dtype or shape is refused (limits.md).
                same = sums_exactly(self.live[name]) and self.live[name].dtype in (np.int64, np.uint64, np.float32, np.float64)
                return f"cumsum({rng.choice([name, name + '[::-1]'])}, {rng.choice(['0', '-1'])}, out={name})" if same else f"{name}.sort()"
            if function == "clip":
                return f"clip({source}, -2, 5, out={name})"
            return f"{function}({source}, {self.shaped(self.live[name].shape)}, out={name})"
        return rng.choice([f"{name}.sort()", f"{name}.sort(0)", f"{name}.fill(2)", f"copyto({name}, {self.operand(1)})",
            f"put({name}, [0, 1], [3, 4])", f"putmask({name}, {name} > 1, 1)", f"{new} = {name}",
            f"{name}, {new} = {self.operand(1)}, {name}"])


def expressions(kind, names, rng):
    """Yields random expressions of a kind, with their rules."""
    if kind == "indices":
        indices = Indices(names, rng)
        while True:
            yield indices.expression()
    generator = Programs(names, rng)
    while True:
        yield generator.program()
