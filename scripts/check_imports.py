#!/usr/bin/env python3
"""Fails on a circle of imports over more than two files of one crate, unless scripts/import_circles.txt lists it.

    python3 scripts/check_imports.py           # checks
    python3 scripts/check_imports.py --list    # prints the circles in the format of the list

An import is a `use` or a path in code that begins with `crate`, `super`, `self` or the name of a child module. A name resolves
through re-exports to the file that defines it; a re-export itself is not an import. Modules of tests do not count.

The list may only shrink: a circle that is gone or smaller than listed fails too, until the list says so.

A crate whose lib.rs has the comment "Layers, lowest first" lists its modules in that order: no import may point to a later one.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/import_circles.txt"
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|(?:\bb)?"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\'', re.S)
TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ ")
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))? )?use ([^;]+);", re.M)
PATH = re.compile(r"(?<![\w:$])((?:crate|super|self|[a-z]\w*)(?:::\w+)+)")
ITEM = r"\b(?:fn|struct|enum|union|trait|const|static|type|macro_rules!)\s+(?:mut\s+)?"


def code(path):
    """The file without comments, literals and modules of tests."""
    text = COMMENT_OR_TEXT.sub(" ", path.read_text())
    while match := TESTS.search(text):
        end = match.end()
        if text[end : end + 1] == "{":
            depth = 0
            for end in range(end, len(text)):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                if depth == 0:
                    break
        text = text[: match.start()] + text[end + 1 :]
    return text


def leaves(tree, prefix=()):
    """The (path, name) pairs of a use tree."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    path = prefix + tuple(part.strip() for part in head.split("::") if part.strip())
    if not brace:
        *path, last = path
        last, _, name = last.partition(" as ")
        if last == "self":
            last = path.pop()
        yield (*path, last), (name.strip() or last)
        return
    depth, start = 0, 0
    inner = rest.rstrip()[:-1] + ","
    for at, char in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if inner[start:at].strip():
                yield from leaves(inner[start:at], path)
            start = at + 1


class Crate:
    def __init__(self, source):
        self.files, self.text, self.uses, self.macros = {}, {}, {}, {}
        for file in sorted(source.rglob("*.rs")):
            parts = list(file.relative_to(source).with_suffix("").parts)
            if parts[-1] in ("mod", "lib", "main"):
                parts.pop()
            if tuple(parts) in self.files:
                continue  # `main.rs` beside `lib.rs`
            self.files[tuple(parts)] = file
        for module, file in self.files.items():
            self.text[module] = code(file)
            self.uses[module] = [(bool(pub), leaf) for pub, tree in USE.findall(self.text[module]) for leaf in leaves(tree)]
            self.macros.update((name, module) for name in re.findall(r"#\[macro_export\]\s*macro_rules!\s+(\w+)", self.text[module]))

    def start(self, module, path):
        """The module and the rest of a path, or None for a path of another crate."""
        first, *rest = path
        if first == "crate":
            return (), rest
        if first == "self":
            return module, rest
        if first == "super":
            return self.start(module[:-1], ("self", *rest)) if rest[:1] != ["super"] else self.start(module[:-1], rest)
        return (module, list(path)) if (*module, first) in self.files else None

    def resolve(self, module, path, seen=()):
        """The module whose file defines a path, or None for another crate."""
        if (module, tuple(path)) in seen:
            return None
        seen = (*seen, (module, tuple(path)))
        begun = self.start(module, path)
        if begun is None:
            return None
        at, rest = begun
        while rest and (*at, rest[0]) in self.files:
            at, rest = (*at, rest[0]), rest[1:]
        if not rest or rest[0] == "*":
            return at
        name = rest[0]
        for _, (target, alias) in self.uses[at]:
            if alias == name:
                return self.resolve(at, (*target, *rest[1:]), seen)
        if at == () and name in self.macros:
            return self.macros[name]
        if not re.search(ITEM + name + r"\b", self.text[at]):
            for public, (target, alias) in self.uses[at]:
                if public and alias == "*":
                    found = self.resolve(at, (*target[:-1], name), seen)
                    if found and re.search(ITEM + name + r"\b", self.text[found]):
                        return found
        return at

    def imports(self, module):
        """Modules that a module's file imports from."""
        paths = [target for public, (target, _) in self.uses[module] if not public]
        paths += [tuple(path.split("::")) for path in PATH.findall(USE.sub("", self.text[module]))]
        found = {self.resolve(module, path) for path in paths}
        return {target for target in found if target is not None and target != module}


def circles(edges):
    """Strongly connected components of more than two modules (Tarjan)."""
    sys.setrecursionlimit(10_000)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges[node]):
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 2:
                found.append(stack[at:])
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def upward(crate, edges):
    """Imports from a layer to a later one, as pairs of modules."""
    _, listed, modules = crate.files[()].read_text().partition("// Layers, lowest first")
    order = re.findall(r"^(?:pub(?:\([^)]*\))? )?mod (\w+);", modules, re.M) if listed else []
    rank = {name: n for n, name in enumerate(order)}
    for module, targets in edges.items():
        for target in targets:
            if module and target and rank.get(module[0], 0) < rank.get(target[0], 0):
                yield module, target


# Without the comment, a crate is not checked, so that a rewording would end the check in silence.
LAYERED = ["core"]
for name in LAYERED:
    if "// Layers, lowest first" not in (ROOT / "crates" / name / "src/lib.rs").read_text():
        sys.exit(f"crates/{name}/src/lib.rs: the comment 'Layers, lowest first' is missing")
sources = [ROOT / "src", *sorted((ROOT / "crates").glob("*/src"))]
found, wrong = set(), []
for source in sources:
    crate = Crate(source)
    edges = {module: crate.imports(module) for module in crate.files}
    if sys.argv[1:2] == ["--edges"]:
        for module, targets in edges.items():
            print(crate.files[module].relative_to(ROOT), "->", *sorted("/".join(t) or "." for t in targets))
    wrong += [" -> ".join(str(crate.files[m].relative_to(ROOT)) for m in pair) for pair in upward(crate, edges)]
    found |= {frozenset(str(crate.files[m].relative_to(ROOT)) for m in circle) for circle in circles(edges)}

if sys.argv[1:2] == ["--list"]:
    print("# Circles of imports that scripts/check_imports.py accepts, one a paragraph. The list may only shrink.\n")
    print("\n\n".join("\n".join(sorted(circle)) for circle in sorted(found, key=sorted)))
    sys.exit()
listed = re.sub(r"^#.*\n", "", LIST.read_text(), flags=re.M) if LIST.exists() else ""
known = {frozenset(paragraph.split()) for paragraph in listed.split("\n\n") if paragraph.split()}
for circle in sorted(found - known, key=sorted):
    grown = [k for k in known if k & circle]
    smaller = any(circle < k for k in grown)
    verb = "smaller than listed: shorten scripts/import_circles.txt" if smaller else "not listed"
    print(f"circle of imports over {len(circle)} files, {verb}:", *sorted(circle), sep="\n  ")
for circle in sorted(known - found, key=sorted):
    if not any(circle & f for f in found):
        print("circle of imports that is gone: remove it from scripts/import_circles.txt:", *sorted(circle), sep="\n  ")
for pair in wrong:
    print("import from a layer to a later one:", pair)
if found == known and not wrong:
    print(f"{len(sources)} crates checked, {len(known)} listed circles")
sys.exit(found != known or bool(wrong))
