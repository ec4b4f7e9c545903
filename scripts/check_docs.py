#!/usr/bin/env python3
"""Checks the documents: relative links and their anchors, paths in backticks, the length of docs/architecture.md, and docs/SUMMARY.md.

    python3 scripts/check_docs.py
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_ARCHITECTURE_WORDS = 1500
FOLDERS = ("benches/", "crates/", "docs/", "examples/", "scripts/", "src/", "tests/", ".ci/")
CRATES = tuple(f"{crate.name}/" for crate in (ROOT / "crates").iterdir())


def anchors(page):
    """Returns the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def faults(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"missing file {target}"
        elif anchor and anchor not in anchors(file):
            yield f"missing heading {target}"
    for code in re.findall(r"`([\w./-]+)`", text):
        path = f"crates/{code}" if code.startswith(CRATES) else code
        if path.startswith(FOLDERS) and not (ROOT / path).exists():
            yield f"missing path {code}"


listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
pages = [ROOT / name for name in listed if (ROOT / name).exists()]
found = [f"{page.relative_to(ROOT)}: {fault}" for page in pages for fault in faults(page)]
words = len((ROOT / "docs/architecture.md").read_text().split())
if words > MAX_ARCHITECTURE_WORDS:
    found.append(f"docs/architecture.md: {words} words, limit {MAX_ARCHITECTURE_WORDS}")
docs = ROOT / "docs"
chapters = re.findall(r"\]\(([^)\s]+)\)", (docs / "SUMMARY.md").read_text())
present = {str(page.relative_to(docs)) for page in pages if docs in page.parents} - {"SUMMARY.md"}
found += [f"docs/SUMMARY.md: lacks {name}" for name in sorted(present - set(chapters))]
found += [f"docs/SUMMARY.md: lists {name} twice" for name in sorted({c for c in chapters if chapters.count(c) > 1})]
print("\n".join(found) or f"{len(pages)} documents checked")
sys.exit(bool(found))
