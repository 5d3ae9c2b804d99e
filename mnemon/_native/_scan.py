"""A scan in C, with its gradient."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from ._graph import BY_STEP, CARRIED, FIXED
from ._loop import NativeLoop, Unsupported


class Step(NamedTuple):
    """The body of a scan, in two forms."""

    plain: Callable[..., tuple[Any, Any]]  # (leaves, carry, x) -> carry, y
    tapped: Callable[..., tuple[Any, Any]]  # (looped, leaves, carry, x, taps) -> carry, (y, vectors)
    looped_of: Callable[[Sequence[Any]], dict[int, Any]]  # the leaves whose gradient is summed up in the loop
    taps: list[jax.ShapeDtypeStruct]  # what is added to products to get their gradients: zeros


class ScanGradient(NamedTuple):
    """What a scan with taps gives backwards."""

    looped: dict[int, Any]
    carry: Any
    xs: Any
    taps: list[Array]  # [time, ...]
    vectors: list[Array]  # what was multiplied with parameters, [time, ...]


class NativeScan:
    """A loop with taps, forwards and backwards a call of a function in C each.

    Forwards it keeps what the gradient of a step needs, as `jax.vjp` has it; with `remat` only what is carried, from
    which the backward loop computes each step again. Both run the first `steps` alone.
    """

    def __init__(self, step: Step, leaves: Sequence[Any], carry: Any, x: Any, *, remat: bool):
        """Trace everything, so that an operation that is not known in C is found before anything runs."""
        self.step, self.remat = step, remat
        leaves, carry, x = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (list(leaves), carry, x))
        inputs = [(leaves, FIXED), (carry, CARRIED), (x, BY_STEP)]
        self._plain, plain_shape = _trace(step.plain, inputs)
        self._plain_tree, (_, y) = jax.tree.structure(plain_shape), plain_shape
        self._forward, (_, kept) = _trace(self._forward_step, inputs)
        self._kept_tree = jax.tree.structure(kept)
        # What is the same in all steps was not stacked forwards and is not read step by step backwards.
        after = len(jax.tree.leaves(carry))
        levels = [min(self._forward.level(after + n), BY_STEP) for n in range(self._kept_tree.num_leaves)]
        levels = jax.tree.unflatten(self._kept_tree, levels)[2]
        sums = jax.eval_shape(step.looped_of, leaves)
        carry_ct, y_ct = eqx.filter((carry, y), _is_float)
        gradients = [
            (leaves, FIXED),
            (carry_ct, CARRIED),
            (sums, CARRIED),
            (kept[2], levels),
            (x, BY_STEP),
            (y_ct, BY_STEP),
        ]
        self._backward, backward_shape = _trace(self._backward_step, gradients)
        self._backward_tree = jax.tree.structure(backward_shape)

    def _forward_step(self, leaves: list[Any], carry: Any, x: Any) -> tuple[Any, Any]:
        if self.remat:
            after, y = self.step.plain(leaves, carry, x)
            return after, (y, [], carry)
        (after, y), pullback, vectors = self._with_pullback(leaves, carry, x)
        return after, (y, vectors, pullback)

    def _with_pullback(self, leaves: list[Any], carry: Any, x: Any) -> tuple[Any, Any, list[Array]]:
        taps = [jnp.zeros(shape.shape, shape.dtype) for shape in self.step.taps]
        floats, others = eqx.partition((self.step.looped_of(leaves), carry, x), _is_float)

        def of_floats(floats, taps):
            looped, carry, x = eqx.combine(floats, others)
            after, (y, vectors) = self.step.tapped(looped, leaves, carry, x, taps)
            changed, unchanged = eqx.partition((after, y), _is_float)
            return changed, (unchanged, vectors)

        changed, pullback, (unchanged, vectors) = jax.vjp(of_floats, floats, taps, has_aux=True)
        return eqx.combine(changed, unchanged), pullback, vectors

    def _backward_step(self, leaves: list[Any], carry_ct: Any, sums: Any, kept: Any, x: Any, y_ct: Any):
        """From gradients of what a step leaves to those of what it gets."""
        pullback, vectors = kept, []
        if self.remat:
            _, pullback, vectors = self._with_pullback(leaves, kept, x)
        (looped_ct, carry_ct, x_ct), tap_cts = pullback((carry_ct, y_ct))
        sums = {index: total if looped_ct[index] is None else total + looped_ct[index] for index, total in sums.items()}
        return (carry_ct, sums), (x_ct, tap_cts, vectors)

    def run(self, leaves: list[Any], carry: Any, xs: Any, steps: ArrayLike) -> tuple[Any, Any]:
        """What is carried after the last step, and the outputs."""
        arguments = jax.tree.leaves((leaves, carry, xs))
        carried, stacked, same = self._plain.run(arguments, steps=steps, length=_length(xs))
        ys = [_repeated(array, xs) if fixed else array for array, fixed in zip(stacked, same, strict=True)]
        return jax.tree.unflatten(self._plain_tree, [*carried, *ys])

    def forward(self, leaves: list[Any], carry: Any, xs: Any, steps: ArrayLike) -> tuple[tuple[Any, Any], Any]:
        """The same, and what the backward loop needs."""
        arguments = jax.tree.leaves((leaves, carry, xs))
        carried, stacked, same = self._forward.run(arguments, steps=steps, length=_length(xs))
        whole = [_repeated(array, xs) if fixed else array for array, fixed in zip(stacked, same, strict=True)]
        ys, vectors, _ = jax.tree.unflatten(self._kept_tree, whole)
        kept = jax.tree.unflatten(self._kept_tree, stacked)[2]
        return (jax.tree.unflatten(jax.tree.structure(carry), carried), ys), (kept, vectors)

    def backward(
        self, saved: Any, leaves: list[Any], xs: Any, steps: ArrayLike, cotangents: Any, wanted: Collection[int]
    ) -> ScanGradient:
        """The gradients, from what `forward` kept and those of its results.

        Of the arrays of `xs` those whose numbers are `wanted` have one; those of the others are zero.
        """
        (kept, vectors), (carry_ct, y_ct) = saved, cotangents
        sums = jax.tree.map(jnp.zeros_like, self.step.looped_of(leaves))
        carry_floats, y_floats = eqx.filter((carry_ct, y_ct), _is_float)
        arguments = jax.tree.leaves((leaves, carry_floats, sums, kept, xs, y_floats))
        floats = [number for number, leaf in enumerate(jax.tree.leaves(xs)) if _is_float(leaf)]
        carried, stacked, same = self._backward.run(
            arguments,
            steps=steps,
            length=_length(xs),
            reverse=True,
            unwanted=[place for place, number in enumerate(floats) if number not in wanted],
        )
        whole = [_repeated(array, xs) if fixed else array for array, fixed in zip(stacked, same, strict=True)]
        (carry_floats, sums), (x_floats, taps, again) = jax.tree.unflatten(self._backward_tree, [*carried, *whole])
        sums = {index: total for index, total in sums.items() if _is_float(total)}
        return ScanGradient(sums, _filled(carry_floats, carry_ct), _filled(x_floats, xs), taps, again or vectors)


def native_is_possible(body: Callable, leaves: Any, carry: Any, x: Any) -> bool:
    """Whether a loop with this body (leaves, carry, x) -> carry, y could be a `NativeScan`."""
    flat, structure = jax.tree.flatten(leaves)

    def plain(flat, carry, x):
        return body(jax.tree.unflatten(structure, flat), carry, x)

    def tapped(looped, flat, carry, x, taps):
        after, y = plain([looped[index] for index in range(len(flat))], carry, x)
        return after, (y, [])

    try:
        NativeScan(Step(plain, tapped, lambda flat: dict(enumerate(flat)), []), flat, carry, x, remat=False)
    except Unsupported:
        return False
    return True


def _trace(function: Callable, inputs: list[tuple[Any, Any]]) -> tuple[NativeLoop, Any]:
    """The loop of a function of trees, each with a level for all of it or one for each of its leaves."""
    closed, out_shape = jax.make_jaxpr(function, return_shape=True)(*(tree for tree, _ in inputs))
    levels: list[int] = []
    for tree, level in inputs:
        count = len(jax.tree.leaves(tree))
        levels += [level] * count if isinstance(level, int) else jax.tree.leaves(level)
    return NativeLoop(closed, levels), out_shape


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def _length(xs: Any) -> int:
    return jax.tree.leaves(xs)[0].shape[0]


def _repeated(array: Array, xs: Any) -> Array:
    """What is the same in all steps, for each of them."""
    return jnp.broadcast_to(array, (_length(xs), *array.shape))


def _filled(floats: Any, tree: Any) -> Any:
    """Gradients of the arrays of a tree: of all others there is none, which JAX writes in a type of its own."""
    leaves, structure = jax.tree.flatten(tree)
    cts = iter(jax.tree.leaves(floats))
    filled = [next(cts) if _is_float(leaf) else np.zeros(leaf.shape, jax.dtypes.float0) for leaf in leaves]
    return jax.tree.unflatten(structure, filled)
