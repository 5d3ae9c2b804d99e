"""A scan whose weight gradients are formed after the loop.

Backpropagation through a scan adds, at every step, an outer product to the gradient of each weight matrix: many small
products, each of which reads and writes a whole matrix. Here every product `v @ W` of the loop with a parameter `W` is
given a zero *tap*, `v @ stop_gradient(W) + tap`. The gradient with respect to the stacked taps is what the loop
backpropagates; the gradient of W is then one large product of all the stacked `v` with all the tap gradients.
Same numbers, fewer passes. The products are found in the traced step, so cells know nothing of it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core as jex
from jaxtyping import Array, PyTree

Body = Callable[[Any, Any, Any], tuple[Any, Any]]


class _Product(NamedTuple):
    """One product of the loop with a parameter."""

    leaf: int  # which parameter
    weight_first: bool  # whether it is the left operand
    dimensions: tuple  # of the dot_general


def deferred_scan(body: Body, params: PyTree[Array], carry: Any, xs: Any, *, remat: bool = False) -> tuple[Any, Any]:
    """`lax.scan(partial(body, params), carry, xs)` with deferred weight gradients.

    `params` must hold all arrays that depend on trained parameters; it may hold others. Reverse mode only.
    """
    first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), xs)
    closed, out_shape = jax.make_jaxpr(body, return_shape=True)(params, carry, first)
    out_tree = jax.tree.structure(out_shape)
    leaves, params_tree = jax.tree.flatten(params)
    plain_uses: set[int] = set()
    specs: list[_Product] = []
    tap_shapes: list[jax.ShapeDtypeStruct] = []

    def discover(spec: _Product, vector: Array, product: Array) -> Array:
        specs.append(spec)
        tap_shapes.append(jax.ShapeDtypeStruct(product.shape, product.dtype))
        return product

    def evaluate(leaves, carry, x, on_product):
        args = [*leaves, *jax.tree.leaves(carry), *jax.tree.leaves(x)]
        outputs = _evaluate(closed.jaxpr, closed.consts, args, len(leaves), on_product, plain_uses)
        return jax.tree.unflatten(out_tree, outputs)

    jax.eval_shape(lambda leaves, carry, x: evaluate(leaves, carry, x, discover), leaves, carry, first)
    length = jax.tree.leaves(xs)[0].shape[0]

    def scan(leaves, carry, xs, taps):
        def step(carry, x_and_taps):
            x, taps = x_and_taps
            remaining, vectors = iter(taps), []

            def on_product(spec: _Product, vector: Array, product: Array) -> Array:
                vectors.append(vector)
                return product + next(remaining)

            carry, y = evaluate(leaves, carry, x, on_product)
            return carry, (y, vectors)

        step = jax.checkpoint(step, prevent_cse=False) if remat else step
        carry, (ys, vectors) = jax.lax.scan(step, carry, (xs, taps))
        return (carry, ys), vectors

    @jax.custom_vjp
    def run(leaves, carry, xs):
        return jax.lax.scan(lambda c, x: body(jax.tree.unflatten(params_tree, leaves), c, x), carry, xs)

    def forward(leaves, carry, xs):
        taps = [jnp.zeros((length, *shape.shape), shape.dtype) for shape in tap_shapes]
        looped = [leaf if i in plain_uses else jax.lax.stop_gradient(leaf) for i, leaf in enumerate(leaves)]
        outputs, pullback, vectors = jax.vjp(scan, looped, carry, xs, taps, has_aux=True)
        return outputs, (pullback, vectors, leaves)

    def backward(residuals, cotangents):
        pullback, vectors, leaves = residuals
        leaf_cts, carry_ct, xs_ct, tap_cts = pullback(cotangents)
        leaf_cts = list(leaf_cts)
        for spec, vector, tap_ct in zip(specs, vectors, tap_cts, strict=True):
            gradient = _weight_gradient(spec, vector, tap_ct, leaves[spec.leaf].shape)
            leaf_cts[spec.leaf] = leaf_cts[spec.leaf] + gradient
        return leaf_cts, carry_ct, xs_ct

    run.defvjp(forward, backward)
    return run(leaves, carry, xs)


def _evaluate(jaxpr, consts, args, leaf_count: int, on_product, plain_uses: set[int]) -> list:
    """Evaluate a jaxpr whose first `leaf_count` arguments are parameters, handing their products to `on_product`."""
    env: dict = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, args, strict=True))
    leaf_of = {var: index for index, var in enumerate(jaxpr.invars[:leaf_count])}
    return _evaluate_in(jaxpr, env, leaf_of, on_product, plain_uses)


def _evaluate_in(jaxpr, env: dict, leaf_of: dict, on_product, plain_uses: set[int]) -> list:
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
            outputs = _evaluate_in(inner.jaxpr, inner_env, inner_leaves, on_product, plain_uses)
        else:
            weight = _weight_position(eqn, found)
            leaf_index = None if weight is None else found[weight]
            if weight is None:
                plain_uses |= {index for index in found if index is not None}
            else:
                values[weight] = jax.lax.stop_gradient(values[weight])
            inputs = {v: x for v, x in zip(eqn.invars, values, strict=True) if not isinstance(v, jex.Literal)}
            alone = jaxpr.replace(constvars=[], invars=list(inputs), outvars=list(eqn.outvars), eqns=[eqn])
            outputs = jex.jaxpr_as_fun(jex.ClosedJaxpr(alone, ()))(*inputs.values())
            if weight is not None and leaf_index is not None:
                spec = _Product(leaf_index, weight == 0, eqn.params["dimension_numbers"])
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


def _weight_gradient(spec: _Product, vectors: Array, deltas: Array, weight_shape: tuple[int, ...]) -> Array:
    """The gradient of a weight from all its stacked [time, ...] operands and tap gradients, as one matrix product."""
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
    gradient = stacked.reshape(-1, contracted).T @ deltas.reshape(-1, free)
    order = [*weight_dims, *weight_free]
    gradient = gradient.reshape([weight_shape[d] for d in order])
    return gradient.transpose([order.index(d) for d in range(len(weight_shape))])
