"""Generates calls from the declared signatures, for `scripts/differential.py --kind signatures`.

The signatures are those of `#[numpy("...")]` in crates/, and of the ufuncs in crates/eval/src/numpy_names.txt. Each parameter is drawn from
a pool of values by its name. tests/differential/signatures/parameters.txt holds the pools, one a line:

    NAME = a|b|!c            values of a parameter of this name, with the fields of scripts/differential.py; `!` marks a wrong value
    F,G.NAME = a|b           values for these functions only; `-` leaves the parameter out, `+ ` at the start never does
    :let NAME a|b            defines a field
    :skip F G # reason       functions without calls
    :ulp N F G               results of these functions may differ by N units in the last place
    :sum N F G               by N machine epsilons of the norm of the result or of the first argument, the larger
    :anyzero F G             -0.0 and 0.0 match
    :changes F G             functions that change their first argument, which is the result

A call has at most one wrong value. Of a few random calls, the one is taken that has the most pairs of values that no call had before.
`@` in a value is the text of the first argument. The fields `pair` of one call are arrays whose shapes mostly broadcast together;
`realpair` excludes complex numbers and the limits of dtypes as numbers. Most calls that raise are drawn again.
"""

import ast
import builtins
import inspect
import re
import types
import warnings

import numpy as np
import scipy.linalg
import scipy.special

import goldens
import goldens_inputs
import goldens_reference

PARAMETERS = goldens.ROOT / "tests/differential/signatures/parameters.txt"
NAMES = goldens.ROOT / "crates/eval/src/numpy_names.txt"
# Methods with the parameters of the functions. Others change the array, or take fewer parameters.
METHODS = {name for name in dir(np.ndarray) if not name.startswith("_")} - {
    "resize", "sort", "partition", "put", "fill", "byteswap", "conj", "conjugate", "std", "var", "clip", "astype", "choose",
    "reshape", "transpose", "swapaxes",
}
# The attribute, or a row of a macro that makes the attribute.
DECLARATION = re.compile(r'^ *(?:#\[numpy\(\s*|\w+ )"([\w.]+)\(([^"]*)\)"(?:,\s*aliases\(([^)]*)\))?', re.MULTILINE)
CANDIDATES = 6
ATTEMPTS = 3
ABSENT = "absent"


def split(pool):
    """Splits at each `|` outside of brackets, braces and quotes."""
    items, depth, is_quoted, start = [], 0, False, 0
    for i, c in enumerate(pool):
        is_quoted ^= c == "'"
        depth += 0 if is_quoted else (c in "{[(") - (c in "}])")
        if c == "|" and depth == 0 and not is_quoted:
            items.append(pool[start:i])
            start = i + 1
    return [*items, pool[start:]]


def make_inputs(seed, dtypes):
    """Returns arrays `x`, `y` of the limits of each dtype, and matrices `q` (Hermitian), `r` with condition numbers below 10."""
    rng = np.random.default_rng(seed + 1)
    inputs = {}
    for name, dtype in dtypes.items():
        values = goldens_inputs._specials(dtype)
        if dtype.kind in "iu" and dtype.itemsize == 8:
            values = np.concatenate([values, np.array([2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**62 + 1], dtype)])
        inputs[f"x_{name}"] = np.resize(rng.permutation(values), 16)
        inputs[f"y_{name}"] = rng.choice(values, (4, 5))
        if dtype.kind in "fc":
            parts = rng.integers(-4, 5, (2, 3, 3)) / 4 + 8 * np.eye(3)
            parts = parts + 1j * rng.integers(-4, 5, (2, 3, 3)) / 4 if dtype.kind == "c" else parts
            inputs[f"r_{name}"] = parts.astype(dtype)
            inputs[f"q_{name}"] = ((parts[0] + parts[0].conj().T) / 2).astype(dtype)
    return inputs


def declarations():
    """Yields path and parameters, as text, of every declared function."""
    found = {}
    for path in sorted((goldens.ROOT / "crates").glob("*/src/**/*.rs")):
        for name, text, aliases in DECLARATION.findall(path.read_text()):
            for alias in [name, *re.findall(r'"([^"]*)"', aliases)]:
                found[alias] = text
    # The ufuncs of the op table have the signature of NumPy.
    for line in NAMES.read_text().splitlines():
        if line.startswith("ufunc ") and "#" not in line:
            name, _, text = line.removeprefix("ufunc ").partition("(")
            found.setdefault(name, text[:-1].replace(", subok=True", "").replace(", signature=None", ""))
    yield from sorted(found.items())


def parse(text):
    """Yields name, kind and whether there is a default, of each parameter. The kind is `/`, `*`, `**` for any number, or empty."""
    arguments = ast.parse(f"def f({text}): pass").body[0].args
    positional = arguments.posonlyargs + arguments.args
    for i, parameter in enumerate(positional):
        is_only = i < len(arguments.posonlyargs)
        yield parameter.arg, "/" if is_only else "", i >= len(positional) - len(arguments.defaults)
    if arguments.vararg:
        yield arguments.vararg.arg, "**", False
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        yield parameter.arg, "*", default is not None


class Function:
    """A declared function: the pools of its parameters, and the rule for its results."""

    def __init__(self, path, text, pools):
        self.path, self.kinds, self.pools, self.covered, self.required = path, {}, {}, set(), set()
        self.is_ufunc = "casting='same_kind', order='K', dtype=None" in text
        for name, kind, has_default in parse(text):
            keys = (f"{path}.{name}", f"{path.split('.')[0]}.*.{name}", name)
            pool = next((pools[key] for key in keys if key in pools), None)
            if pool is None:
                raise SystemExit(f"{PARAMETERS.name} has no values of the parameter '{name}' of {path}")
            if pool != "-":
                is_required = pool.startswith("+ ")
                has_default &= not is_required
                items = split(pool.removeprefix("+ "))
                self.kinds[name] = kind
                if not has_default:
                    self.required.add(name)
                self.pools[name] = [ABSENT] * (has_default * len(items)) + items

    def draw(self, rng):
        """Returns a value for each parameter: of some random choices, the one with the most new pairs of values."""
        best, most, best_pairs = {}, -1, set()
        for _ in range(CANDIDATES):
            wrong = rng.choice(list(self.pools)) if self.pools and rng.random() < 0.15 else None
            choice = {n: rng.choice([i for i in pool if n == wrong or not i.startswith("!")]) for n, pool in self.pools.items()}
            items = list(choice.items())
            pairs = {(a, b) for i, a in enumerate(items) for b in items[i + 1 :]} or set(items)
            if len(pairs - self.covered) > most:
                best, most, best_pairs = choice, len(pairs - self.covered), pairs
        self.covered |= best_pairs
        return {name: item.removeprefix("!") for name, item in best.items() if item != ABSENT}


class Generator:
    """Writes calls and evaluates them with NumPy and SciPy."""

    def __init__(self, inputs, fields, fill, rng, only):
        # The errors of expm of SciPy exceed 1e-12.
        linalg = {**vars(scipy.linalg), **vars(np.linalg), "expm": goldens_reference.expm}
        modules = {"linalg": types.SimpleNamespace(**linalg), "fft": goldens_reference.FFT, "special": scipy.special}
        self.evaluator = goldens.Evaluator(inputs)
        self.evaluator.names = {"np": np, **vars(np), **modules, **inputs}
        self.fields, self.fill_text, self.rng = dict(fields), fill, rng
        self.rules, self.any_zero, self.changing, self.functions = {}, set(), set(), []
        self.read_parameters(only)
        # A function with many parameters needs more calls until each pair of values has occurred.
        self.cycle = [function for function in self.functions for _ in range(max(1, len(function.pools) - 1))]

    def read_parameters(self, only):
        pools, skipped = {}, set()
        for line in PARAMETERS.read_text().splitlines():
            words = line.partition(" #")[0].split()
            if line.startswith(":let "):
                _, name, pool = line.split(" ", 2)
                self.fields[name] = pool
            elif line.startswith(":skip "):
                skipped.update(words[1:])
            elif line.startswith((":ulp ", ":sum ")):
                self.rules.update(dict.fromkeys(words[2:], f"{words[0][1:]} {words[1]}"))
            elif line.startswith(":anyzero "):
                self.any_zero.update(words[1:])
            elif line.startswith(":changes "):
                self.changing.update(words[1:])
            elif line and not line.startswith("#"):
                key, _, pool = line.partition(" = ")
                owners, dot, name = key.rpartition(".")
                for owner in owners.split(",") if dot else [""]:
                    pools[f"{owner}.{name}" if owner else name] = pool
        for path, text in declarations():
            if path not in skipped and f"{path.split('.')[0]}.*" not in skipped and (not only or path in only):
                self.functions.append(Function(path, text, pools))

    def fill(self, text):
        return self.fill_text(text, self.fields, self.rng)

    def numpy_parameters(self, function):
        """Returns NumPy's parameters by name, with the kind of `inspect`. `None` if they are not readable, or those of a ufunc."""
        if function.path.startswith(("ndarray.", "ufunc.")):
            return None
        try:
            value = eval(function.path, {}, self.evaluator.names)  # noqa: S307
            parameters = inspect.signature(value).parameters
        except (AttributeError, NameError, TypeError, ValueError):
            return None
        return None if isinstance(value, np.ufunc) else {name: parameter.kind for name, parameter in parameters.items()}

    def arguments(self, function, choice):
        """Returns the texts of the arguments by name, and the list of them in a call. Both libraries have a parameter at that position, or
        of that name, or it is left out."""
        theirs, result, values, is_positional = self.numpy_parameters(function), [], {}, True
        is_readable = theirs is not None and "args" not in theirs
        positions = [name for name, kind in theirs.items() if kind != inspect.Parameter.KEYWORD_ONLY] if is_readable else []
        for position, (name, kind) in enumerate(function.kinds.items()):
            may_be_named = kind in ("", "*") and bool(values) and not (function.path.startswith("ndarray.") and name in function.required)
            if is_readable:
                may_be_named &= name in theirs and theirs[name] != inspect.Parameter.POSITIONAL_ONLY
                is_positional &= name not in theirs or positions[position : position + 1] == [name]
            may_be_positional = is_positional and kind != "*"
            if name not in choice or not (may_be_named or may_be_positional):
                is_positional = False
                continue
            value = self.fill(choice[name]).replace("@", next(iter(values.values()), ""))
            if value == "":  # no further arguments
                continue
            by_name = may_be_named and (not may_be_positional or self.rng.random() < 0.5)
            is_positional &= not by_name
            result.append(f"{name}={value}" if by_name else value)
            values[name] = value
        return values, result

    def has_out(self, function):
        parameters = self.numpy_parameters(function)
        return parameters is None or "out" in parameters or "args" in parameters

    def text(self, function, arguments):
        """Returns the text of a call with a target: of a function, a method, or a method of a ufunc."""
        namespace, _, name = function.path.rpartition(".")
        target, rest = arguments[0] if arguments else "", ", ".join(arguments[1:])
        is_array = re.match(r"[a-z]_[a-z0-9]+\b(?!.* [=<>]+ )", target) is not None
        head = ""
        if function.path in self.changing:
            target, head, is_array = "a0", f"a0 = copy({target}); ", True
        if namespace == "ndarray":
            call = f"{target if is_array else f'copy({target})'}.{name}({rest})"
        elif is_array and name in METHODS and not namespace and name not in self.changing and self.rng.random() < 0.25:
            call = f"{target}.{name}({rest})"
        else:
            path = f"{self.fill('{ufunc}')}.{name}" if namespace == "ufunc" else function.path
            # Without `np.`, these names are Python's own functions for numbers.
            path = f"np.{path}" if path in dir(builtins) else path
            call = f"{path}({', '.join([target, *arguments[1:]])})"
        return f"{head}{call}; a0" if head else call

    def call(self, function):
        """Returns `once`, mostly of a call that does not raise."""
        for _ in range(ATTEMPTS - 1):
            found = self.once(function)
            if not isinstance(found[2], Exception):
                return found
        return self.once(function)

    def once(self, function):
        """Returns text, rule, NumPy's result or exception, and scales. The result is `None` if the call is not compared."""
        group = self.fields[f"group{self.rng.choice('1123456789')}"]
        real = group.replace("{any}", "{real}").replace("{D}", "{R}").replace("{scalar}", "2|2.5|-0.5|True|[2]")
        self.fields |= {"pair": group, "realpair": real}
        choice = function.draw(self.rng)
        out, where = choice.pop("out", None), choice.pop("where", None) if function.is_ufunc else None
        values, arguments = self.arguments(function, choice)
        first = next(iter(values.values()), "")
        text = self.text(function, arguments)
        result = self.evaluate(text)
        if isinstance(result, (tuple, list)) and ";" not in text and len(result) > 0:
            index = self.rng.randrange(len(result))
            text, result = f"{text}[{index}]", result[index]
            if function.path in ("linalg.lstsq", "polyfit") and index == 2:  # the rank is int32 in NumPy, as docs/limits.md states
                return text, "", None, None
        elif out is not None and self.has_out(function) and isinstance(result, (np.ndarray, np.generic)):
            # Elements outside of the mask of a ufunc are undefined without `out`.
            is_same = not function.is_ufunc or self.rule(function) != "ulp 0" or self.rng.random() < 0.6
            dtype = result.dtype if is_same else np.dtype(self.fill("{dtype}").strip("'"))
            shape = result.shape if not function.is_ufunc or self.rng.random() < 0.95 else (*result.shape, 2)
            keywords = ["out=o"] if where is None else ["out=o", f"where={self.fill(where).replace('@', first)}"]
            if self.is_undefined(result, dtype):
                return text, "", None, None
            text = f"o = full({shape}, 1, dtype='{dtype.name}'); {self.text(function, arguments + keywords)}; o"
            result = self.evaluate(text)
        if isinstance(result, Exception):
            return text, "", result, None
        try:
            result = None if result is None else np.asarray(result)
        except ValueError:  # a tuple of several shapes
            result = None
        is_stored = function.path in self.changing or function.path in ("full", "full_like", "insert")
        target = result.dtype if result is not None and is_stored else self.dtype(values.get("dtype", "None"))
        if result is None or self.converts_undefined(values, target):
            return text, "", None, None
        rule = self.rule(function)
        if rule != "ulp 0" and result.dtype.kind == "c" and np.any(np.isfinite(result.real) != np.isfinite(result.imag)):
            return text, "", None, None  # the unit of a complex number is that of its larger part, which is infinite
        scale = self.scale(result, first) if rule.startswith("sum") and result.dtype.kind in "fc" else None
        rule = rule if scale is not None or rule.startswith("ulp") else "ulp 0"
        return text, rule + " anyzero" * self.is_any(function, self.any_zero), result, scale

    def rule(self, function):
        every = function.path.split(".")[0] + ".*"
        return self.rules.get(function.path, self.rules.get(every, "ulp 0"))

    @staticmethod
    def is_any(function, paths):
        return function.path in paths or function.path.split(".")[0] + ".*" in paths

    def dtype(self, text):
        """Returns the dtype that an argument names, or `None`."""
        value = self.evaluate(f"dtype({text})") if text != "None" else None
        return value if isinstance(value, np.dtype) else None

    def converts_undefined(self, values, dtype):
        """Returns whether an argument is converted to an integer dtype that does not hold it. The result is undefined in NumPy."""
        if dtype is None or dtype.kind not in "iu":
            return False
        arguments = [self.evaluate(text) for text in values.values()]
        items = [item for a in arguments for item in (a if isinstance(a, (list, tuple)) else [a])]
        return any(self.is_undefined(np.asarray(item), dtype) for item in items if not isinstance(item, (list, tuple)))

    @staticmethod
    def is_undefined(array, dtype):
        if dtype.kind not in "iu" or array.dtype.kind not in "fc":
            return False
        info, real = np.iinfo(dtype), array.real
        return not np.all((real > info.min - 1.0) & (real < info.max + 1.0) & (real >= (0 if dtype.kind == "u" else -np.inf)))

    def evaluate(self, text):
        """Returns NumPy's value or exception, or `None` if a cast of NaN or a large float to an integer has an undefined result."""
        with warnings.catch_warnings(record=True) as caught, np.errstate(invalid="warn"):
            warnings.simplefilter("always")
            try:
                result = self.evaluator.run(text)
            except Exception as error:  # noqa: BLE001 -- errors of NumPy are results
                return None if "negative integer powers" in str(error) else error
        return None if any("invalid value encountered in cast" in str(warning.message) for warning in caught) else result

    def scale(self, result, first):
        """Returns the norm of the result or of the first argument, the larger, for each element."""
        arrays = [result, *(self.evaluate(first) if first.startswith("[") else [self.evaluate(first)])]
        magnitudes = [np.abs(np.asarray(a).astype(np.clongdouble)) for a in arrays]
        return np.full(result.shape, float(max(np.sqrt(np.sum(m[np.isfinite(m)] ** 2)) for m in magnitudes)))
