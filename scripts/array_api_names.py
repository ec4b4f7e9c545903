#!/usr/bin/env python3
"""Writes tests/functions/array_api.txt: the names of the Python array API standard, version 2025.12, one per line.

    git clone https://github.com/data-apis/array-api
    python3 scripts/array_api_names.py array-api/src/array_api_stubs/_2025_12

A line is `function path(parameters)`, `attribute name`, `method name`, `operator name`, `constant name` or `dtype name`. A test looks each
of them up in `eval` and in Rust.
"""
import ast
import pathlib
import sys

NAMESPACES = {"linalg": "linalg.", "fft": "fft."}
# Inspection is a class of five methods in Python, and no namespace of functions.
SKIPPED = {"info", "_types", "__init__"}
DTYPES = ["bool", "complex128", "complex64", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32", "uint64", "uint8"]


def parameters(function):
    """The parameters without annotations."""
    every = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    for argument in every + [function.args.vararg] * bool(function.args.vararg):
        argument.annotation = None
    return ast.unparse(function.args)


def object_member(member):
    """The line of a member of the array object."""
    if any(isinstance(d, ast.Name) and d.id == "property" for d in member.decorator_list):
        return f"attribute {member.name}"
    return f"{'operator' if member.name.startswith('__') else 'method'} {member.name}"


lines = {f"dtype {name}" for name in DTYPES}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    if path.stem in SKIPPED:
        continue
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            lines.add(f"function {NAMESPACES.get(path.stem, '')}{node.name}({parameters(node)})")
        elif isinstance(node, ast.ClassDef) and path.stem == "array_object":
            members = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name != "__init__"]
            lines |= {object_member(member) for member in members}
        elif isinstance(node, ast.Assign) and path.stem == "constants":
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            lines |= {f"constant {name}" for name in names if name != "__all__"}
target = pathlib.Path(__file__).parent.parent / "tests/functions/array_api.txt"
target.write_text("".join(f"{line}\n" for line in sorted(lines)))
print(f"{target}: {len(lines)} names")
