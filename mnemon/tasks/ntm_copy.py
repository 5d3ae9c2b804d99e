"""The copy task of the neural Turing machine (Graves, Wayne & Danihelka 2014; thesis 3.7.3)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from .._errors import require
from ._bits import AbstractBits, random_bits, rows_at
from ._contract import Episode


class NTMCopy(AbstractBits):
    """Repeat a sequence of random rows of bits when it has ended.

    ```
    in   .##....    two bits
         ##.....
         ...#...    the end, on a channel of its own
    out      .##
             ##.
    ```

    The number of rows T is uniform from `min_length` to `max_length`: T rows, the delimiter, T silent steps in which
    the rows are wanted.

    **Options:**

    - `max_length`: most rows; networks are trained to 20 and tested to 120.
    - `min_length`: fewest rows.
    - `bits`: bits of a row.

    **Notes.** The thesis calls a network successful by its loss at the longest length of training:
    `mnemon evaluate RUN --min-length 20`.
    """

    measures: ClassVar[str] = "storing a sequence of bits and reading it in order"
    max_length: int = eqx.field(static=True, default=20)
    min_length: int = eqx.field(static=True, default=1)
    bits: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        require(self.bits >= 1, "bits", self.bits, "at least one bit", "bits=8")
        require(self.min_length >= 1, "min_length", self.min_length, "at least one row", "min_length=1")
        require(
            self.max_length >= self.min_length,
            "max_length",
            self.max_length,
            f"at least min_length={self.min_length}",
            "max_length=20",
        )

    @property
    def input_size(self) -> int:
        return self.bits + 1

    @property
    def output_size(self) -> int:
        return self.bits

    @property
    def horizon(self) -> int:
        return 2 * self.max_length + 1

    @property
    def mean_answers(self) -> float:
        return 0.5 * (self.min_length + self.max_length)

    def sample(self, key: PRNGKeyArray) -> Episode:
        rows_key, length_key = jax.random.split(key)
        rows = random_bits(rows_key, self.max_length, self.bits)
        length = jax.random.randint(length_key, (), self.min_length, self.max_length + 1)
        time = jnp.arange(self.horizon)
        answer = (time > length) & (time <= 2 * length)
        inputs = jnp.column_stack([rows_at(rows, time, time < length), time == length])
        return Episode(inputs, rows_at(rows, time - length - 1, answer), answer, 2 * length + 1)
