"""Mixed precision: matrix products in fewer bits, everything else in float32.

The operands of every float32 product of a traced function are rounded to bfloat16, and so is its result; the hardware
adds up in float32. Parameters, states, sums over time, pointwise arithmetic and what is prepared before the loop stay
in float32, so cells know nothing of it: counts stay exact, and additive memories add up as before. The gradients of
such a product are products of the same kind. Products inside a hand-written gradient and of complex numbers stay as
they are.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ._errors import require
from ._operations import Result, with_products

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

    def rounded(left: Array, right: Array, dimensions: Any) -> Array | None:
        if left.dtype != jnp.float32 or right.dtype != jnp.float32:
            return None
        return jax.lax.dot_general(left.astype(precision), right.astype(precision), dimensions).astype(jnp.float32)

    return with_products(function, rounded)
