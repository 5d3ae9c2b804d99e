"""Dynamic least-recently-used addressing (thesis 2.67-2.68)."""

import jax
from jaxtyping import Array, Float


def least_recently_used(
    logits: Float[Array, " slots"],
    average: Float[Array, " slots"],
    gate: Float[Array, ""],
    decay: float = 0.1,
) -> tuple[Float[Array, " slots"], Float[Array, " slots"]]:
    r"""Logits that avoid the slots which were addressed lately, and the new average of the logits.

    $$ z_t - \gamma_t v_{t-1}, \qquad v_t = \lambda v_{t-1} + (1 - \lambda) z_t $$

    The gate \(\gamma_t\) in (0, 1) says how much: with 0 nothing changes. No gradient goes through \(v\).
    """
    average = jax.lax.stop_gradient(average)
    moved = jax.lax.stop_gradient(decay * average + (1.0 - decay) * logits)
    return logits - gate * average, moved
