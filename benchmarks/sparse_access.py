"""What sparse access costs as the memory grows: time for a step and memory, beside an NTM of the same sizes.

    python benchmarks/sparse_access.py [--slots 1024 8192 65536] [--time 100] [--batch 2]

Memory is what the compiled program allocates beside its inputs and outputs. "a step more" is what one more step of the
sequence adds to that for the whole batch. A dense program that would need more than `--limit` GiB is compiled, not run.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp

from mnemon import Plan, unroll
from mnemon.cells import NTM, SAM, SDNC, AbstractCell

INPUT, HIDDEN, WORD, TOP_K = 10, 100, 32, 4


def make(name: str, slots: int, heads: int) -> AbstractCell:
    """A cell of the benchmark's sizes."""
    key, sizes = jax.random.key(0), {"memory_slots": slots, "word_size": WORD}
    if name == "sam":
        return SAM(INPUT, HIDDEN, **sizes, heads=heads, top_k=TOP_K, key=key)
    if name == "sdnc":
        return SDNC(INPUT, HIDDEN, **sizes, read_heads=heads, top_k=TOP_K, key=key)
    return NTM(INPUT, HIDDEN, **sizes, read_heads=heads, write_heads=heads, key=key)


@eqx.filter_jit
def forward(cell, inputs, mask):
    """The outputs."""
    return unroll(cell, inputs, mask=mask, plan=Plan()).outputs


@eqx.filter_jit
def update(cell, inputs, mask):
    """One step of gradient descent."""
    gradient = eqx.filter_grad(lambda c: jnp.mean(unroll(c, inputs, mask=mask, plan=Plan()).outputs ** 2))(cell)
    return eqx.apply_updates(cell, jax.tree.map(lambda g: -1e-3 * g, gradient))


def mebibytes(compiled) -> float:
    """What a compiled function allocates for itself."""
    return compiled.compiled.memory_analysis().temp_size_in_bytes / 2**20


def microseconds(function, arguments, steps: int, repeats: int) -> float:
    """The shortest time for one step of the sequence: the machine may be busy with other work."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return min(times) / steps * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=["sam", "sdnc", "ntm"], choices=["sam", "sdnc", "ntm"])
    parser.add_argument("--slots", nargs="+", type=int, default=[1024, 8192, 65536])
    parser.add_argument("--time", type=int, default=100)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--masked", action="store_true", help="with a mask, as for sequences of different lengths")
    parser.add_argument("--limit", type=float, default=8.0, help="GiB above which nothing is run")
    options = parser.parse_args()
    print(f"T {options.time}, batch {options.batch}, heads {options.heads}, K {TOP_K}, W {WORD}, h {HIDDEN}")
    print(f"{'cell':5} {'N':>6} {'forward':>12} {'update':>12} {'update memory':>14} {'a step more':>12}")
    for name in options.cells:
        for slots in options.slots:
            cell = make(name, slots, options.heads)

            def arguments(steps: int, cell: AbstractCell = cell) -> tuple:
                mask = jnp.ones((options.batch, steps), bool) if options.masked else None
                return cell, jax.random.normal(jax.random.key(1), (options.batch, steps, INPUT)), mask

            memory, longer = (
                mebibytes(update.lower(*arguments(t)).compile()) for t in (options.time, 2 * options.time)
            )
            times = ["-", "-"]
            if memory < options.limit * 1024:
                given = arguments(options.time)
                times = [f"{microseconds(f, given, options.time, options.repeats):.0f} us" for f in (forward, update)]
            step = (longer - memory) / options.time * 1024
            print(f"{name:5} {slots:6} {times[0]:>12} {times[1]:>12} {memory:10.1f} MiB {step:8.1f} KiB", flush=True)


if __name__ == "__main__":
    main()
