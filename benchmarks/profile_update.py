"""Where the time of a training update goes: kinds of operations, how many a step has and their share of the time.

    python benchmarks/profile_update.py [--only nru-small lstm-large ...]

The names are those of `mnemon bench --suite`. The times are those of XLA's own trace of one update: tracing slows small
operations down, and operations overlap, so a share is not what an update would gain without them.
"""

import argparse
import collections
import dataclasses
import glob
import re
import tempfile
import time

import jax
from jax.profiler import ProfileData

import mnemon
from mnemon import choose_plan
from mnemon.bench._cells import Spec, compile_cell
from mnemon.bench._suite import SPECS

# The first kind whose pattern is in the name of an operation; the rest is pointwise.
KINDS = {
    "around operations": r"^end:|while|call|conditional|Execut|Wait|Rendezvous|all-reduce|PjRt|Threadpool",
    "products": r"ynn|dot|gemm|matmul",
    "kept for the backward pass": r"dynamic-update-slice",
    "sums": r"reduce",
    "copies": r"^copy|^bitcast$|transpose|^concatenate|slice|pad",
}


def kind_of(name: str) -> str:
    """What sort of operation this is."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name)), "pointwise")


def profile(spec: Spec) -> tuple[float, dict[str, tuple[float, float]]]:
    """Microseconds a step without the trace, and operations a step and microseconds by kind with it."""
    # A loop in C is one operation to XLA.
    plan = dataclasses.replace(choose_plan(spec.make(), spec.batch, spec.time), native=False)
    update = compile_cell(spec, plan).update
    for _ in range(3):
        update()
    started = time.perf_counter()
    update()
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            update()
        (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        lines = [line for plane in ProfileData.from_file(path).planes for line in plane.lines]
    counts: collections.Counter[str] = collections.Counter()
    times: collections.Counter[str] = collections.Counter()
    for line in lines:
        if "XLA" in line.name:
            for event in line.events:
                counts[kind_of(event.name)] += 1
                times[kind_of(event.name)] += event.duration_ns
    workers = len(jax.devices())
    kinds = [kind for kind in (*KINDS, "pointwise") if kind != "around operations"]
    return 1e6 * seconds / spec.time, {
        kind: (counts[kind] / spec.time / workers, times[kind] / 1e3 / spec.time / workers) for kind in kinds
    }


def main() -> None:
    """Print a line for each kind of operation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(SPECS), choices=list(SPECS), metavar="NAME")
    names = parser.parse_args().only
    mnemon.use_cores()
    for name in names:
        untraced, kinds = profile(SPECS[name])
        total = sum(microseconds for _, microseconds in kinds.values())
        print(f"{name}: {untraced:.1f} us a step")
        for kind, (count, microseconds) in kinds.items():
            print(f"  {kind:27s} {count:6.1f} a step  {microseconds / total:4.0%} of the time")


if __name__ == "__main__":
    main()
