"""Content addressing: where does the memory look like this key?"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Added to every squared norm: a word or a key of zeros is like nothing, with a finite gradient.
NORM_EPSILON = 1e-6


def oneplus(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """1 + log(1 + e^x), at least 1."""
    return 1.0 + jax.nn.softplus(x)


def cosine_similarity(
    keys: Float[Array, "heads word"],
    memory: Float[Array, "slots word"],
    mask: Float[Array, "heads word"] | None = None,
) -> Float[Array, "heads slots"]:
    r"""Cosine of the angle between each key and each word of the memory; 0 where one of them is zero.

    $$ D(k, v) = k \cdot v \; / \; \sqrt{(|k|^2 + \epsilon) (|v|^2 + \epsilon)} $$

    With a `mask`, both are first multiplied by it, entry by entry: what the mask hides does not count.

    >>> cosine_similarity(jnp.array([[3.0, 4.0]]), jnp.array([[6.0, 8.0], [-4.0, 3.0], [0.0, 0.0]])).round(3)
    Array([[1., 0., 0.]], dtype=float32)
    """
    if mask is None:
        norms = jnp.sum(memory**2, axis=-1)[None]
    else:
        # |m * v|^2 is linear in v^2, so the masked copies of the memory need not be built, one for each head.
        norms = mask**2 @ (memory**2).T
        keys = mask * keys
    keys = keys * jax.lax.rsqrt(jnp.sum(keys**2, axis=-1, keepdims=True) + NORM_EPSILON)
    if mask is not None:
        keys = mask * keys
    return (keys @ memory.T) * jax.lax.rsqrt(norms + NORM_EPSILON)


def content_weights(
    keys: Float[Array, "heads word"],
    strengths: Float[Array, " heads"],
    memory: Float[Array, "slots word"],
    mask: Float[Array, "heads word"] | None = None,
) -> Float[Array, "heads slots"]:
    r"""Softmax over the slots of strength times cosine similarity.

    $$ C(M, k, \beta)[i] = e^{\beta D(k, M[i])} / \sum_j e^{\beta D(k, M[j])} $$
    """
    return jax.nn.softmax(strengths[:, None] * cosine_similarity(keys, memory, mask), axis=-1)
