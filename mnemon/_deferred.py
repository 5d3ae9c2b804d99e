"""A scan whose weight gradients are formed after the loop.

Backpropagation through a scan adds, at every step, an outer product to the gradient of each weight matrix: many small
products, each of which reads and writes a whole matrix. Here every product `v @ W` of the loop with a parameter `W` is
given a zero *tap*, `v @ stop_gradient(W) + tap`. The gradient with respect to the stacked taps is what the loop
backpropagates; the gradient of W is then one large product of all the stacked `v` with all the tap gradients.
Where the product is added to an input of the step that is used nowhere else (a cell's drive), the gradient of that
input is the tap's, and there is no tap. Same numbers, fewer passes. The products are found in the traced step, so cells
know nothing of it.
"""

import collections
import contextlib
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend import core as jex
from jaxtyping import Array, ArrayLike, PyTree

from ._native import NativeScan, ScanGradient, Step, Unsupported, sum_of_outer_products
from ._operations import apply_equation

Body = Callable[[Any, Any, Any], tuple[Any, Any]]

# To compile a shorter loop takes longer than it ever runs.
SHORTEST_NATIVE = 4


class _Product(NamedTuple):
    """One product of the loop with a parameter."""

    leaf: int  # which parameter
    weight_first: bool  # whether it is the left operand
    dimensions: tuple  # of the dot_general
    added_input: int | None  # the scanned input, if any, whose gradient is that of the product


class _Residuals(eqx.Module):
    """What the backward pass gets from the forward pass."""

    saved: Any
    leaves: list[Any]
    xs: Any
    steps: ArrayLike
    wanted: frozenset[int] = eqx.field(static=True)  # the arrays of `xs` that need a gradient


def _without_symbols(cotangent: Any) -> Any:
    """A gradient as an array, where JAX only says that it is zero."""
    if not isinstance(cotangent, SymbolicZero):
        return cotangent
    aval: Any = cotangent.aval
    return (np if aval.dtype == jax.dtypes.float0 else jnp).zeros(aval.shape, aval.dtype)


def deferred_scan(
    body: Body,
    params: PyTree[Array],
    carry: Any,
    xs: Any,
    *,
    steps: ArrayLike | None = None,
    remat: bool = False,
    native: bool = False,
) -> tuple[Any, Any]:
    """`lax.scan(partial(body, params), carry, xs)` with deferred weight gradients.

    `params` must hold all arrays that depend on trained parameters; it may hold others. Reverse mode only. A `native`
    loop is compiled to C where its operations are known there; it leaves out all after the first `steps` (at least
    one), which must be steps that leave what is carried as it is and give zeros.
    """
    first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), xs)
    closed, out_shape = jax.make_jaxpr(body, return_shape=True)(params, carry, first)
    out_tree = jax.tree.structure(out_shape)
    leaves, params_tree = jax.tree.flatten(params)
    input_count = len(jax.tree.leaves(first))
    plain_uses: set[int] = set()
    specs: list[_Product] = []
    tap_shapes: list[jax.ShapeDtypeStruct] = []

    def discover(spec: _Product, vector: Array, product: Array) -> Array:
        specs.append(spec)
        if spec.added_input is None:
            tap_shapes.append(jax.ShapeDtypeStruct(product.shape, product.dtype))
        return product

    def evaluate(leaves, carry, x, on_product):
        args = [*leaves, *jax.tree.leaves(carry), *jax.tree.leaves(x)]
        outputs = _evaluate(closed.jaxpr, closed.consts, args, len(leaves), input_count, on_product, plain_uses)
        return jax.tree.unflatten(out_tree, outputs)

    jax.eval_shape(lambda leaves, carry, x: evaluate(leaves, carry, x, discover), leaves, carry, first)
    length = jax.tree.leaves(xs)[0].shape[0]
    steps = jnp.asarray(length) if steps is None else steps

    def tapped(looped, leaves, carry, x, taps):
        """A step with taps: next carry, output, and the vectors that were multiplied with parameters."""
        leaves = [looped.get(index, leaf) for index, leaf in enumerate(leaves)]
        remaining, vectors = iter(taps), []

        def on_product(spec: _Product, vector: Array, product: Array) -> Array:
            vectors.append(vector)
            return product + next(remaining) if spec.added_input is None else product

        carry, y = evaluate(leaves, carry, x, on_product)
        return carry, (y, vectors)

    def looped_of(leaves) -> dict[int, Any]:
        """Only parameters that the loop uses otherwise than in products get a gradient from the loop itself."""
        return {index: leaf for index, leaf in enumerate(leaves) if index in plain_uses}

    def plain(leaves, carry, x):
        return body(jax.tree.unflatten(params_tree, leaves), carry, x)

    step = Step(plain, tapped, looped_of, tap_shapes)
    loop = _XLAScan(step, remat)
    if native and length >= SHORTEST_NATIVE:
        with contextlib.suppress(Unsupported):
            loop = NativeScan(step, leaves, carry, first, remat=remat)

    @jax.custom_vjp
    def run(leaves, carry, xs, steps):
        return loop.run(leaves, carry, xs, steps)

    def forward(*primals):
        leaves, carry, xs, steps = jax.tree.map(lambda primal: primal.value, primals)
        outputs, saved = loop.forward(leaves, carry, xs, steps)
        # Where gradients of inputs are not asked for, as of data, a loop in C need not make them.
        wanted = {number for number, primal in enumerate(jax.tree.leaves(primals[2])) if primal.perturbed}
        wanted |= {spec.added_input for spec in specs if spec.added_input is not None}
        return outputs, _Residuals(saved, leaves, xs, steps, frozenset(wanted))

    def backward(residuals, cotangents):
        leaves, steps = residuals.leaves, residuals.steps
        cotangents = jax.tree.map(_without_symbols, cotangents)
        gradient = loop.backward(residuals.saved, leaves, residuals.xs, steps, cotangents, residuals.wanted)
        input_cts, remaining, leaf_cts = jax.tree.leaves(gradient.xs), iter(gradient.taps), dict(gradient.looped)
        for spec, vector in zip(specs, gradient.vectors, strict=True):
            delta = next(remaining) if spec.added_input is None else input_cts[spec.added_input]
            limit = steps if isinstance(loop, NativeScan) else None
            weights = _weight_gradient(spec, vector, delta, leaves[spec.leaf], limit)
            leaf_cts[spec.leaf] = leaf_cts[spec.leaf] + weights if spec.leaf in leaf_cts else weights
        return [leaf_cts.get(index) for index in range(len(leaves))], gradient.carry, gradient.xs, None

    run.defvjp(forward, backward, symbolic_zeros=True)
    return run(leaves, carry, xs, steps)


class _XLAScan:
    """A loop with taps as XLA runs it: always all steps."""

    def __init__(self, step: Step, remat: bool):
        self.step, self.remat = step, remat

    def run(self, leaves: list[Any], carry: Any, xs: Any, steps: ArrayLike) -> tuple[Any, Any]:
        return jax.lax.scan(lambda c, x: self.step.plain(leaves, c, x), carry, xs)

    def forward(self, leaves: list[Any], carry: Any, xs: Any, steps: ArrayLike) -> tuple[tuple[Any, Any], Any]:
        length = jax.tree.leaves(xs)[0].shape[0]
        taps = [jnp.zeros((length, *shape.shape), shape.dtype) for shape in self.step.taps]

        def scan(looped, carry, xs, taps):
            def step(carry, x_and_taps):
                return self.step.tapped(looped, leaves, carry, *x_and_taps)

            step = jax.checkpoint(step, prevent_cse=False) if self.remat else step
            carry, (ys, vectors) = jax.lax.scan(step, carry, (xs, taps))
            return (carry, ys), vectors

        outputs, *saved = jax.vjp(scan, self.step.looped_of(leaves), carry, xs, taps, has_aux=True)
        return outputs, saved

    def backward(
        self, saved: Any, leaves: list[Any], xs: Any, steps: ArrayLike, cotangents: Any, wanted: Collection[int]
    ) -> ScanGradient:
        pullback, vectors = saved
        looped, carry_ct, xs_ct, taps = pullback(cotangents)
        return ScanGradient(looped, carry_ct, xs_ct, taps, vectors)


def _evaluate(jaxpr, consts, args, leaf_count: int, input_count: int, on_product, plain_uses: set[int]) -> list:
    """Evaluate a jaxpr, handing products with parameters to `on_product`.

    Its first `leaf_count` arguments are the parameters, its last `input_count` the inputs of the step.
    """
    env: dict = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, args, strict=True))
    leaf_of = {var: index for index, var in enumerate(jaxpr.invars[:leaf_count])}
    added_input = _added_inputs(jaxpr, jaxpr.invars[len(jaxpr.invars) - input_count :])
    return _evaluate_in(jaxpr, env, leaf_of, added_input, on_product, plain_uses)


def _added_inputs(jaxpr, inputs) -> dict:
    """For each variable that is used only in a sum with an input that is used only there, the index of that input."""
    uses = collections.Counter(
        var
        for atoms in (*(eqn.invars for eqn in jaxpr.eqns), jaxpr.outvars)
        for var in atoms
        if isinstance(var, jex.Var)
    )
    index_of = {var: index for index, var in enumerate(inputs)}
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "add":
            for one, other in (eqn.invars, eqn.invars[::-1]):
                alone = isinstance(one, jex.Var) and isinstance(other, jex.Var) and uses[one] == uses[other] == 1
                if alone and other in index_of and _shape(one) == _shape(other):
                    found[one] = index_of[other]
    return found


def _shape(var: Any) -> tuple[int, ...]:
    return var.aval.shape


def _evaluate_in(jaxpr, env: dict, leaf_of: dict, added_input: dict, on_product, plain_uses: set[int]) -> list:
    def read(var):
        return var.val if isinstance(var, jex.Literal) else env[var]

    def leaf(var) -> int | None:
        return None if isinstance(var, jex.Literal) else leaf_of.get(var)

    for eqn in jaxpr.eqns:
        values = [read(var) for var in eqn.invars]
        found = [leaf(var) for var in eqn.invars]
        if eqn.primitive.name in ("jit", "pjit"):
            inner = eqn.params["jaxpr"]
            inner_env = dict(zip(inner.jaxpr.constvars, inner.consts, strict=True))
            inner_env |= dict(zip(inner.jaxpr.invars, values, strict=True))
            inner_leaves = {v: i for v, i in zip(inner.jaxpr.invars, found, strict=True) if i is not None}
            outputs = _evaluate_in(inner.jaxpr, inner_env, inner_leaves, {}, on_product, plain_uses)
        else:
            weight = _weight_position(eqn, found)
            leaf_index = None if weight is None else found[weight]
            if _is_rounding(eqn) and found[0] is not None:
                leaf_of = leaf_of | {eqn.outvars[0]: found[0]}
            elif weight is None:
                plain_uses |= {index for index in found if index is not None}
            else:
                values[weight] = jax.lax.stop_gradient(values[weight])
            outputs = apply_equation(jaxpr, eqn, values)
            if weight is not None and leaf_index is not None:
                added = added_input.get(eqn.outvars[0])
                spec = _Product(leaf_index, weight == 0, eqn.params["dimension_numbers"], added)
                outputs = [on_product(spec, values[1 - weight], outputs[0])]
        env |= dict(zip(eqn.outvars, outputs, strict=True))
    plain_uses |= {index for index in map(leaf, jaxpr.outvars) if index is not None}
    return [read(var) for var in jaxpr.outvars]


def _weight_position(eqn, found: list[int | None]) -> int | None:
    """Which operand of this equation is a parameter whose gradient can wait; None if it is no such product."""
    if eqn.primitive.name != "dot_general" or (found[0] is None) == (found[1] is None):
        return None
    _, (left_batch, _) = eqn.params["dimension_numbers"]
    if left_batch or not jnp.issubdtype(eqn.outvars[0].aval.dtype, jnp.floating):
        return None
    return 0 if found[0] is not None else 1


def _is_rounding(eqn) -> bool:
    """Whether this equation only changes the precision of its operand."""
    return eqn.primitive.name == "convert_element_type" and all(
        jnp.issubdtype(var.aval.dtype, jnp.floating) for var in (*eqn.invars, *eqn.outvars)
    )


def _weight_gradient(spec: _Product, vectors: Array, deltas: Array, weight: Array, steps: ArrayLike | None) -> Array:
    """The gradient of a weight from all its stacked [time, ...] operands and tap gradients, as one matrix product.

    It has the precision of the weight, whatever that of the operands. With `steps` it is made in C, from these alone.
    """
    weight_shape = weight.shape
    (left, right), _ = spec.dimensions
    weight_dims, vector_dims = (left, right) if spec.weight_first else (right, left)
    vector_free = [d for d in range(vectors.ndim - 1) if d not in vector_dims]
    weight_free = [d for d in range(len(weight_shape)) if d not in weight_dims]
    contracted = math.prod(weight_shape[d] for d in weight_dims)
    stacked = vectors.transpose(0, *(1 + d for d in vector_free), *(1 + d for d in vector_dims))
    if spec.weight_first:  # the product's axes are [weight's, vector's]
        ahead = len(weight_free)
        deltas = deltas.transpose(0, *range(1 + ahead, deltas.ndim), *range(1, 1 + ahead))
    free = math.prod(weight_shape[d] for d in weight_free)
    length, stacked, deltas = len(vectors), stacked.reshape(-1, contracted), deltas.reshape(-1, free)
    if steps is None:
        gradient = jnp.matmul(stacked.T, deltas, preferred_element_type=weight.dtype)
    else:
        gradient = sum_of_outer_products(stacked, deltas, steps * (len(stacked) // length))
    order = [*weight_dims, *weight_free]
    gradient = gradient.reshape([weight_shape[d] for d in order])
    return gradient.transpose([order.index(d) for d in range(len(weight_shape))])
