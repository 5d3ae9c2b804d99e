"""Temporal links: in which order were the slots written?"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def update_precedence(
    precedence: Float[Array, " slots"], write_weights: Float[Array, " slots"]
) -> Float[Array, " slots"]:
    r"""How much each slot was the last one written to: $$ p' = (1 - \sum_i w[i]) p + w $$"""
    return (1.0 - jnp.sum(write_weights)) * precedence + write_weights


def update_links(
    links: Float[Array, "slots slots"],
    precedence: Float[Array, " slots"],
    write_weights: Float[Array, " slots"],
) -> Float[Array, "slots slots"]:
    r"""L[i, j]: slot i was written to right after slot j.

    $$ L'[i, j] = (1 - w[i] - w[j]) L[i, j] + w[i] p[j], \quad L'[i, i] = 0 $$

    with the `precedence` p of before this write. One pass over the matrix.
    """
    to, since = write_weights[:, None], write_weights[None, :]
    row = jax.lax.broadcasted_iota(jnp.int32, links.shape, 0)
    column = jax.lax.broadcasted_iota(jnp.int32, links.shape, 1)
    return jnp.where(row == column, 0.0, (1.0 - to - since) * links + to * precedence[None, :])


def follow_links(
    links: Float[Array, "slots slots"], read_weights: Float[Array, "heads slots"]
) -> tuple[Float[Array, "heads slots"], Float[Array, "heads slots"]]:
    r"""What was written right after and right before what was read: $$ f = L w^r, \quad b = L^T w^r $$"""
    return read_weights @ links.T, read_weights @ links


def mix_read_modes(
    modes: Float[Array, "heads 3"],
    backward: Float[Array, "heads slots"],
    content: Float[Array, "heads slots"],
    forward: Float[Array, "heads slots"],
) -> Float[Array, "heads slots"]:
    r"""$$ w^r = \pi[1] b + \pi[2] c + \pi[3] f $$"""
    return modes[:, :1] * backward + modes[:, 1:2] * content + modes[:, 2:] * forward
