"""What the tasks share whose inputs or targets are symbols."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ._contract import AbstractTask, Episode

# Logit of an oracle: the probability of every other symbol is below the resolution of float32.
_CERTAIN = 100.0


def mean_where(values: Float[Array, " time"], mask: Bool[Array, " time"]) -> Float[Array, ""]:
    """Mean over the steps of the mask."""
    return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def cross_entropies(logits: Float[Array, "time symbols"], targets: Int[Array, " time"]) -> Float[Array, " time"]:
    """Cross-entropy in nats of each step."""
    log_probabilities = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_probabilities, targets[:, None], axis=1)[:, 0]


def cross_entropy(
    logits: Float[Array, "time symbols"], targets: Int[Array, " time"], mask: Bool[Array, " time"]
) -> Float[Array, ""]:
    """Mean cross-entropy in nats over the scored steps."""
    return mean_where(cross_entropies(logits, targets), mask)


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


class AbstractClasses(AbstractTask):
    """A task that wants one of `output_size` classes at each scored step; the loss is their mean cross-entropy."""

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "accuracy": 1.0}

    def loss(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, ""]:
        return cross_entropy(outputs, episode.targets, episode.mask)

    def step_losses(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, " time"]:
        return cross_entropies(outputs, episode.targets)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        return {
            "loss": self.loss(outputs, episode),
            "accuracy": accuracy(outputs, episode.targets, episode.mask),
        }

    def oracle(self, episode: Episode) -> Float[Array, "time outputs"]:
        return certain(episode.targets, self.output_size)


class AbstractNamed(AbstractTask):
    """A task whose inputs are symbols with names; its outputs are the same symbols unless it says otherwise."""

    symbols: eqx.AbstractVar[tuple[str, ...]]

    @property
    def input_size(self) -> int:
        return len(self.symbols)

    @property
    def output_size(self) -> int:
        return len(self.symbols)

    @property
    def symbolic(self) -> bool:
        return True

    @property
    def symbol_names(self) -> tuple[str, ...] | None:
        return self.symbols
