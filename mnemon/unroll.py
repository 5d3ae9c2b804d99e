"""The time loop: the only one in the package."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from ._cores import SHARES_AXIS, shares
from ._deferred import deferred_scan
from ._errors import require
from ._mixed import Precision, with_precision
from ._native import available
from ._plan import Plan, choose_plan
from .cells._contract import BATCH_AXIS, AbstractCell, Key

State = TypeVar("State")


class Unrolled(NamedTuple):
    """What [`unroll`][mnemon.unroll] returns."""

    outputs: Float[Array, "batch time output"]  # zero where masked
    state: Any  # the state after the last step, with a leading batch axis
    observed: Any  # what `observe` returned, each array as [batch, time, ...]; None without it
    statistics: Any  # `cell.statistics` averaged over the batch, as [time, ...]; None without a key


class _Steps(NamedTuple):
    """What the loop consumes, one slice a step; absent parts are None."""

    inputs: Array  # before `drive`, then the drive
    mask: Array | None
    reset: Array | None
    key_data: Array | None


def unroll(
    cell: AbstractCell[State, Any],
    inputs: Float[Array, "batch time input"],
    *,
    state: State | None = None,
    lengths: Int[Array, " batch"] | None = None,
    mask: Bool[Array, "batch time"] | None = None,
    reset: Bool[Array, "batch time"] | Bool[Array, " batch"] | None = None,
    key: Key = None,
    observe: Callable[[State], Any] | None = None,
    truncate: int | None = None,
    plan: Plan | None = None,
    precision: Precision = "float32",
) -> Unrolled:
    """Run a cell over a batch of sequences.

    **Arguments:**

    - `cell`: any cell.
    - `inputs`: the sequences, [batch, time, input].
    - `state`: the state to start from, with a leading batch axis (the `state` of an earlier result); by default
      `cell.init_state()` for each example.
    - `lengths`: how many steps each example has. Steps beyond leave its state as it is and give output zero.
    - `mask`: the same as a mask, True where a step is real. Give one of the two.
    - `reset`: True where an example starts afresh, from `cell.init_state()`, before that step; or, without a time axis,
      before the first, which costs less.
    - `key`: with a key, cells that sample do; without, they are deterministic.
    - `observe`: what to record of the state (of one example, after each step).
    - `truncate`: stop gradients through the state every so many steps (truncated BPTT).
    - `plan`: how to run, see [`Plan`][mnemon.Plan]; by default [`choose_plan`][mnemon.choose_plan].
    - `precision`: of the operands and results of matrix products; all else is float32 always (mixed precision).

    **Returns:** outputs, final state, what was observed, and the statistics for `cell.with_statistics`.

    >>> import jax
    >>> from mnemon.cells import LSTM
    >>> cell = LSTM(3, 5, key=jax.random.key(0))
    >>> result = unroll(cell, jax.numpy.ones((2, 7, 3)), observe=lambda state: state.cell)
    >>> result.outputs.shape, result.state.hidden.shape, result.observed.shape
    ((2, 7, 5), (2, 5), (2, 7, 5))
    """
    batch, time = inputs.shape[:2]
    require(
        inputs.shape[-1] == cell.input_size,
        "inputs.shape",
        inputs.shape,
        f"[batch, time, {cell.input_size}], the input size of the cell",
        f"jnp.zeros(({batch}, {time}, {cell.input_size}))",
    )
    require(
        time >= 1,
        "inputs.shape",
        inputs.shape,
        "at least one step",
        f"jnp.zeros((8, 100, {cell.input_size}))",
    )
    require(truncate is None or truncate >= 1, "truncate", truncate, "a positive number of steps", "truncate=32")
    require(
        lengths is None or mask is None,
        "mask",
        "given",
        "either `lengths` or `mask`, not both",
        "lengths=lengths",
    )
    if lengths is not None:
        mask = jnp.arange(time)[None] < lengths[:, None]
    plan = choose_plan(cell, batch, time) if plan is None else plan
    keys = None if key is None else jax.random.key_data(jax.random.split(key, (batch, time)))
    if state is None:
        state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), cell.init_state())
    elif reset is not None and reset.ndim == 1:
        state = jax.vmap(_where, (0, None, 0))(reset, cell.init_state(), state)
    reset = None if reset is None or reset.ndim == 1 else reset
    steps = _Steps(inputs, mask, reset, keys)
    return _run_compiled(cell, observe, truncate, plan, precision, state, steps)


@eqx.filter_jit
def _run_compiled(cell, observe, truncate, plan: Plan, precision: Precision, state, steps: _Steps) -> Unrolled:
    """Run the whole batch, as one program even where the caller compiles nothing."""
    run = _run_shares if plan.share else _run_blocks
    return run(cell, observe, truncate, plan, precision, state, steps)


def _run_shares(cell, observe, truncate, plan: Plan, precision: Precision, state, steps: _Steps) -> Unrolled:
    """Run a share of the batch on each device, the last ones filled up with examples that are run twice."""
    batch, mesh = steps.inputs.shape[0], shares()
    dynamic, static = eqx.partition(cell, eqx.is_array)

    def run_share(dynamic, state, steps) -> tuple:
        result = _run_blocks(eqx.combine(dynamic, static), observe, truncate, plan, precision, state, steps)
        return result[:3], jax.lax.pmean(result.statistics, SHARES_AXIS)

    whole, shared = jax.P(), jax.P(SHARES_AXIS)
    if batch % mesh.size:
        places = jnp.arange(-(-batch // mesh.size) * mesh.size) % batch
        state, steps = jax.tree.map(lambda leaf: leaf[places], (state, steps))
    filled, statistics = jax.shard_map(
        run_share,
        mesh=mesh,
        in_specs=(whole, shared, shared),
        out_specs=(shared, whole),
        check_vma=False,
    )(dynamic, state, steps)
    outputs, state, observed = jax.tree.map(lambda leaf: leaf[:batch], filled)
    return Unrolled(outputs, state, observed, statistics)


def _run_blocks(cell, observe, truncate, plan: Plan, precision: Precision, state, steps: _Steps) -> Unrolled:
    """Run a share of the batch, block after block."""
    run = eqx.Partial(_run, cell, observe, truncate, plan, precision)
    batch = steps.inputs.shape[0]
    if plan.block is None or plan.block >= batch:
        return run(state, steps)
    block = next(size for size in range(plan.block, 0, -1) if batch % size == 0)
    blocked = jax.tree.map(lambda leaf: leaf.reshape(-1, block, *leaf.shape[1:]), (state, steps))
    if plan.native:  # each block is one call; keeping what it needs for the backward pass costs no copies
        parts = [run(*jax.tree.map(lambda leaf, n=n: leaf[n], blocked)) for n in range(batch // block)]
        result = jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
    else:
        # A block is computed again in the backward pass, where its values then stay in cache from one pass to the
        # other. Keeping the values of all blocks costs more: they have to be copied out of each block's loop and back.
        result = jax.lax.map(jax.checkpoint(lambda part: run(*part), prevent_cse=False), blocked)
    whole = jax.tree.map(lambda leaf: leaf.reshape(batch, *leaf.shape[2:]), result._replace(statistics=None))
    return whole._replace(statistics=jax.tree.map(lambda leaf: jnp.mean(leaf, 0), result.statistics))


def _run(cell, observe, truncate, plan: Plan, precision: Precision, state, steps: _Steps) -> Unrolled:
    """Run one block of the batch: `steps` as [batch, time, ...]."""
    dynamic, static = eqx.partition(cell.prepare(), eqx.is_array)
    fresh = None if steps.reset is None else cell.init_state()
    steps = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), steps)
    # Loops in C make the drives themselves: less work than writing all of them and reading them again.
    native = plan.native and plan.defer and precision == "float32" and available()

    def one_example(cell, fresh, state, step: _Steps):
        if step.reset is not None:
            state = _where(step.reset, fresh, state)
        key = None if step.key_data is None else jax.random.wrap_key_data(step.key_data)
        after, output = cell.step(state, cell.drive(step.inputs) if native else step.inputs, key=key)
        statistics = None if key is None else _batch_mean(cell.statistics(after))
        if step.mask is not None:
            after = _where(step.mask, after, state)
            output = jnp.where(step.mask, output, jnp.zeros_like(output))
        return after, (output, None if observe is None else observe(after), statistics)

    def body(params, state, step):
        dynamic, fresh = params
        cell = eqx.combine(dynamic, static)
        batched = jax.vmap(
            lambda s, x: one_example(cell, fresh, s, x), out_axes=(0, (0, 0, None)), axis_name=BATCH_AXIS
        )
        return batched(state, step)

    def segment(params, state, steps: _Steps):
        if not native:
            cell = eqx.combine(params[0], static)
            drives = with_precision(jax.vmap(jax.vmap(cell.drive)), precision)
            steps = steps._replace(inputs=drives(steps.inputs))
        step = with_precision(body, precision)
        if plan.defer:
            # What is observed goes on after the end of a sequence; nothing else does.
            real = None if steps.mask is None or observe is not None else _real_steps(steps.mask)
            return deferred_scan(step, params, state, steps, steps=real, remat=plan.remat, native=native)
        step = jax.checkpoint(step, prevent_cse=False) if plan.remat else step
        return jax.lax.scan(lambda s, x: step(params, s, x), state, steps)

    state, (outputs, observed, statistics) = _in_segments(
        segment, (dynamic, fresh), state, steps, truncate, plan.segment
    )
    outputs, observed = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), (outputs, observed))
    return Unrolled(outputs, state, observed, statistics)


def _in_segments(segment, params, state, steps, truncate: int | None, remat_every: int | None):
    """Run `segment` over the whole time axis, or over cuts of it that are recomputed or truncated."""
    time = jax.tree.leaves(steps)[0].shape[0]
    size = truncate or remat_every
    if size is None or size >= time:
        return segment(params, state, steps)

    def cut(state, part):
        if truncate is not None:
            state = jax.lax.stop_gradient(state)
        return segment(params, state, part)

    def whole(state, part):
        return segment(params, state, part)

    if remat_every is not None:
        cut, whole = jax.checkpoint(cut, prevent_cse=False), jax.checkpoint(whole)
    # The first cut may be shorter. It is the one that passes gradients on to the state it started from.
    head = time - (time - 1) // size * size
    state, first = whole(state, jax.tree.map(lambda leaf: leaf[:head], steps))
    parts = jax.tree.map(lambda leaf: leaf[head:].reshape(-1, size, *leaf.shape[1:]), steps)
    state, rest = jax.lax.scan(cut, state, parts)
    join = jax.tree.map(lambda a, b: jnp.concatenate([a, b.reshape(-1, *b.shape[2:])]), first, rest)
    return state, join


def _real_steps(mask: Bool[Array, "time batch"]) -> Int[Array, ""]:
    """How many steps, at least one, until no sequence goes on."""
    time = mask.shape[0]
    return jnp.max(jnp.where(jnp.any(mask, axis=1), jnp.arange(1, time + 1), 1))


def _batch_mean(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jax.lax.pmean(jax.lax.stop_gradient(leaf), BATCH_AXIS), tree)


def _where(condition: Bool[Array, ""], yes: PyTree, no: PyTree) -> PyTree:
    # Without the checkpoint the backward pass would keep the condition spread out to the size of the state.
    choose = jax.checkpoint(jnp.where, prevent_cse=False)
    return jax.tree.map(lambda a, b: choose(condition, a, b), yes, no)
