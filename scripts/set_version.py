#!/usr/bin/env python3
"""Sets the version of all crates, or checks that it is the same everywhere.

    python3 scripts/set_version.py 0.3.0
    python3 scripts/set_version.py --check
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "Cargo.toml"
OWN = re.compile(r'^(version = )"([^"]+)"$', re.M)
# Documents name the version without its last part.
DOCUMENTED = re.compile(r'(cuprum[\w-]* = \{ version = )"([^"]+)"')
DEPENDENCY = re.compile(r'^(cuprum[\w-]* = \{ path = "[^"]+", version = )"([^"]+)"', re.M)


def faults(text):
    """Returns the places whose version differs from the workspace's."""
    version = OWN.search(text).group(2)
    found = [f"Cargo.toml: {m.group(0)}" for m in DEPENDENCY.finditer(text) if m.group(2) != version]
    lock = (ROOT / "Cargo.lock").read_text()
    locked = re.findall(r'name = "(cuprum[\w-]*)"\nversion = "([^"]+)"', lock)
    found += [f"Cargo.lock: {name} {other}" for name, other in locked if other != version]
    for path in [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("examples/*/Cargo.toml")]:
        if "version.workspace = true" not in path.read_text():
            found.append(f"{path.relative_to(ROOT)}: a version of its own")
    short = ".".join(version.split(".")[:2])
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        found += [f"{path.relative_to(ROOT)}: {m.group(0)}" for m in DOCUMENTED.finditer(path.read_text()) if m.group(2) != short]
    if not re.search(rf"^## {re.escape(version)}(,|$)", (ROOT / "CHANGELOG.md").read_text(), re.M):
        found.append(f"CHANGELOG.md: no section {version}")
    return found


text = MANIFEST.read_text()
if sys.argv[1:] == ["--check"]:
    found = faults(text)
    print("\n".join(found) or f"version {OWN.search(text).group(2)}")
    sys.exit(bool(found))
if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", sys.argv[1]):
    sys.exit(__doc__)
new = sys.argv[1]
text = OWN.sub(rf'\1"{new}"', text, count=1)
for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
    page = path.read_text()
    if DOCUMENTED.search(page):
        path.write_text(DOCUMENTED.sub(rf'\1"{".".join(new.split(".")[:2])}"', page))
MANIFEST.write_text(DEPENDENCY.sub(rf'\1"{new}"', text))
# Resolves the workspace's own crates again and leaves the other versions.
subprocess.run(["cargo", "update", "--workspace", "--offline"], cwd=ROOT, check=True)
print("\n".join(faults(MANIFEST.read_text())) or f"version {new}")
