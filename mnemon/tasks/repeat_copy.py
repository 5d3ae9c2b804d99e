"""Repeat copy (Graves, Wayne & Danihelka 2014)."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from .._errors import require
from ._bits import AbstractBits, entropy, random_bits, rows_at
from ._contract import Episode


class RepeatCopy(AbstractBits):
    """Repeat a sequence of rows as often as told, then mark the end.

    ```
    in   .#.........    one bit
         ..#........    the rows end
         ...+.......    how often
    out      .#.#.#.    the bit
             ......#    the end
    ```

    T rows, a delimiter, the number of repetitions R, then T R rows and an end marker are wanted. T and R are uniform.

    **Options:**

    - `max_length`: most rows.
    - `min_length`: fewest rows.
    - `max_repeats`: most repetitions.
    - `min_repeats`: fewest repetitions.
    - `counted`: the number R is scaled to mean 0 and variance 1 over 1 to this. It is not `max_repeats`, so that the
      same number looks the same to a network tested beyond its training.
    - `bits`: bits of a row.
    """

    measures: ClassVar[str] = "running a stored sequence in a counted loop"
    max_length: int = eqx.field(static=True, default=10)
    min_length: int = eqx.field(static=True, default=1)
    max_repeats: int = eqx.field(static=True, default=10)
    min_repeats: int = eqx.field(static=True, default=1)
    counted: int = eqx.field(static=True, default=10)
    bits: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        require(self.bits >= 1, "bits", self.bits, "at least one bit", "bits=8")
        require(self.counted >= 2, "counted", self.counted, "at least 2", "counted=10")
        for what in ("length", "repeats"):
            fewest, most = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            require(fewest >= 1, f"min_{what}", fewest, "at least 1", f"min_{what}=1")
            require(most >= fewest, f"max_{what}", most, f"at least min_{what}={fewest}", f"max_{what}=10")

    @property
    def input_size(self) -> int:
        return self.bits + 2

    @property
    def output_size(self) -> int:
        return self.bits + 1

    @property
    def horizon(self) -> int:
        return self.max_length * (self.max_repeats + 1) + 3

    @property
    def _answers(self) -> np.ndarray:
        """The number of scored steps for each pair of length and repetitions."""
        lengths = np.arange(self.min_length, self.max_length + 1)
        return np.outer(lengths, np.arange(self.min_repeats, self.max_repeats + 1)) + 1.0

    @property
    def mean_answers(self) -> float:
        return float(self._answers.mean())

    @property
    def chance(self) -> dict[str, float]:
        """The bits are guessed; the end marker is known to be rare, and missed."""
        marker = entropy(float(np.mean(1.0 / self._answers)))
        loss = (self.bits * math.log(2.0) + marker) / self.output_size
        # In the step of the end marker the bits are 0.
        return {"loss": loss, "bit_error": 0.5 * self.bits * (self.mean_answers - 1.0) + 1.0, "success": 0.0}

    def sample(self, key: PRNGKeyArray) -> Episode:
        rows_key, length_key, repeats_key = jax.random.split(key, 3)
        rows = random_bits(rows_key, self.max_length, self.bits)
        length = jax.random.randint(length_key, (), self.min_length, self.max_length + 1)
        repeats = jax.random.randint(repeats_key, (), self.min_repeats, self.max_repeats + 1)
        count = (repeats - 0.5 * (1 + self.counted)) / math.sqrt((self.counted**2 - 1) / 12)
        time = jnp.arange(self.horizon)
        end = length + 2 + length * repeats  # the step of the end marker
        copied = (time >= length + 2) & (time < end)
        inputs = jnp.column_stack(
            [rows_at(rows, time, time < length), time == length, jnp.where(time == length + 1, count, 0.0)]
        )
        targets = jnp.column_stack([rows_at(rows, (time - length - 2) % length, copied), time == end])
        return Episode(inputs, targets, copied | (time == end), end + 1)
