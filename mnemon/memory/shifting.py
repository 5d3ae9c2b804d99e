"""Location addressing: keep, move and sharpen a weighting."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Added to a weighting before its logarithm is taken.
WEIGHT_EPSILON = 1e-12


def interpolate(
    gates: Float[Array, " heads"], new: Float[Array, "heads slots"], previous: Float[Array, "heads slots"]
) -> Float[Array, "heads slots"]:
    r"""$$ w = g w_{new} + (1 - g) w_{previous} $$"""
    return gates[:, None] * new + (1.0 - gates[:, None]) * previous


def circular_shift(
    weights: Float[Array, "heads slots"], shifts: Float[Array, "heads span"]
) -> Float[Array, "heads slots"]:
    r"""Move each weighting around the ring of slots.

    $$ \tilde w[i] = \sum_d w[(i - d) \bmod N] \, s[d] $$

    `shifts` are the weights of d = -n, ..., 0, ..., n, so that the last one moves the focus n slots up.

    >>> circular_shift(jnp.array([[1.0, 0.0, 0.0, 0.0]]), jnp.array([[0.1, 0.7, 0.2]]))
    Array([[0.7, 0.2, 0. , 0.1]], dtype=float32)
    """
    reach = shifts.shape[-1] // 2
    moved = [jnp.roll(weights, d, axis=-1) * shifts[:, d + reach, None] for d in range(-reach, reach + 1)]
    return sum(moved[1:], moved[0])


def sharpen(
    weights: Float[Array, "heads slots"], exponents: Float[Array, " heads"], epsilon: float = WEIGHT_EPSILON
) -> Float[Array, "heads slots"]:
    r"""$$ (w[i] + \epsilon)^\gamma / \sum_j (w[j] + \epsilon)^\gamma $$

    Computed in logarithms: no exponent makes all powers vanish, and the gradient at w = 0 is finite.
    """
    return jax.nn.softmax(exponents[:, None] * jnp.log(weights + epsilon), axis=-1)
