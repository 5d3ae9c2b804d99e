"""What a gradient keeps as sequences grow: gated fast weights by plans of the loop, beside an LSTM as large.

    python benchmarks/training_memory.py [--steps 64 256 1024 4096] [--batch 32]

Memory is what the compiled gradient allocates beside its inputs and outputs; time is that of a step of the sequence,
the shortest of a few. A plain scan keeps both fast matrices of every step. With segments of sqrt(T) steps a loop keeps
the state at the beginning of each, and makes the matrices of a segment again when its turn comes.
"""

import argparse
import math
import time

import equinox as eqx
import jax
import jax.numpy as jnp

from mnemon import Plan, choose_plan, unroll
from mnemon.cells import LSTM, AbstractCell, GatedFastWeights

INPUT = 15
# The gated net of the paper, and an LSTM with about as many parameters.
CELLS = {
    "gated": GatedFastWeights(INPUT, 40, slow_layer_size=100, key=jax.random.key(0)),
    "lstm": LSTM(INPUT, 100, key=jax.random.key(0)),
}
ROWS = (
    ("lstm", "plain scan"),
    ("lstm", "segments"),
    ("gated", "plain scan"),
    ("gated", "segments"),
    ("gated", "as chosen"),
)


def plan_of(name: str, cell: AbstractCell, batch: int, steps: int) -> Plan:
    """A plan by the name of its row."""
    if name == "plain scan":
        return Plan(defer=False)
    return Plan(segment=math.isqrt(steps)) if name == "segments" else choose_plan(cell, batch, steps)


def compiled_gradient(cell: AbstractCell, inputs: jax.Array, plan: Plan):
    """The gradient of something of all outputs."""
    gradient = eqx.filter_jit(eqx.filter_grad(lambda c, x: jnp.mean(unroll(c, x, plan=plan).outputs ** 2)))
    return gradient.lower(cell, inputs).compile()


def microseconds(function, arguments: tuple, steps: int, repeats: int) -> float:
    """The shortest time for one step of the sequence: the machine may be busy with other work."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return min(times[1:]) / steps * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", nargs="+", type=int, default=[64, 256, 1024, 4096])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"batch {options.batch}; MiB of a gradient, and us for a step")
    print(f"{'network':8} {'plan':11}" + "".join(f"{f'T = {steps}':>21}" for steps in options.steps))
    for name, plan_name in ROWS:
        cell, row = CELLS[name], ""
        for steps in options.steps:
            inputs = jax.random.normal(jax.random.key(1), (options.batch, steps, INPUT))
            gradient = compiled_gradient(cell, inputs, plan_of(plan_name, cell, options.batch, steps))
            mebibytes = gradient.compiled.memory_analysis().temp_size_in_bytes / 2**20
            row += f"{mebibytes:11,.1f} {microseconds(gradient, (cell, inputs), steps, options.repeats):6.0f} us"
        print(f"{name:8} {plan_name:11}{row}", flush=True)


if __name__ == "__main__":
    main()
