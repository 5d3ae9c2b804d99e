"""Writing: erase, then add."""

from functools import reduce
from operator import mul

from jaxtyping import Array, Float


def erase_and_add(
    memory: Float[Array, "slots word"],
    weights: Float[Array, "heads slots"],
    erase: Float[Array, "heads word"],
    add: Float[Array, "heads word"],
) -> Float[Array, "slots word"]:
    r"""All heads erase, then all heads add, so their order does not matter.

    $$ M_t[i] = M_{t-1}[i] \odot \prod_h (1 - w_h[i] e_h) + \sum_h w_h[i] a_h $$
    """
    kept = reduce(mul, (1.0 - w[:, None] * e[None, :] for w, e in zip(weights, erase, strict=True)))
    return memory * kept + weights.T @ add
