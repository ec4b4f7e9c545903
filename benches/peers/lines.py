"""What the scripts of this folder share: their options, and one JSON line for each workload that was asked for."""
import argparse
import json


def options(doc, peers):
    """A parser with the options that every script has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, choices=peers)
    parser.add_argument("--only", default="", help="parts of names, with commas between them")
    parser.add_argument("--list", action="store_true", help="print the names, run nothing")
    return parser


def rates(us, bytes=0, flops=0):
    """What a time means for a workload that these bytes or operations limit."""
    line = {}
    if bytes:
        line["GB_s"] = round(bytes / us / 1e3, 2)
    if flops:
        line["GFLOP_s"] = round(flops / us / 1e3, 2)
    return line


def show(args, peer, works, measure):
    """Prints what `measure` returns for each of `works`, rows that begin with a name."""
    for name, *work in works:
        if args.only and not any(part in name for part in args.only.split(",")):
            continue
        if args.list:
            print(name)
            continue
        try:
            line = measure(*work)
        except Exception as error:  # a peer that lacks a workload, or memory, is a line and not an end
            line = {"error": repr(error)[:200]}
        print(json.dumps({"peer": peer, "workload": name} | line), flush=True)
