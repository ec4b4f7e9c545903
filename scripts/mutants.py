#!/usr/bin/env python3
"""Mutation tests of core's plans, layouts, dtypes and dispatch.

    pip install tree-sitter tree-sitter-rust && cargo install --locked cargo-mutants
    scripts/mutants.py COPY [--const] [--shard K/N] [--only TEXT]

`cargo mutants --list` names the mutants. cargo-mutants itself builds all crates once per mutant, in two minutes each. This script builds once:
it writes all mutants into the sources of COPY, a second worktree of this repository, where the environment variable `CUPRUM_MUTANT`
selects one when a test program starts. Each mutant then takes as long as its tests.

A mutant in a `const fn` cannot read the environment. With `--const`, these are built one by one, with the tests that need no backend.

Prints each mutant that no test notices, and a table by file. `caught` counts failures and timeouts.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import tree_sitter
import tree_sitter_rust

FILES = ["op/plan.rs", "op/plan/**", "types/layout.rs", "types/dtype.rs", "dispatch/**"]
# The programs, in this order. The first failure decides.
PROGRAMS = (
    "cuprum_core no_backend dtypes arrays assignment chains memory registration chain launch_caches row_programs rust_api functions"
    " properties conformance"
).split()
SWITCH = """
#[doc(hidden)]
pub(crate) mod mutants {
    pub(crate) fn on(mutant: u32) -> bool {
        static SELECTED: std::sync::LazyLock<Option<u32>> =
            std::sync::LazyLock::new(|| std::env::var("CUPRUM_MUTANT").ok()?.parse().ok());
        *SELECTED == Some(mutant)
    }
}
"""
COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


def on(mutant):
    return f"crate::mutants::on({mutant['id']})"


def chain(mutants, changed, unchanged):
    """An expression that is `changed(mutant)` if the mutant is selected, and `unchanged` otherwise."""
    return "".join(f"if {on(m)} {{ {changed(m)} }} else " for m in mutants) + f"{{ {unchanged} }}"


class Writer:
    """Writes the mutants of one file into its text."""

    def __init__(self, source, mutants):
        self.source, self.at = source, collections.defaultdict(list)
        self.written = set()
        for mutant in mutants:
            start = mutant["span"]["start"]
            self.at[start["line"] - 1, start["column"] - 1].append(mutant)

    def mutants_at(self, node, genre):
        return [m for m in self.at.get((node.start_point[0], node.start_point[1]), []) if m["genre"] == genre]

    def mark(self, mutants, text):
        """`text` between comments with the mutants' numbers, by which errors of the compiler are assigned."""
        self.written.update(m["id"] for m in mutants)
        numbers = ",".join(str(m["id"]) for m in mutants)
        return f"/*<{numbers}*/{text}/*{numbers}>*/"

    def children(self, node, replaced=None):
        """The text of a node, with the mutants of its children."""
        replaced = replaced or {}
        text, position = b"", node.start_byte
        for child in node.children:
            text += self.source[position : child.start_byte]
            text += (replaced[child.id] if child.id in replaced else self.text(child)).encode()
            position = child.end_byte
        return (text + self.source[position : node.end_byte]).decode()

    def text(self, node):
        if node.type in ("binary_expression", "compound_assignment_expr"):
            operator = node.child_by_field_name("operator")
            mutants = self.mutants_at(operator, "BinaryOperator")
            if mutants:
                return self.operator(node, operator.text.decode(), mutants)
        elif node.type == "unary_expression":
            mutants = self.mutants_at(node, "UnaryOperator")
            if mutants:
                sign, operand = node.children[0].text.decode(), self.text(node.children[1])
                return self.mark(mutants, f"(match ({operand}) {{ mutated => {chain(mutants, lambda m: 'mutated', sign + 'mutated')} }})")
        elif node.type == "match_arm":
            return self.arm(node)
        elif node.type == "field_initializer":
            mutants = self.mutants_at(node, "StructField")
            bases = [c for c in node.parent.children if c.type == "base_field_initializer"]
            value = node.child_by_field_name("value")
            if mutants and bases and value is not None:
                name = node.child_by_field_name("field") or node.children[0]
                structure = node.parent.parent.child_by_field_name("name").text.decode()
                fallback = f"({structure} {{ {bases[0].text.decode()} }}).{name.text.decode()}"
                return f"{name.text.decode()}: " + self.mark(mutants, chain(mutants, lambda m: fallback, self.text(value)))
        elif node.type == "function_item":
            body = node.child_by_field_name("body")
            statements = [] if body is None else [c for c in body.named_children if "comment" not in c.type]
            inner = statements[0] if statements else None
            result = node.child_by_field_name("return_type")
            # The values of a function that returns `impl Trait` must be of one type.
            has_one_type = inner is not None and not (result is not None and result.text.startswith(b"impl "))
            mutants = self.mutants_at(inner, "FnValue") if has_one_type else []
            if mutants:
                text = self.children(body)
                early = " ".join(f"if {on(m)} {{ return {m['replacement']}; }}" for m in mutants)
                return self.children(node, {body.id: "{" + self.mark(mutants, early) + text[1:]})
        return self.children(node) if node.children else node.text.decode()

    def operator(self, node, operator, mutants):
        left, right = self.text(node.child_by_field_name("left")), self.text(node.child_by_field_name("right"))
        def choice(left, right):
            return chain(mutants, lambda m: f"{left} {m['replacement']} {right}", f"{left} {operator} {right}")

        if node.type == "compound_assignment_expr":
            return self.mark(mutants, choice(left, right))
        if operator in ("&&", "||"):
            return self.mark(mutants, f"(match ({left}) {{ mutated_left => {choice('mutated_left', f'({right})')} }})")
        reference = "&" if operator in COMPARISONS else ""
        return self.mark(mutants, f"(match ({reference}({left}), {reference}({right})) {{ (mutated_left, mutated_right) => {choice('mutated_left', 'mutated_right')} }})")

    def arm(self, node):
        pattern = node.child_by_field_name("pattern")
        guard = pattern.child_by_field_name("condition")
        # Without its last arm, a match is not exhaustive.
        deleted = self.mutants_at(node, "MatchArm") if node.next_named_sibling else []
        guarded = self.mutants_at(guard, "MatchArmGuard") if guard is not None else []
        if not deleted and not guarded:
            return self.children(node)
        condition = ""
        if guard is not None:
            condition = self.text(guard)
            condition = self.mark(guarded, f"({chain(guarded, lambda m: m['replacement'], condition)})") if guarded else f"({condition})"
        if deleted:
            selected = "".join(f"!{on(m)}" for m in deleted)
            condition = self.mark(deleted, f"{selected} && {condition}" if condition else selected)
        patterns = self.source[pattern.start_byte : guard.prev_sibling.start_byte if guard is not None else pattern.end_byte].decode()
        return self.children(node, {pattern.id: f"{patterns} if {condition} "})


def is_const(mutant, lines):
    function = mutant.get("function")
    if function is None:
        return True
    for line in lines[function["span"]["start"]["line"] - 1 :]:
        if "fn " in line:
            return "const fn" in line
    return False


def write(copy, originals, mutants):
    """Writes `mutants` into the files of the copy. Returns the numbers of those with a place in the text."""
    written = set()
    for file, source in originals.items():
        writer = Writer(source, [m for m in mutants if m["file"] == file])
        text = writer.text(PARSER.parse(source).root_node)
        # Module comments and attributes stay first.
        (copy / file).write_text(text)
        written |= writer.written
    library = copy / "crates/core/src/lib.rs"
    library.write_text(library.read_text().split("\n#[doc(hidden)]\npub(crate) mod mutants")[0] + SWITCH)
    return written


def culprits(copy, output):
    """The mutants whose text the compiler rejects."""
    found = set()
    for line in output.splitlines():
        message = json.loads(line).get("message") if line.startswith("{") else None
        if not message or message.get("level") != "error":
            continue
        for span in message["spans"]:
            if not span["is_primary"] or not (copy / span["file_name"]).exists():
                continue
            source = (copy / span["file_name"]).read_bytes()
            start, end = span["byte_start"], span["byte_end"]
            marks = re.finditer(rb"/\*<([0-9,]+)\*/", source[:start])
            around = [m[1] for m in marks if source.find(b"/*" + m[1] + b">*/", m.end()) >= start]
            if around:
                numbers = {int(n) for n in around[-1].split(b",")}
                # The condition that precedes the rejected text, within the innermost mutated expression, selects one of its mutants.
                before = source[source.rfind(b"/*<" + around[-1], 0, start) : start]
                selected = [int(n) for n in re.findall(rb"mutants::on\((\d+)\)", before)]
                found |= {selected[-1]} & numbers or numbers if selected else numbers
    return found


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def build(copy):
    """Builds the test programs. Returns their paths with their folders, in the order of `PROGRAMS`."""
    packages = ["-p", "cuprum-core", "-p", "cuprum", "--all-features", "--locked", "--lib", "--tests"]
    result = run(["cargo", "test", *packages, "--no-run", "--message-format=json"], cwd=copy)
    programs = {}
    for line in result.stdout.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message["profile"]["test"]:
            programs[message["target"]["name"]] = (message["executable"], pathlib.Path(message["manifest_path"]).parent)
    if result.returncode:
        sys.exit(result.stderr[-4000:])
    return [(name, *programs[name]) for name in PROGRAMS if name in programs]


def kill(process):
    """Kills a program and the programs that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def test(programs, number, limits):
    """Runs the programs with a mutant until a test fails. Returns the program and the test, or None."""
    for name, program, folder in programs:
        # Conformance samples its cases, so that a mutant which no test notices costs seconds.
        arguments = ["--quick"] if name == "conformance" else []
        # The compilation of CUDA sources takes most of the time, and depends on none of these files.
        variables = {k: v for k, v in os.environ.items() if k not in ("CUPRUM_REQUIRE_NVRTC", "VIRTUAL_ENV")}
        variables["CUPRUM_MUTANT"] = str(number)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([program, *arguments], cwd=folder, env=variables, start_new_session=True, **streams)
        late = threading.Event()
        alarm = threading.Timer(limits.get(name, 600), lambda: (late.set(), kill(process)))
        alarm.start()
        failure = next((line.decode(errors="replace").strip() for line in process.stdout if b"FAILED" in line), None)
        failed = failure is not None or process.wait() != 0
        alarm.cancel()
        kill(process)
        if failed:
            return f"{name}: {'the time limit' if late.is_set() else failure or 'the exit code'}"
    return None


def outcomes(copy, originals, mutants):
    """Yields each mutant with its outcome: the failing test, None if it is missed, `does not compile`, or `not run`: it has no switch."""
    while True:
        written = write(copy, originals, mutants)
        for mutant in [m for m in mutants if m["id"] not in written]:
            yield mutant, "not run"
        mutants = [m for m in mutants if m["id"] in written]
        checked = run(["cargo", "check", "-p", "cuprum-core", "--all-features", "--locked", "--message-format=json"], cwd=copy)
        if checked.returncode == 0:
            break
        rejected = culprits(copy, checked.stdout)
        if not rejected:
            sys.exit(checked.stderr[-4000:])
        for mutant in [m for m in mutants if m["id"] in rejected]:
            yield mutant, "does not compile"
        mutants = [m for m in mutants if m["id"] not in rejected]
    programs, limits = build(copy), {}
    for program in programs:
        start = time.monotonic()
        if test([program], 0, {}) is not None:
            sys.exit(f"{program[0]} fails without a mutant")
        limits[program[0]] = 20 + 5 * (time.monotonic() - start)
        print(f"{program[0]}: {time.monotonic() - start:.1f} s without a mutant", file=sys.stderr, flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from zip(mutants, pool.map(lambda m: test(programs, m["id"], limits), mutants))


def offset(lines, place):
    """The number of bytes before a place, whose line and column count from 1."""
    line = place["line"] - 1
    return sum(map(len, lines[:line])) + len(lines[line].decode()[: place["column"] - 1].encode())


def const_outcomes(copy, originals, mutants):
    """The outcomes of mutants that are built one by one, by the tests that need no backend."""
    manifest = copy / "crates/core/Cargo.toml"
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join(line for line in lines if not line.startswith("cuprum-backend-cpu")))
    test = ["cargo", "test", "-p", "cuprum-core", "--lib", "--test", "dtypes", "--test", "no_backend", "--offline"]
    unchanged = run(test, cwd=copy)
    if unchanged.returncode:
        sys.exit(unchanged.stderr[-4000:] + unchanged.stdout[-4000:])
    for mutant in mutants:
        source = originals[mutant["file"]]
        lines = source.splitlines(keepends=True)
        start, end = (offset(lines, mutant["span"][side]) for side in ("start", "end"))
        (copy / mutant["file"]).write_bytes(source[:start] + mutant["replacement"].encode() + source[end:])
        outcome = "does not compile"
        if run([*test, "--no-run"], cwd=copy).returncode == 0:
            try:
                outcome = "core's tests" if run(test, cwd=copy, timeout=60).returncode else None
            except subprocess.TimeoutExpired:
                outcome = "the time limit"
        (copy / mutant["file"]).write_bytes(source)
        yield mutant, outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("copy", type=pathlib.Path, help="a worktree of this repository whose sources are changed")
    parser.add_argument("--shard", default="0/1", help="mutants K, K + N, K + 2N, ...")
    parser.add_argument("--only", default="", help="mutants whose name contains this text")
    parser.add_argument("--const", action="store_true", help="the mutants in `const fn`, instead of the others")
    options = parser.parse_args()
    copy = options.copy.resolve()
    if run(["git", "status", "--porcelain"], cwd=copy).stdout:
        sys.exit(f"{copy} has changes")
    filters = [argument for file in FILES for argument in ("-f", f"crates/core/src/{file}")]
    listed = run(["cargo", "mutants", "--list", "--json", "-p", "cuprum-core", *filters], cwd=copy)
    if listed.returncode:
        sys.exit(listed.stderr)
    mutants = json.loads(listed.stdout)
    for number, mutant in enumerate(mutants):
        mutant["id"] = number + 1
    originals = {file: (copy / file).read_bytes() for file in {m["file"] for m in mutants}}
    first, step = map(int, options.shard.split("/"))
    mutants = [m for m in mutants if options.only in m["name"]][first::step]
    mutants = [m for m in mutants if is_const(m, originals[m["file"]].decode().splitlines()) == options.const]
    table = collections.defaultdict(collections.Counter)
    try:
        for mutant, outcome in (const_outcomes if options.const else outcomes)(copy, originals, mutants):
            kind = "missed" if outcome is None else outcome if outcome in ("does not compile", "not run") else "caught"
            table[mutant["file"]][kind] += 1
            print(f"{kind}: {mutant['name']}" + (f" by {outcome}" if kind == "caught" else ""), flush=True)
    finally:
        run(["git", "checkout", "."], cwd=copy)
    for file, counts in sorted(table.items()):
        print(file, dict(counts))
    total = sum(table.values(), collections.Counter())
    print(dict(total), f"{total['caught'] / max(1, total['caught'] + total['missed']):.1%} caught")


if __name__ == "__main__":
    main()
