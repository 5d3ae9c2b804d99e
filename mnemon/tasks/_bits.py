"""What the tasks share whose targets are bits."""

import abc
import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ._contract import AbstractTask, Episode
from ._symbols import mean_where

# Logit of an oracle: the probability of the other value is below the resolution of float32.
_CERTAIN = 100.0
# The binary cross-entropy below which the thesis calls a network successful (table 3.3).
SUCCESS = 0.02


def bit_losses(logits: Float[Array, "time bits"], targets: Float[Array, "time bits"]) -> Float[Array, " time"]:
    """Binary cross-entropy in nats of each step, the mean over its bits."""
    return jnp.mean(jax.nn.softplus(logits) - targets * logits, axis=1)


def wrong_bits(
    logits: Float[Array, "time bits"], targets: Float[Array, "time bits"], mask: Bool[Array, " time"]
) -> Float[Array, ""]:
    """How many bits of the scored steps are wrong when a probability above one half means 1."""
    wrong = (logits > 0) != (targets > 0.5)
    return jnp.sum(wrong & mask[:, None]).astype(logits.dtype)


def random_bits(key: PRNGKeyArray, *shape: int) -> Float[Array, "..."]:
    """Fair bits."""
    return jax.random.bernoulli(key, shape=shape).astype(float)


def rows_at(rows: Float[Array, "n width"], index: Int[Array, " time"], where: Bool[Array, " time"]):
    """The rows of the given numbers; zeros in the steps where none is wanted."""
    return jnp.where(where[:, None], rows[jnp.clip(index, 0, rows.shape[0] - 1)], 0.0)


def entropy(probability: float) -> float:
    """Entropy in nats of a bit."""
    return -sum(p * math.log(p) for p in (probability, 1.0 - probability) if p > 0)


class AbstractBits(AbstractTask):
    """Rows of bits come in, rows of bits are wanted while the input is silent; only these steps are scored.

    `loss` is the binary cross-entropy of a bit in nats, `bit_error` the number of wrong bits of a sequence, `success`
    the share of sequences with a loss below 0.02. A mean loss below 0.02 counts as solved.
    """

    @property
    def symbolic(self) -> bool:
        return False

    @property
    @abc.abstractmethod
    def mean_answers(self) -> float:
        """The mean number of scored steps of an episode."""

    @property
    def chance(self) -> dict[str, float]:
        return {"loss": math.log(2.0), "bit_error": 0.5 * self.mean_answers * self.output_size, "success": 0.0}

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "bit_error": 0.0, "success": 1.0}

    def step_losses(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, " time"]:
        return bit_losses(outputs, episode.targets)

    def loss(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, ""]:
        return mean_where(self.step_losses(outputs, episode), episode.mask)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        loss = self.loss(outputs, episode)
        return {
            "loss": loss,
            "bit_error": wrong_bits(outputs, episode.targets, episode.mask),
            "success": (loss < SUCCESS).astype(loss.dtype),
        }

    def oracle(self, episode: Episode) -> Float[Array, "time outputs"]:
        return _CERTAIN * (2.0 * episode.targets - 1.0)

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["loss"] < SUCCESS

    def show(self, episode: Episode) -> str:
        return show_bits(episode)


def show_bits(episode: Episode) -> str:
    """Time goes right and channels go down: `#` is 1, `.` is 0, a sign stands for any other number."""
    length = int(episode.length)

    def lines(name: str, values: Float[Array, "time channels"], shown: Bool[Array, " time"]) -> list[str]:
        rows = ["".join(_mark(float(v)) if s else " " for v, s in zip(row, shown, strict=True)) for row in values.T]
        return [f"{name if n == 0 else '':<5}{row}" for n, row in enumerate(rows)]

    every = jnp.ones((length,), bool)
    inputs = lines("in", episode.inputs[:length], every)
    return "\n".join(inputs + lines("out", episode.targets[:length], episode.mask[:length]))


def _mark(value: float) -> str:
    if value in (0.0, 1.0):
        return "#" if value else "."
    return "+" if value > 0 else "-"
