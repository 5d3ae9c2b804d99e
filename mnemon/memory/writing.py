"""Writing: erase, then add."""

import jax
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
    for head in zip(weights, erase, strict=True):
        memory = _erased(memory, *head)
    return memory + weights.T @ add


@jax.custom_vjp
def _erased(memory: Float[Array, "slots word"], weights: Float[Array, " slots"], erase: Float[Array, " word"]):
    return memory * (1.0 - weights[:, None] * erase[None, :])


def _erased_forward(memory, weights, erase):
    return _erased(memory, weights, erase), (memory, weights, erase)


def _erased_backward(residuals, after_ct):
    # As products: sums over rows and columns are several times slower in XLA's code for a CPU.
    memory, weights, erase = residuals
    lost = after_ct * memory
    return _erased(after_ct, weights, erase), -(lost @ erase), -(weights @ lost)


_erased.defvjp(_erased_forward, _erased_backward)
