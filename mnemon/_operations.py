"""Arithmetic in a traced step."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.extend import core as jex
from jaxtyping import Array

Result = TypeVar("Result")
# Makes a product of two arrays and the dimension numbers of a dot_general; None where it is to be made as always.
Product = Callable[[Array, Array, Any], Array | None]


def product_operations(function: Callable, *args: Any) -> int:
    """Floating-point operations in the matrix products of a function of arrays (or of their shapes).

    >>> product_operations(lambda a, b: jax.numpy.sin(a @ b), jax.numpy.ones((2, 3)), jax.numpy.ones((3, 5)))
    60
    """
    return _count(jax.make_jaxpr(function)(*args).jaxpr)


def _count(jaxpr) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            depth = math.prod(eqn.invars[0].aval.shape[d] for d in contracted)
            total += 2 * depth * math.prod(eqn.outvars[0].aval.shape)
        shares = eqn.params["mesh"].size if eqn.primitive.name == "shard_map" else 1
        for inner in eqn.params.values():
            if isinstance(inner, jex.ClosedJaxpr):
                total += shares * _count(inner.jaxpr)
            elif isinstance(inner, jex.Jaxpr):
                total += shares * _count(inner)
    return total


def with_products(function: Callable[..., Result], product: Product) -> Callable[..., Result]:
    """The same function of arrays with its matrix products made by `product`."""

    def changed(*arguments: Any) -> Result:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        outputs = _evaluate(closed, jax.tree.leaves(arguments), product)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return changed


def _evaluate(closed: jex.ClosedJaxpr, arguments: list, product: Product) -> list:
    jaxpr = closed.jaxpr
    env: dict = dict(zip(jaxpr.constvars, closed.consts, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))

    def read(var):
        return var.val if isinstance(var, jex.Literal) else env[var]

    for eqn in jaxpr.eqns:
        values, made = [read(var) for var in eqn.invars], None
        if eqn.primitive.name == "dot_general":
            left, right = values
            made = product(left, right, eqn.params["dimension_numbers"])
        if eqn.primitive.name in ("jit", "pjit"):
            outputs = _evaluate(eqn.params["jaxpr"], values, product)
        else:
            outputs = apply_equation(jaxpr, eqn, values) if made is None else [made]
        env |= dict(zip(eqn.outvars, outputs, strict=True))
    return [read(var) for var in jaxpr.outvars]


def outer_product(left: Array, right: Array, dimensions: Any) -> Array | None:
    """A product over one number, such as that of inputs of size 1 with their weights, without a sum.

    For the gradient of such weights XLA would write down the transpose of all gradients of the sequence, which takes
    fifteen times as long.
    """
    (left_summed, right_summed), (left_batch, _) = dimensions
    if left_batch or math.prod(left.shape[d] for d in left_summed) != 1:
        return None
    left, right = jax.lax.squeeze(left, left_summed), jax.lax.squeeze(right, right_summed)
    return jax.lax.expand_dims(left, range(left.ndim, left.ndim + right.ndim)) * jax.lax.expand_dims(
        right, range(left.ndim)
    )


def apply_equation(jaxpr, eqn, values: list) -> list:
    """What one equation of a jaxpr makes of the values of its operands."""
    inputs = {var: value for var, value in zip(eqn.invars, values, strict=True) if not isinstance(var, jex.Literal)}
    alone = jaxpr.replace(constvars=[], invars=list(inputs), outvars=list(eqn.outvars), eqns=[eqn])
    return jex.jaxpr_as_fun(jex.ClosedJaxpr(alone, ()))(*inputs.values())
