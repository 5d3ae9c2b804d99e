"""What copying, variable-lag copying and denoising share: symbols to keep, a delay, a marker, recall."""

import math
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ._contract import Episode
from ._symbols import AbstractClasses, accuracy

BLANK = 0


class AbstractRecall(AbstractClasses):
    """Symbols 1..n are data, 0 is blank, n + 1 is the marker after which the data are wanted in order.

    A loss below a tenth of the memoryless baseline counts as solved.
    """

    delay: eqx.AbstractVar[int]
    symbols: eqx.AbstractVar[int]
    length: eqx.AbstractVar[int]

    def __check_init__(self):
        require(self.delay >= 1, "delay", self.delay, "at least one step", "delay=100")
        require(self.symbols >= 2, "symbols", self.symbols, "at least two symbols", "symbols=8")
        require(self.length >= 1, "length", self.length, "at least one symbol to recall", "length=10")

    @property
    def input_size(self) -> int:
        return self.symbols + 2

    @property
    def output_size(self) -> int:
        return self.symbols + 1

    @property
    def symbolic(self) -> bool:
        return True

    @property
    def marker(self) -> int:
        return self.symbols + 1

    @property
    def perfect(self) -> dict[str, float]:
        return {**super().perfect, "recall": 1.0}

    def data(self, key: PRNGKeyArray) -> Int[Array, " length"]:
        """The symbols to recall."""
        return jax.random.randint(key, (self.length,), 1, self.symbols + 1)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        recalled = episode.mask & (episode.targets != BLANK)
        return {**super().metrics(outputs, episode), "recall": accuracy(outputs, episode.targets, recalled)}

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["loss"] < 0.1 * self.chance["loss"]

    def show(self, episode: Episode) -> str:
        names = ["."] + [_letter(n) for n in range(self.symbols)] + ["?"]
        inputs = "".join(names[int(s)] for s in episode.inputs[: int(episode.length)])
        targets = "".join(names[int(s)] for s in episode.targets[: int(episode.length)])
        return f"in   {inputs}\nout  {targets}"

    def blank_steps_are_free(self, steps: float) -> dict[str, float]:
        """The metrics without a memory when `steps` steps are scored: blanks are known, the data are guessed."""
        blank = 1.0 - self.length / steps
        return {
            "loss": self.length * math.log(self.symbols) / steps,
            "accuracy": blank + (1.0 - blank) / self.symbols,
            "recall": 1.0 / self.symbols,
        }


def _letter(n: int) -> str:
    return chr(ord("a") + n) if n < 26 else f"<{n}>"


def place(length: int, positions: Int[Array, " n"], values: Int[Array, " n"]) -> Int[Array, " time"]:
    """A sequence of blanks with `values` at `positions`."""
    return jnp.zeros((length,), values.dtype).at[positions].set(values)
