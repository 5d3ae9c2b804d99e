"""Mixed precision: matrix products in fewer bits, everything else in float32.

The operands of every float32 product of a traced function are rounded to bfloat16, and so is its result; the hardware
adds up in float32. Parameters, states, sums over time, pointwise arithmetic and what is prepared before the loop stay
in float32, so cells know nothing of it: counts stay exact, and additive memories add up as before. The gradients of
such a product are products of the same kind. Products inside a hand-written gradient and of complex numbers stay as
they are.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
from jax.extend import core as jex

from ._errors import require
from ._operations import apply_equation

Result = TypeVar("Result")
Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")


def checked_precision(precision: str) -> Precision:
    """A precision by its name; others are refused."""
    wanted = f"one of {', '.join(PRECISIONS)}"
    require(precision in PRECISIONS, "precision", precision, wanted, "precision='bfloat16'")
    return "bfloat16" if precision == "bfloat16" else "float32"


def with_precision(function: Callable[..., Result], precision: Precision) -> Callable[..., Result]:
    """The same function of arrays with its products in a precision.

    >>> third = jnp.full((1, 1), 1 / 3)
    >>> float(with_precision(lambda a: a @ jnp.ones((1, 1)), "bfloat16")(third)[0, 0])
    0.333984375
    """
    if checked_precision(precision) == "float32":
        return function

    def lowered(*arguments: Any) -> Result:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        outputs = _evaluate(closed, jax.tree.leaves(arguments), jnp.dtype(precision))
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return lowered


def _evaluate(closed: jex.ClosedJaxpr, arguments: list, dtype: jnp.dtype) -> list:
    jaxpr = closed.jaxpr
    env: dict = dict(zip(jaxpr.constvars, closed.consts, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))

    def read(var):
        return var.val if isinstance(var, jex.Literal) else env[var]

    for eqn in jaxpr.eqns:
        values = [read(var) for var in eqn.invars]
        if eqn.primitive.name in ("jit", "pjit"):
            outputs = _evaluate(eqn.params["jaxpr"], values, dtype)
        elif eqn.primitive.name == "dot_general" and all(var.aval.dtype == jnp.float32 for var in eqn.invars):
            left, right = (value.astype(dtype) for value in values)
            product = jax.lax.dot_general(left, right, eqn.params["dimension_numbers"])
            outputs = [product.astype(jnp.float32)]
        else:
            outputs = apply_equation(jaxpr, eqn, values)
        env |= dict(zip(eqn.outvars, outputs, strict=True))
    return [read(var) for var in jaxpr.outvars]
