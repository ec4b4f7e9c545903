"""Shared code of the peer scripts: options and JSON output."""
import argparse
import json


def options(doc, peers):
    """Returns a parser with the options common to all scripts."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, choices=peers)
    parser.add_argument("--only", default="", help="comma-separated parts of names")
    parser.add_argument("--list", action="store_true", help="print the names only")
    return parser


def rates(us, bytes=0, flops=0):
    """Returns the rates of a workload with this time, bytes and floating-point operations."""
    line = {}
    if bytes:
        line["GB_s"] = round(bytes / us / 1e3, 2)
    if flops:
        line["GFLOP_s"] = round(flops / us / 1e3, 2)
    return line


def show(args, peer, works, measure):
    """Prints the result of `measure` for each selected row of `works`; a row starts with the name."""
    for name, *work in works:
        if args.only and not any(part in name for part in args.only.split(",")):
            continue
        if args.list:
            print(name)
            continue
        try:
            line = measure(*work)
        except Exception as error:  # an unsupported workload or lack of memory must not end the run
            line = {"error": repr(error)[:200]}
        print(json.dumps({"peer": peer, "workload": name} | line), flush=True)
