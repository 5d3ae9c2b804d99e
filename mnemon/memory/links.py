"""Temporal links: in which order were the slots written?"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._apart import apart


def update_precedence(
    precedence: Float[Array, " slots"], write_weights: Float[Array, " slots"]
) -> Float[Array, " slots"]:
    r"""How much each slot was the last one written to: $$ p' = (1 - \sum_i w[i]) p + w $$"""
    return (1.0 - jnp.sum(write_weights)) * precedence + write_weights


@jax.custom_vjp
def update_links(
    links: Float[Array, "slots slots"],
    precedence: Float[Array, " slots"],
    write_weights: Float[Array, " slots"],
) -> Float[Array, "slots slots"]:
    r"""L[i, j]: slot i was written to right after slot j.

    $$ L'[i, j] = (1 - w[i] - w[j]) L[i, j] + w[i] p[j], \quad L'[i, i] = 0 $$

    with the `precedence` p of before this write. One pass over the matrix, and few back.
    """
    return _off_diagonal(_kept(write_weights) * links + write_weights[:, None] * precedence[None, :])


def _update_links_forward(links, precedence, write_weights):
    return update_links(links, precedence, write_weights), (links, precedence, write_weights)


def _update_links_backward(residuals, after_ct):
    links, precedence, write_weights = residuals
    after_ct = _off_diagonal(after_ct)
    lost = after_ct * links
    weights_ct = after_ct @ precedence - jnp.sum(lost, axis=1) - jnp.sum(lost, axis=0)
    return after_ct * _kept(write_weights), write_weights @ after_ct, weights_ct


update_links.defvjp(_update_links_forward, _update_links_backward)


def _kept(write_weights: Float[Array, " slots"]) -> Float[Array, "slots slots"]:
    return 1.0 - write_weights[:, None] - apart(write_weights)[None, :]


def _off_diagonal(matrix: Float[Array, "slots slots"]) -> Float[Array, "slots slots"]:
    row = jax.lax.broadcasted_iota(jnp.int32, matrix.shape, 0)
    column = jax.lax.broadcasted_iota(jnp.int32, matrix.shape, 1)
    return jnp.where(row == column, 0.0, matrix)


@jax.custom_vjp
def follow_links(
    links: Float[Array, "slots slots"], read_weights: Float[Array, "heads slots"]
) -> tuple[Float[Array, "heads slots"], Float[Array, "heads slots"]]:
    r"""What was written right after and right before what was read: $$ f = L w^r, \quad b = L^T w^r $$"""
    return _along(links, read_weights), read_weights @ links


def _follow_links_forward(links, read_weights):
    return follow_links(links, read_weights), (links, read_weights)


def _follow_links_backward(residuals, cts):
    links, read_weights = residuals
    forward_ct, backward_ct = cts
    # Both outer products in one.
    left, right = jnp.concatenate([forward_ct, read_weights]), jnp.concatenate([read_weights, backward_ct])
    return left.T @ right, forward_ct @ links + _along(links, backward_ct)


follow_links.defvjp(_follow_links_forward, _follow_links_backward)


def _along(links: Float[Array, "slots slots"], weights: Float[Array, "heads slots"]) -> Float[Array, "heads slots"]:
    # Not `weights @ links.T`, which XLA computes more slowly.
    return (links @ weights.T).T


def mix_read_modes(
    modes: Float[Array, "heads 3"],
    backward: Float[Array, "heads slots"],
    content: Float[Array, "heads slots"],
    forward: Float[Array, "heads slots"],
) -> Float[Array, "heads slots"]:
    r"""$$ w^r = \pi[1] b + \pi[2] c + \pi[3] f $$"""
    return modes[:, :1] * backward + modes[:, 1:2] * content + modes[:, 2:] * forward
