"""How the time loop runs: the plan, and how one is chosen from what a step of the cell costs."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend import core as jex

from ._cores import free_cores
from ._deferred import SHORTEST_NATIVE
from ._native import native_is_possible, wanted
from ._operations import product_operations
from .cells._contract import BATCH_AXIS, AbstractCell


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the loop runs. It changes time and memory, never results (beyond rounding).

    - `defer`: form the weight gradients after the loop, as one product each. Reverse-mode differentiation only.
    - `remat`: keep only the states for the backward pass and compute the inside of each step again.
    - `segment`: keep only one state for each so many steps, and compute a segment again when its turn comes.
      Training memory then grows with T / segment + segment instead of T.
    - `block`: run the batch in blocks of so many examples, one after another, so that large states stay in cache.
      In training, cells with batch statistics take them over a block.
      Each block is computed again in the backward pass, so training memory is that of one block.
    - `share`: share the batch among all of JAX's devices, which run at the same time and meet once, to add up the
      gradients. See [`use_cores`][mnemon.use_cores]. In training, cells with batch statistics take them over a share.
    - `native`: compile the loop to C, on a CPU with a C compiler, where all its operations are known there and `defer`
      is set; see `docs/engine.md`. It has no second derivative.
    """

    defer: bool = True
    remat: bool = False
    segment: int | None = None
    block: int | None = None
    share: bool = False
    native: bool = False


# Above this many bytes kept for the backward pass the loop keeps one state for each sqrt(T) steps.
_SEGMENT_ABOVE_BYTES = 2**30
# A step with fewer operations for each byte it keeps is cheaper to compute again than to write to memory and read back,
# if it keeps more than so many times its state, from which it is computed again: not so with sparse access, nor where
# it is little more than the state in native loops, which have what they wrote still in cache.
_REMAT_BELOW_OPERATIONS_PER_BYTE, _REMAT_ABOVE_STATES, _NATIVE_REMAT_ABOVE_STATES = 5, 1, 2.5
# States of a batch above the first are run in blocks of about the second, which stays in a core's cache, if that is
# at least so many examples: smaller products would cost more than the cache saves.
_BLOCK_ABOVE_BYTES, _BLOCK_BYTES, _LEAST_BLOCK = 2**20, 2**18, 8
# A batch that keeps fewer bytes in all is over before a second core has begun; a share has at least so many examples.
_SHARE_ABOVE_BYTES, _LEAST_SHARE = 2**20, 2


def choose_plan(cell: AbstractCell, batch: int, time: int) -> Plan:
    """The plan that [`unroll`][mnemon.unroll] takes for these sizes unless it is given one.

    >>> import jax
    >>> from mnemon.cells import LSTM
    >>> choose_plan(LSTM(3, 128, key=jax.random.key(0)), batch=32, time=16_384).segment
    128
    """
    leaves, structure = jax.tree.flatten(eqx.filter_eval_shape(lambda c: c, cell))
    step = _measure_step(tuple(leaves), structure)
    native = step.has_native_loop and time >= SHORTEST_NATIVE and wanted()
    states = _NATIVE_REMAT_ABOVE_STATES if native else _REMAT_ABOVE_STATES
    remat = step.kept > states * step.state and step.operations < _REMAT_BELOW_OPERATIONS_PER_BYTE * step.kept
    fitting = _BLOCK_BYTES // max(step.state, 1)
    large = batch * step.state > _BLOCK_ABOVE_BYTES and fitting >= _LEAST_BLOCK
    block = fitting if remat and large and not step.has_statistics and not native else None
    kept = (block or batch) * time * (step.state if remat else step.kept)
    cores = free_cores()
    worth = batch * time * step.kept > _SHARE_ABOVE_BYTES and batch >= _LEAST_SHARE * cores
    return Plan(
        remat=remat,
        block=block,
        segment=math.ceil(math.sqrt(time)) if kept > _SEGMENT_ABOVE_BYTES else None,
        share=cores > 1 and worth and not step.has_statistics,
        native=native,
    )


class _Step(NamedTuple):
    """What one step of one example costs."""

    state: int  # bytes of the state
    kept: int  # bytes kept for the backward pass, beside the parameters
    operations: int  # of its matrix products
    has_statistics: bool  # whether examples see each other
    has_native_loop: bool  # whether all its operations, and those of its drive, are known in C


@functools.lru_cache
def _measure_step(leaves: tuple, structure: Any) -> _Step:
    """Trace a step of a cell that is given as shapes."""
    cell: AbstractCell = jax.tree.unflatten(structure, leaves)
    shapes = eqx.filter_eval_shape(
        lambda c, x: (c, *jax.tree.map(lambda leaf: leaf[None], (c.init_state(), c.drive(x), x))),
        eqx.filter_eval_shape(lambda c: c.prepare(), cell),
        jax.ShapeDtypeStruct((cell.input_size,), jnp.result_type(float)),
    )
    (dynamic, state, drive, x), static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def step(dynamic, state, drive):
        return jax.vmap(eqx.combine(dynamic, static[0]).step, axis_name=BATCH_AXIS)(state, drive)

    def whole(dynamic, state, x):
        return step(dynamic, state, jax.vmap(eqx.combine(dynamic, static[0]).drive)(x))

    def kept(dynamic, state, drive):
        return jax.tree.leaves(jax.vjp(step, dynamic, state, drive)[1])

    def statistics(dynamic, state):
        return jax.vmap(eqx.combine(dynamic, static[0]).statistics, axis_name=BATCH_AXIS)(state)

    jaxpr = jax.make_jaxpr(kept)(dynamic, state, drive).jaxpr
    parameters = jaxpr.invars[: len(jax.tree.leaves(dynamic))]
    variables = {var for var in jaxpr.outvars if not isinstance(var, jex.Literal)} - set(parameters)
    return _Step(
        state=_bytes(jax.tree.leaves(state)),
        kept=_bytes([var.aval for var in variables]),
        operations=product_operations(step, dynamic, state, drive),
        has_statistics=bool(jax.tree.leaves(jax.eval_shape(statistics, dynamic, state))),
        has_native_loop=native_is_possible(whole, dynamic, state, x),
    )


def _bytes(arrays: list) -> int:
    return sum(array.size * array.dtype.itemsize for array in arrays)
