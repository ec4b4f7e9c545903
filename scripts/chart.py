#!/usr/bin/env python3
"""Draws docs/pictures/speed.svg from the first tables of docs/results: one dot per workload and peer, on a logarithmic axis.

    python3 scripts/chart.py
"""
import math
import pathlib

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PANELS = [
    ("CPU: AMD EPYC, 2 cores", "epyc-2-cores.md", {"numpy": "NumPy", "numexpr": "numexpr", "torch": "PyTorch", "jax": "JAX"}),
    ("GPU: NVIDIA H200", "h200.md", {"cupy": "CuPy", "torch": "PyTorch"}),
]
WIDTH, LEFT, RIGHT, LANE, RADIUS = 880, 120, 780, 34, 4
LOWEST, HIGHEST = 0.5, 64.0


def read(page):
    """Returns the ratios per peer in the first table of a page, and the geometric means listed below it."""
    rows, means = [], {}
    for line in (DOCS / "results" / page).read_text().splitlines():
        if line.startswith("| workload") and not rows:
            rows.append(line)
        elif line.startswith("|") and rows and not means:
            rows.append(line)
        elif line.startswith("- ") and "geometric mean" in line and rows:
            peer, rest = line[2:].split(":", 1)
            means.setdefault(peer, rest.split("geometric mean ")[1].split(" ")[0])
        elif rows and means:
            break
    header, _, *body = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    columns = {peer: header.index(f"x {peer}") for peer in means if f"x {peer}" in header}
    return {peer: [float(row[at]) for row in body if row[at]] for peer, at in columns.items()}, means


def x(ratio):
    span = math.log2(HIGHEST / LOWEST)
    return LEFT + (RIGHT - LEFT) * math.log2(min(max(ratio, LOWEST), HIGHEST) / LOWEST) / span


def main():
    parts, y = [], 52
    for title, page, peers in PANELS:
        ratios, means = read(page)
        parts.append(f'<text x="16" y="{y}" class="panel">{title}</text>')
        y += 16
        top = y
        lanes = []
        for peer, label in peers.items():
            middle = y + LANE / 2
            lanes.append(f'<text x="{LEFT - 12}" y="{middle + 4}" text-anchor="end">{label}</text>')
            for i, ratio in enumerate(ratios[peer]):
                side = "faster" if ratio >= 1 else "slower"
                lanes.append(f'<circle cx="{x(ratio):.1f}" cy="{middle + (i % 5 - 2) * 4:.1f}" r="{RADIUS}" class="{side}"/>')
            mean = float(means[peer].rstrip("x"))
            lanes.append(f'<path d="M{x(mean):.1f} {y + 3}v{LANE - 6}" class="mean"/>')
            lanes.append(f'<text x="{RIGHT + 14}" y="{middle + 4}" class="value">{means[peer]}</text>')
            y += LANE
        for exponent in range(-1, 7):
            at = x(2.0**exponent)
            parts.append(f'<path d="M{at:.1f} {top}V{y}" class="{"one" if exponent == 0 else "grid"}"/>')
            parts.append(f'<text x="{at:.1f}" y="{y + 15}" text-anchor="middle" class="tick">{2.0**exponent:g}x</text>')
        parts += lanes
        y += 46
    height = y
    svg = f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">
<title>Time of a peer divided by time of cuprum</title>
<style>
text {{ font: 13px sans-serif; fill: #333 }}
.title {{ font-size: 15px; font-weight: bold }}
.panel, .value {{ font-weight: bold }}
.tick {{ font-size: 11px; fill: #777 }}
.grid {{ stroke: #e4e4e4 }}
.one {{ stroke: #555; stroke-width: 1.5 }}
.faster {{ fill: #b5652b; fill-opacity: .55 }}
.slower {{ fill: #3b6ea5; fill-opacity: .8 }}
.mean {{ stroke: #222; stroke-width: 2.5 }}
</style>
<rect width="{WIDTH}" height="{height}" fill="#fff"/>
<text x="16" y="24" class="title">Time of a peer divided by time of cuprum, one dot per workload</text>
<text x="{RIGHT + 14}" y="24" class="tick">geometric</text>
<text x="{RIGHT + 14}" y="38" class="tick">mean</text>
{chr(10).join(parts)}
<text x="16" y="{height - 10}" class="tick">Right of 1x cuprum is faster. Source: docs/results.</text>
</svg>
"""
    (DOCS / "pictures" / "speed.svg").write_text(svg)


main()
