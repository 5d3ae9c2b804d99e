"""Arithmetic in a traced step."""

import math
from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core as jex


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


def apply_equation(jaxpr, eqn, values: list) -> list:
    """What one equation of a jaxpr makes of the values of its operands."""
    inputs = {var: value for var, value in zip(eqn.invars, values, strict=True) if not isinstance(var, jex.Literal)}
    alone = jaxpr.replace(constvars=[], invars=list(inputs), outvars=list(eqn.outvars), eqns=[eqn])
    return jex.jaxpr_as_fun(jex.ClosedJaxpr(alone, ()))(*inputs.values())
