#!/usr/bin/env python3
"""Compares generated expressions with the installed NumPy: values, dtypes, shapes, and whether they raise.

    python3 scripts/differential.py --count 2000 --seed 1 --out target/differential
    cargo test --test conformance -- --cases target/differential --quick

The first command writes expressions over random arrays, with NumPy's results, in the format of tests/conformance/goldens.
The second evaluates them with cuprum. Without `--quick` it does so under every setting: devices, orders of accelerators,
fusion, threads. `--only NAME` restricts the functions.

On a machine without the sources' build, such as from the bundle of scripts/bundle.sh, `--binary` runs the conformance program on the
expressions, with the arguments after `--`. The folder of expressions is all that the program needs, so it may come from another machine:

    python3 scripts/differential.py --count 10000 --out cases --binary ./conformance -- --device cuda --jobs 8
    ./conformance --cases cases --device cuda --jobs 8

tests/differential/*.txt hold the templates, one a line. A template is an expression with fields in braces:

    {V}              a field of FIELDS or of a line `:let`, such as an array of one axis
    {a|b|c}          one of these texts; it may contain fields
    :ulp N           results of the following lines may differ by N units in the last place (0 at the start of a file)
    :sum N           the same, in units of the result for the magnitudes of the arguments, for sums that may cancel
    :let NAME a|b    defines a field for the file

`--kind signatures` calls the declared functions instead, with values for all parameters: see differential_signatures.py.
`--kind indices` and `--kind programs` use the generators of differential_programs.py.

Elements of the arrays are multiples of 1/4, so that sums are exact in most dtypes.
"""

import argparse
import functools
import itertools
import pathlib
import random
import re
import subprocess
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import differential_programs as programs  # noqa: E402
import differential_signatures  # noqa: E402
import goldens  # noqa: E402

TEMPLATES = goldens.ROOT / "tests/differential"
DTYPES = {name: dtype for name, dtype in goldens.DTYPES.items() if name != "bf16"}
SHAPES = {"v": (7,), "w": (12,), "o": (1,), "m": (4, 5), "n": (5, 3), "c": (2, 3, 4), "z": (), "e": (0, 3), "f": (0,), "s": (3, 3)}


def make_inputs(seed, shapes):
    """Returns the arrays, named `{kind}_{dtype}`. Kinds `g` and `h` hold NaN and infinities."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for name, dtype in DTYPES.items():
        for kind, shape in shapes.items():
            quarters = rng.integers(-40, 41, shape)
            if dtype.kind == "b":
                values = quarters > 0
            elif dtype.kind in "iu":
                values = abs(quarters // 4) if dtype.kind == "u" else quarters // 4
            else:
                values = quarters / 4
                if dtype.kind == "c":
                    values = values + 1j * rng.integers(-40, 41, shape) / 4
            inputs[f"{kind}_{name}"] = np.asarray(values).astype(dtype)
        if dtype.kind == "f":
            for kind, shape in {"g": (9,), "h": (4, 3)}.items():
                values = rng.integers(-40, 41, shape) / 4
                values.flat[rng.integers(0, values.size, 2)] = np.nan
                values.flat[rng.integers(0, values.size, 1)] = rng.choice([np.inf, -np.inf])
                inputs[f"{kind}_{name}"] = values.astype(dtype)
    return inputs


FIELDS = {
    "D": "|".join(DTYPES),
    "F": "f16|f32|f64",
    "R": "i8|i16|i32|i64|u8|u32|f16|f32|f64|f64",
    "I": "i8|i16|i32|i64|u8|u16|u32|u64",
    "dtype": "|".join(f"'{d.name}'" for d in DTYPES.values()),
    "V": "v_{D}|w_{D}|w_{D}[::-1]|w_{D}[1::2]|m_{D}[:, 1]|m_{D}[2]|v_{D}[:3]",
    "VR": "v_{R}|w_{R}|w_{R}[::-1]|w_{R}[1::2]|m_{R}[:, 1]|v_{R}[:3]|v_{R}[:1]",
    "M": "m_{D}|n_{D}|m_{D}.T|n_{D}[::2]|m_{D}[:, ::-1]|s_{D}",
    "MR": "m_{R}|n_{R}|m_{R}.T|n_{R}[::2]|m_{R}[:, ::-1]|s_{R}",
    "C": "c_{D}|c_{D}.T|c_{D}[:, ::-1]|c_{D}.swapaxes(0, 1)|c_{D}[..., ::2]",
    "E": "e_{D}|f_{D}|m_{D}[:0]|c_{D}[:, :0]",
    "A": "{V}|{V}|{M}|{M}|{C}|z_{D}|{E}|o_{D}|broadcast_to(v_{D}, (2, 7))",
    "AR": "{VR}|{VR}|{MR}|{MR}|c_{R}|c_{R}.T|z_{R}|e_{R}|f_{R}|o_{R}",
    "N": "g_{F}|h_{F}|h_{F}.T|h_{F}[::-1]|g_{F}[2:]",
    "axis": "0|1|-1|-2|2|0|-1|None",
    "axis1": "0|1|-1|-2|2|0|-1|5",
    "k": "0|1|-1|2|-2|3|7|-9",
    "n": "0|1|2|3|5|-1",
    "bool": "True|False",
}


def fill(template, fields, rng):
    """Replaces the fields of a template, the innermost first."""
    while match := re.search(r"\{([^{}]*)\}", template):
        text = match.group(1)
        choice = rng.choice((fields[text] if text in fields else text).split("|")) if "|" in text or text in fields else None
        if choice is None:
            raise SystemExit(f"unknown field {{{text}}} in '{template}'")
        if "{" in choice and text in fields:
            choice = fill(choice, fields, rng)
        template = template[: match.start()] + choice + template[match.end() :]
    return template


def read_templates(only):
    """Yields function, template, tolerance and fields."""
    for path in sorted(TEMPLATES.glob("*.txt")):
        fields, rule = dict(FIELDS), "ulp 0"
        for line in path.read_text().splitlines():
            line = line.strip()
            if line.startswith(":let "):
                _, name, text = line.split(" ", 2)
                fields[name] = text
            elif line.startswith((":ulp ", ":sum ")):
                rule = f"{line[1:4]} {float(line[5:]):g}"
            elif line and not line.startswith("#"):
                name = line.split("(")[0]
                if not only or name in only:
                    yield name, line, rule, dict(fields)


def template_expressions(templates, rng):
    """Yields expressions and rules."""
    for _, template, rule, fields in itertools.cycle(templates):
        yield fill(template, fields, rng), rule


def evaluate(run, text):
    """Returns NumPy's result, or the exception."""
    try:
        result = np.asarray(run(text))
        if result.dtype.name not in {d.name for d in DTYPES.values()}:
            return None
        return result
    except Exception as error:  # noqa: BLE001 -- errors of NumPy are results
        return error


def generate(args, inputs, rng):
    """Yields expressions with tolerance, NumPy's result or exception, and the scale of the tolerance. May add inputs."""
    if args.kind == "signatures":
        inputs |= differential_signatures.make_inputs(args.seed, DTYPES)
        for array in inputs.values():
            array.flags.writeable = False
        generator = differential_signatures.Generator(inputs, FIELDS, fill, rng, args.only)
        for function in itertools.cycle(generator.cycle):
            text, rule, result, scale = generator.call(function)
            known = result is None or isinstance(result, Exception) or result.dtype.name in {d.name for d in DTYPES.values()}
            yield text, rule, result if known else None, scale
    evaluator = goldens.Evaluator(inputs)
    if args.kind == "templates":
        run, expressions = evaluator.run, template_expressions(list(read_templates(args.only)), rng)
    else:
        run, expressions = functools.partial(programs.run, evaluator.names), programs.expressions(args.kind, evaluator.names, rng)
    for text, rule in expressions:
        result = evaluate(run, text)
        has_scale = rule.startswith("sum") and isinstance(result, np.ndarray)
        yield text, rule, result, evaluator.wide(text, scale=True)[0] if has_scale else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="number of expressions")
    kinds = ["templates", "signatures", "indices", "programs"]
    parser.add_argument("--kind", choices=kinds, default="templates", help="source of the expressions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a function; may be repeated")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the expressions and results")
    parser.add_argument("--binary", help="conformance program to run on the expressions")
    parser.add_argument("arguments", nargs="*", help="arguments of the program, after `--`")
    args = parser.parse_args()
    if args.arguments and not args.binary:
        parser.error("arguments of a program without --binary")
    rng = random.Random(args.seed)
    inputs = make_inputs(args.seed, programs.SHAPES if args.kind in ("indices", "programs") else SHAPES)
    results, seen, raised = goldens.Goldens(), set(), 0
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        for text, rule, result, scale in itertools.islice(generate(args, inputs, rng), args.count):
            if text in seen:
                continue
            seen.add(text)
            if isinstance(result, Exception):
                raised += 1
                # The signatures do not say which kind of error a wrong argument is.
                results.lines.append(f"{text}\traises {'Refused' if args.kind == 'signatures' else type(result).__name__}")
            elif result is not None:
                results.add(text, rule, result, scale)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "generated.cases").write_text("\n".join(results.lines) + "\n")
    (args.out / "generated.npz").write_bytes(goldens.npz(results.members()))
    (args.out / "inputs.npz").write_bytes(goldens.npz(inputs))
    print(f"{len(results.lines)} expressions, of which NumPy raises for {raised}", flush=True)
    if args.binary:
        sys.exit(subprocess.run([args.binary, "--cases", str(args.out), *args.arguments]).returncode)


if __name__ == "__main__":
    main()
