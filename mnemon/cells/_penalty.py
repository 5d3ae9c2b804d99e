"""Penalties on the recurrent matrices of a cell."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import require
from ._contract import AbstractCell


def orthogonality_penalty(cell: AbstractCell) -> Float[Array, ""]:
    r"""The soft orthogonality constraint, a term for an objective.

    $$\sum_W \lVert W^T W - I \rVert_F^2$$

    over the recurrent matrices of the cell, one for each gate (thesis 2.40 with lambda = 1).

    >>> import jax
    >>> from mnemon.cells import RNN
    >>> cell = RNN(3, 5, init="orthogonal", recurrent_scale=2.0, key=jax.random.key(0))
    >>> round(float(orthogonality_penalty(cell)), 3)  # five times (4 - 1)^2
    45.0
    """
    matrices = cell.recurrent_matrices()
    require(
        len(matrices) >= 1,
        "cell",
        type(cell).__name__,
        "a cell with a recurrent matrix",
        "RNN(10, 128, init='orthogonal', key=key)",
    )
    squares = [jnp.sum((w.T @ w - jnp.eye(w.shape[0], dtype=w.dtype)) ** 2) for w in matrices]
    return jnp.sum(jnp.stack(squares))
