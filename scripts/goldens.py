#!/usr/bin/env python3
"""Generates the expected results (goldens) of tests/conformance with NumPy 2.

    python3 -m venv .venv && .venv/bin/pip install -r scripts/goldens-requirements.txt
    .venv/bin/python scripts/goldens.py            # writes tests/conformance/goldens and the promotion table
    .venv/bin/python scripts/goldens.py --check    # compares instead of writing; exit code 1 if anything differs
    .venv/bin/python scripts/goldens.py --show 'sum(a_f32)'

Case files, tests/conformance/cases/FAMILY.txt, hold one expression per line, which NumPy evaluates here and
`cuprum::eval` in the Rust program. Statements may precede it, separated by `;`. Inputs are read-only: assign to copies.
Lines that start with a colon set rules for the following lines:

    :section TITLE       resets all rules
    :for d in floats     makes one case per item: `{d}` is replaced by it, `{D}` by the full name of the dtype.
                         Several loops make all combinations. LISTS defines names for lists of dtypes
    :ulp N               results may differ from NumPy's by N units in the last place (the default is 0)
    :wide N              as ulp, with a golden in extended precision, because NumPy's functions err by up to 4 units
    :sum N               as wide; the error may be one unit plus N * epsilon * sum of magnitudes
    :anyzero             the sign of zeros is not compared
    :raises              NumPy raises an error, and cuprum must return one
    :unraised            cuprum returns a result where NumPy raises: used with `=>`

`EXPRESSION => REFERENCE` evaluates the first with cuprum and the second with NumPy: for functions that NumPy lacks,
and for deliberate differences, which cases/differences.txt lists with their reasons.

Files: FAMILY.cases has a line per expanded case (expression, rule, dtype, shape, separated by tabs), FAMILY.npz
one array per dtype with the concatenated results. bfloat16 is stored as uint16 under a name ending in `|bf16`.
"""

import argparse
import ast
import io
import itertools
import pathlib
import sys
import warnings
import zipfile

import ml_dtypes
import numpy as np
import scipy.special

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import goldens_inputs  # noqa: E402
import goldens_reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/conformance/cases"
GOLDENS = ROOT / "tests/conformance/goldens"
PROMOTION = ROOT / "crates/core/tests/dtypes/promotion.txt"

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = goldens_inputs.DTYPES
LISTS = goldens_inputs.LISTS


# ---- case files ----


class Rules:
    """The rules in force, set by lines that start with a colon."""

    def __init__(self):
        self.loops, self.kind, self.amount = [], "ulp", 0
        self.anyzero = self.raises = False

    def read(self, line):
        word, _, rest = line[1:].partition(" ")
        if word == "section":
            self.__init__()
        elif word == "for":
            name, _, items = rest.partition(" in ")
            if not items:
                raise SystemExit(f"no list in '{line}'")
            values = [v for item in items.split() for v in LISTS.get(item, [item])]
            self.loops = [loop for loop in self.loops if loop[0] != name] + [(name, values)]
        elif word in ("ulp", "wide", "sum"):
            self.kind, self.amount = word, float(rest)
        elif word in ("anyzero", "raises"):
            setattr(self, word, True)
        else:
            raise SystemExit(f"unknown rule '{line}'")

    def text(self):
        kind = "sum" if self.kind == "sum" else "ulp"
        return f"{kind} {self.amount:g}" + (" anyzero" if self.anyzero else "")


def expand(line, loops):
    """Yields the line for every combination of the loops that it uses."""
    used = [loop for loop in loops if f"{{{loop[0]}}}" in line or f"{{{loop[0].upper()}}}" in line]
    for combination in itertools.product(*(values for _, values in used)):
        text = line
        for (name, _), value in zip(used, combination):
            text = text.replace(f"{{{name}}}", value)
            if value in DTYPES:
                text = text.replace(f"{{{name.upper()}}}", DTYPES[value].name)
        yield text


def read_cases(path):
    """Yields position, expression, reference and rules of every case."""
    rules = Rules()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if line.startswith(":"):
            rules.read(line)
        elif line and not line.startswith("#"):
            for text in expand(line, rules.loops):
                expression, _, reference = text.partition(" => ")
                yield f"{path.name}:{number}", expression.strip(), reference.strip(), rules


# ---- evaluation ----


class Evaluator:
    """Evaluates expressions with NumPy."""

    def __init__(self, inputs):
        self.names = {"np": np, **vars(np), "special": scipy.special, **goldens_reference.FUNCTIONS, **inputs}

    def run(self, text):
        """Returns the value of the last statement. Inputs are read-only: statements write to copies of them."""
        *statements, last = ast.parse(text).body
        names = dict(self.names)
        exec(compile(ast.Module(statements, []), text, "exec"), names)  # noqa: S102
        return eval(compile(ast.Expression(last.value), text, "eval"), names)  # noqa: S307

    def array(self, text):
        """Returns the value as an array. A tuple of several shapes is no array, which is not an exception of the function."""
        value = self.run(text)
        try:
            return np.asarray(value)
        except ValueError as error:
            raise SystemExit(f"'{text}' gives a {type(value).__name__} that is no array: {error}") from error

    def native(self, text):
        """Returns the result of NumPy. bfloat16 follows NumPy's rules for float16."""
        if "bf16" not in text and "bfloat16" not in text:
            return self.array(text)
        mixed = "_f16" in text or "'float16'" in text
        wanted = None if mixed else self.like_float16(text)
        try:
            result = self.array(text)
        except TypeError:
            if wanted is None:
                raise
            result = None
        if wanted is None or (result is not None and result.dtype == wanted):
            return result
        # ml_dtypes lacks the function or returns another dtype (float32 for a Python float operand). An operation in
        # float32 with rounded scalars and a rounded result is equivalent.
        wider = np.asarray(self.run(self.scalars_in_bf16(text.replace("_bf16", "_bf16w").replace("'bfloat16'", "'float32'"))))
        return wider.astype(wanted)

    def like_float16(self, text):
        """Returns the dtype of the expression if bfloat16 promotes like float16."""
        dtype = np.asarray(self.run(text.replace("_bf16", "_bf16h").replace("'bfloat16'", "'float16'"))).dtype
        return BF16 if dtype == np.float16 else dtype

    @staticmethod
    def scalars_in_bf16(text):
        class Round(ast.NodeTransformer):
            def visit_Constant(self, node):
                if isinstance(node.value, float):
                    return ast.copy_location(ast.Constant(float(BF16.type(node.value))), node)
                return node

        return ast.unparse(Round().visit(ast.parse(text)))

    def wide(self, text, scale=False):
        """Returns the outermost operation in extended precision, on arguments computed by NumPy. With `scale`, on the
        magnitudes of the arguments."""
        native = self.native(text)
        node, trailing = ast.parse(text, mode="eval").body, []
        while isinstance(node, ast.Subscript):
            trailing.append(node.slice)
            node = node.value
        evaluate = lambda n: self.run(ast.unparse(n))  # noqa: E731
        keywords = {}
        if isinstance(node, ast.BinOp):
            function = goldens_reference.OPERATORS[type(node.op)]
            args = [evaluate(node.left), evaluate(node.right)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in goldens_reference.LINALG:
            function = goldens_reference.LINALG[ast.unparse(node.func)]
            args = list(map(evaluate, node.args))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("fft."):
            function = evaluate(node.func)
            args = list(map(evaluate, node.args))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            function = getattr(np, node.func.attr)
            args = [evaluate(node.func.value), *map(evaluate, node.args)]
        elif isinstance(node, ast.Call):
            function = self.names[node.func.id]
            args = list(map(evaluate, node.args))
        else:
            raise SystemExit(f"'{text}' has no outermost function to compute in more precision")
        if isinstance(node, ast.Call):
            keywords = {k.arg: evaluate(k.value) for k in node.keywords}
        if hasattr(function, "scaled"):
            result = function.scaled(*args, **keywords) if scale else function(*args, **keywords, wide=True)
        else:
            dtype = keywords.pop("dtype", None)
            if dtype is not None:
                args[0] = np.asarray(args[0]).astype(dtype)
            result = function(*[widen(a, native.dtype, scale) for a in args], **keywords)
        for index in reversed(trailing):
            result = eval(ast.unparse(ast.Subscript(ast.Name("r"), index)), {"r": result})  # noqa: S307
        return np.asarray(result), native.dtype


def real_of(dtype):
    return np.zeros(0, dtype).real.dtype if dtype.kind == "c" else dtype


def widen(value, native, magnitudes):
    """Returns an argument in extended precision. Python floats are first rounded to the dtype of the operation."""
    if isinstance(value, (list, tuple)):
        return type(value)(widen(v, native, magnitudes) for v in value)
    if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        rounding = native if native.kind in "fcV" or native == BF16 else np.dtype(float)
        value = np.asarray(value).astype(rounding if isinstance(value, complex) else real_of(rounding))
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    value = np.asarray(value)
    if value.dtype == bool and native.kind in "fcV":
        value = value.astype(np.float16)
    if value.dtype.kind in "iu" and native.kind in "fcV":
        value = value.astype(np.float64)
    wide = {"float64": np.longdouble, "complex64": np.complex128, "complex128": np.clongdouble}
    if value.dtype.kind in "fcV":
        value = value.astype(wide.get(value.dtype.name, np.float64))
    return np.abs(value) if magnitudes else value


# ---- goldens ----


class Goldens:
    """The results of a family, grouped by dtype."""

    def __init__(self):
        self.lines, self.results, self.scales = [], {}, []

    def add(self, expression, rule, result, scale):
        if result.dtype.name not in {d.name for d in DTYPES.values()}:
            raise SystemExit(f"'{expression}' gives {result.dtype}, which cuprum does not have")
        shape = ",".join(map(str, result.shape)) or "-"
        self.lines.append(f"{expression}\t{rule}\t{result.dtype.name}\t{shape}")
        self.results.setdefault(result.dtype.name, []).append(np.ascontiguousarray(result).ravel())
        if scale is not None:
            self.scales.append(np.broadcast_to(scale, result.shape).astype(np.float64).ravel())

    def members(self):
        members = {name: np.concatenate(parts) for name, parts in sorted(self.results.items())}
        if self.scales:
            members["scales"] = np.concatenate(self.scales)
        return members


def family(path, evaluator):
    goldens, seen, failures = Goldens(), {}, []
    for place, expression, reference, rules in read_cases(path):
        text = reference or expression
        asked = (text, rules.text(), rules.raises)
        if expression in seen:  # generated by another loop
            if seen[expression] != asked:
                failures.append(f"{place}: '{expression}' is there twice, with other rules")
            continue
        seen[expression] = asked
        try:
            scale = None
            if text == "raises":
                raise goldens_reference.Refused
            if rules.kind == "ulp":
                result = evaluator.native(text)
            else:
                result, dtype = evaluator.wide(text)
                result = result.astype(dtype)
                scale = evaluator.wide(text, scale=True)[0] if rules.kind == "sum" else None
        except Exception as error:  # noqa: BLE001 -- errors of NumPy are part of the goldens
            if rules.raises or text == "raises":
                goldens.lines.append(f"{expression}\traises {type(error).__name__}")
            else:
                failures.append(f"{place}: '{text}': {type(error).__name__}: {error}")
            continue
        if rules.raises:
            failures.append(f"{place}: '{text}' raises nothing")
        goldens.add(expression, rules.text(), result, scale)
    if failures:
        raise SystemExit("\n".join(failures[:40] + [f"{len(failures)} bad cases"]))
    return goldens


def npz(members):
    """Returns the bytes of a reproducible npz file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in members.items():
            if array.dtype == BF16:
                name, array = name + "|bf16", array.view(np.uint16)
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(array))
            info = zipfile.ZipInfo(name + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue())
    return out.getvalue()


# ---- promotion ----


def promotion():
    """Returns the promotion table, from the dtypes of `add`. For bfloat16 it is more exact than `promote_types`."""
    lines = [
        "# Generated by scripts/goldens.py: the dtype of `a + b` for arrays of one element, and with Python scalars.",
        "# bfloat16 follows ml_dtypes, except that Python floats are weak, as for NumPy's own dtypes. ml_dtypes promotes",
        "# them to float32.",
    ]
    one = {name: np.ones(1, dtype) for name, dtype in DTYPES.items()}
    for x, y in itertools.product(DTYPES, DTYPES):
        lines.append(f"{DTYPES[x].name} {DTYPES[y].name} {(one[x] + one[y]).dtype.name}")
    for x in DTYPES:
        for name, scalar in {"bool": True, "int": 1, "float": 1.0, "complex": 1j}.items():
            dtype = DTYPES[x] if x == "bf16" and name == "float" else (one[x] + scalar).dtype
            lines.append(f"{DTYPES[x].name} Python-{name} {dtype.name}")
    return "\n".join(lines) + "\n"


def outputs():
    """Returns the path and contents of every generated file."""
    inputs = goldens_inputs.make()
    for array in inputs.values():
        array.flags.writeable = False
    evaluator = Evaluator({**inputs, **goldens_inputs.stand_ins(inputs)})
    yield GOLDENS / "inputs.npz", npz(inputs)
    yield PROMOTION, promotion().encode()
    for path in sorted(CASES.glob("*.txt")):
        goldens = family(path, evaluator)
        yield GOLDENS / f"{path.stem}.cases", ("\n".join(goldens.lines) + "\n").encode()
        yield GOLDENS / f"{path.stem}.npz", npz(goldens.members())
        print(f"{path.stem}: {len(goldens.lines)} cases", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the existing files")
    parser.add_argument("--show", metavar="EXPRESSION", help="print the result of NumPy")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        if args.show:
            inputs = goldens_inputs.make()
            result = Evaluator({**inputs, **goldens_inputs.stand_ins(inputs)}).native(args.show)
            print(result.dtype, result.shape, result, sep="\n")
            return 0
        different = 0
        for path, contents in outputs():
            if not args.check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(contents)
            elif not path.exists() or path.read_bytes() != contents:
                print(f"{path.relative_to(ROOT)} differs from the generated contents", file=sys.stderr)
                different += 1
        return min(different, 1)


if __name__ == "__main__":
    raise SystemExit(main())
