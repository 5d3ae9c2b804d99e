"""Scores shared by the tasks whose targets are symbols."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

# Logit of an oracle: the probability of every other symbol is below the resolution of float32.
_CERTAIN = 100.0


def mean_where(values: Float[Array, " time"], mask: Bool[Array, " time"]) -> Float[Array, ""]:
    """Mean over the steps of the mask."""
    return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def cross_entropy(
    logits: Float[Array, "time symbols"], targets: Int[Array, " time"], mask: Bool[Array, " time"]
) -> Float[Array, ""]:
    """Mean cross-entropy in nats over the scored steps."""
    log_probabilities = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(log_probabilities, targets[:, None], axis=1)[:, 0]
    return -mean_where(chosen, mask)


def accuracy(
    logits: Float[Array, "time symbols"], targets: Int[Array, " time"], mask: Bool[Array, " time"]
) -> Float[Array, ""]:
    """Share of the scored steps whose likeliest symbol is the target."""
    return mean_where((jnp.argmax(logits, axis=1) == targets).astype(logits.dtype), mask)


def certain(targets: Int[Array, " time"], symbols: int) -> Float[Array, "time symbols"]:
    """Logits of a network that is certain of the targets."""
    return _CERTAIN * jax.nn.one_hot(targets, symbols)


def best_guess(counts: np.ndarray) -> dict[str, float]:
    """Loss and accuracy of a network that knows how often each class occurs and nothing else.

    With rows of counts, it also knows the row (bigrams: the character before).
    """
    counts = np.atleast_2d(np.asarray(counts, float))
    rows, total = counts.sum(axis=1, keepdims=True), counts.sum()
    shares = counts[counts > 0] / np.broadcast_to(rows, counts.shape)[counts > 0]
    entropy = -float((counts[counts > 0] * np.log(shares)).sum() / total)
    return {"loss": entropy, "accuracy": float(counts.max(axis=1).sum() / total)}
