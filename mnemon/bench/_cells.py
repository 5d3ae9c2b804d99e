"""What is measured of a cell: a forward pass and a whole training update."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._operations import product_operations
from .._plan import Plan, choose_plan
from ..cells import AbstractCell, cell_entry, make_cell
from ..unroll import unroll


@dataclasses.dataclass(frozen=True)
class Spec:
    """A cell at sizes."""

    cell: str
    batch: int
    time: int
    input_size: int
    options: Mapping[str, Any]

    def make(self) -> AbstractCell:
        """The cell."""
        return make_cell(self.cell, self.input_size, horizon=self.time, key=jax.random.key(0), **self.options)

    def inputs(self) -> jax.Array:
        """A batch of random sequences."""
        return jax.random.normal(jax.random.key(1), (self.batch, self.time, self.input_size))


# Sizes at which PyTorch has the same network: no peepholes, the reset gate applied after the product.
_COMPARABLE = {"lstm": {"peepholes": False}, "gru": {"reset_after": True}}
_SMALL = {
    "nru": {"hidden_size": 64, "memory_size": 64, "heads": 4},
    "lstm": {"hidden_size": 70},
    "gru": {"hidden_size": 70},
}
_LARGE = {"nru": {"hidden_size": 200, "memory_size": 256, "heads": 4}}


def small(cell: str) -> Spec:
    """The thesis's copying size: batch 10, 120 steps, about 23.5k parameters."""
    return Spec(cell, 10, 120, 10, {**_SMALL.get(cell, {}), **_COMPARABLE.get(cell, {})})


def large(cell: str) -> Spec:
    """The thesis's permuted MNIST size: batch 100, 784 steps, about 200 units."""
    entry = cell_entry(cell)
    size = min(entry.sizes, key=lambda n: abs(n - 200)) if not isinstance(entry.sizes, range) else 200
    return Spec(cell, 100, 784, 1, {**_LARGE.get(cell, {entry.size_option: size}), **_COMPARABLE.get(cell, {})})


SIZES: dict[str, Callable[[str], Spec]] = {"small": small, "large": large}


@dataclasses.dataclass(frozen=True)
class Compiled:
    """The compiled forward pass and training update of a network, ready to be timed."""

    forward: Callable[[], object]
    update: Callable[[], object]
    compile_seconds: float  # of the update
    memory_bytes: int  # that the update needs besides its inputs and outputs
    operations: int  # floating-point operations of the update in matrix products


def compile_cell(spec: Spec, plan: Plan | None = None) -> Compiled:
    """Compile what is measured of a cell."""
    cell = spec.make()
    plan = choose_plan(cell, spec.batch, spec.time) if plan is None else plan
    return compile_network(lambda cell, inputs: unroll(cell, inputs, plan=plan).outputs, cell, spec.inputs())


def compile_network(run: Callable[[Any, jax.Array], jax.Array], network: Any, inputs: jax.Array) -> Compiled:
    """Compile outputs, and an update of Adam on the mean square of all outputs."""
    optimizer = optax.adam(1e-3)
    arrays, static = eqx.partition(network, eqx.is_array)

    def run_forward(arrays, inputs):
        return run(eqx.combine(arrays, static), inputs)

    def run_update(arrays, opt_state, inputs):
        trained, fixed = eqx.partition(arrays, eqx.is_inexact_array)

        def loss(trained):
            return jnp.mean(run_forward(eqx.combine(trained, fixed), inputs) ** 2)

        gradient = jax.grad(loss)(trained)
        steps, opt_state = optimizer.update(gradient, opt_state, trained)
        return eqx.apply_updates(trained, steps), opt_state

    opt_state = optimizer.init(eqx.filter(arrays, eqx.is_inexact_array))
    forward = jax.jit(run_forward).lower(arrays, inputs).compile()
    started = time.perf_counter()
    update = jax.jit(run_update).lower(arrays, opt_state, inputs).compile()
    seconds = time.perf_counter() - started
    memory = update.memory_analysis()
    # Where the batch is shared among cores, each of them has the arguments.
    for_forward = _placed((arrays, inputs), forward)
    for_update = _placed((arrays, opt_state, inputs), update)
    return Compiled(
        lambda: jax.block_until_ready(forward(*for_forward)),
        lambda: jax.block_until_ready(update(*for_update)),
        seconds,
        0 if memory is None else memory.temp_size_in_bytes * _devices(update),
        3 * inputs.shape[1] * product_operations(run_forward, arrays, inputs[:, :1]),
    )


def _placed(arguments: tuple, compiled: Any) -> tuple:
    """The arguments on the devices that a compiled function wants them on."""
    return jax.device_put(arguments, compiled.input_shardings[0])


def _devices(compiled: Any) -> int:
    """How many devices a compiled function runs on."""
    return max(len(sharding.device_set) for sharding in jax.tree.leaves(compiled.input_shardings[0]))
