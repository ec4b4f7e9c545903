"""Joins JSON lines of `workloads --json` and of the peers into a markdown table of speedups: peer time / cuprum time.

    python3 ratios.py [--subject cuprum] [--key us] [--limit GB_s=45] FILE|NAME=FILE ...

NAME=FILE sets the peer name of the file's lines (`before=old.json`). The minimum of several runs of a workload counts. Times are
medians (`us`, or `gpu_us` on a GPU); `--key min_us` compares minima, `--key extra_MB` peaks of memory. `--limit GB_s=45` adds the
percentage of that rate that the subject reaches; `--limit GB_s=copy_f32_128M` uses the subject's rate in that row as the limit.
"""
import argparse
import json
import math
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("files", nargs="+")
parser.add_argument("--subject", default="cuprum")
parser.add_argument("--key", help="us, min_us, gpu_us, cpu_us or extra_MB; default: gpu_us if present, else us")
parser.add_argument("--limit", action="append", default=[], help="GB_s or GFLOP_s = a number or a workload")
args = parser.parse_args()

times, lines, order, peers, errors = {}, {}, [], [], []
for argument in args.files:
    name, _, path = argument.rpartition("=")
    for text in open(path):
        if not text.startswith("{"):
            continue
        line = json.loads(text)
        peer, workload = name or line["peer"], line["workload"]
        if workload not in order:
            order.append(workload)
        if peer not in peers:
            peers.append(peer)
        time = line.get(args.key) if args.key else line.get("gpu_us", line.get("us"))
        if time is None:
            errors += [f"{workload}: {peer}: {line['error']}"] if "error" in line else []
        elif time < times.get((peer, workload), math.inf):
            times[peer, workload], lines[peer, workload] = time, line
others = [peer for peer in peers if peer != args.subject]
if not others or args.subject not in peers:
    sys.exit(f"nothing to compare: found {', '.join(peers) or 'no lines'}; the subject is {args.subject}")


def limit(unit, value):
    try:
        return float(value)
    except ValueError:
        line = lines.get((args.subject, value), {})
        return line[unit] if unit in line else sys.exit(f"--limit {unit}={value}: neither a number nor a workload of {args.subject} with {unit}")


limits = {unit: limit(unit, value) for unit, _, value in (text.partition("=") for text in args.limit)}


def show(time):
    if args.key == "extra_MB":
        return "" if time is None else f"{time:.1f}"
    return "" if time is None else f"{time / 1e3:.2f}" if time >= 100 else f"{time / 1e3:.5f}"


def ratio(ours, theirs):
    return f"{theirs / ours:.2f}" if ours and theirs else ""


def share(workload):
    line = lines.get((args.subject, workload), {})
    return next((f"{100 * line[unit] / limit:.0f} %" for unit, limit in limits.items() if unit in line), "")


unit = "MB" if args.key == "extra_MB" else "ms"
head = ["workload", f"{args.subject} {unit}"] + [f"{peer} {unit}" for peer in others] + [f"x {peer}" for peer in others]
best = len(others) > 1
head += ["x best"] * best + ["% of limit"] * bool(limits)
print("|", " | ".join(head), "|")
print("|", " | ".join(["---"] + ["---:"] * (len(head) - 1)), "|")
ratios = {peer: {} for peer in others + ["best"] * best}
missing = []
for workload in order:
    ours = times.get((args.subject, workload))
    theirs = {peer: times.get((peer, workload)) for peer in others}
    known = [time for time in theirs.values() if time]
    if ours is None:
        missing.append(workload)
        continue
    theirs_best = min(known, default=None)
    for peer, time in [*theirs.items()] + [("best", theirs_best)] * best:
        if time and ours:
            ratios[peer][workload] = time / ours
    cells = [workload, show(ours)] + [show(t) for t in theirs.values()] + [ratio(ours, t) for t in theirs.values()]
    print("|", " | ".join(cells + [ratio(ours, theirs_best)] * best + [share(workload)] * bool(limits)), "|")
print()
for peer, by_workload in ratios.items():
    if by_workload:
        mean = math.exp(sum(map(math.log, by_workload.values())) / len(by_workload))
        worst = min(by_workload, key=by_workload.get)
        print(f"- {peer}: geometric mean {mean:.2f}x over {len(by_workload)} workloads; worst {worst} {by_workload[worst]:.2f}x")
if missing:
    print(f"- missing in {args.subject}: {', '.join(missing)}")
for error in errors:
    print(f"- {error}")
