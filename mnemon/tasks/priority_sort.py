"""Priority sort (Graves, Wayne & Danihelka 2014)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from .._errors import require
from ._bits import AbstractBits, random_bits
from ._contract import Episode


class PrioritySort(AbstractBits):
    """Rows of bits come with priorities; those of the highest are wanted, highest first.

    ```
    in   .##...    two bits
         ##....
         --+...    priority, from -1 to 1
         ...#..    the end
    out      ##
             .#
    ```

    **Options:**

    - `items`: rows that come in.
    - `answers`: rows that are wanted.
    - `bits`: bits of a row.

    **Notes.** The paper states neither the width of a row nor the order, and mentions no end marker; with it the
    number of items can differ from that of training.
    """

    measures: ClassVar[str] = "sorting"
    items: int = eqx.field(static=True, default=20)
    answers: int = eqx.field(static=True, default=16)
    bits: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        require(self.bits >= 1, "bits", self.bits, "at least one bit", "bits=8")
        require(self.answers >= 1, "answers", self.answers, "at least one row", "answers=16")
        require(self.items >= self.answers, "items", self.items, f"at least answers={self.answers}", "items=20")

    @property
    def input_size(self) -> int:
        return self.bits + 2

    @property
    def output_size(self) -> int:
        return self.bits

    @property
    def horizon(self) -> int:
        return self.items + 1 + self.answers

    @property
    def mean_answers(self) -> float:
        return self.answers

    def sample(self, key: PRNGKeyArray) -> Episode:
        rows_key, priority_key = jax.random.split(key)
        rows = random_bits(rows_key, self.items, self.bits)
        priorities = jax.random.uniform(priority_key, (self.items,), minval=-1.0, maxval=1.0)
        silent = self.answers + 1
        shown = jnp.pad(jnp.column_stack([rows, priorities]), ((0, silent), (0, 0)))
        time = jnp.arange(self.horizon)
        best = jnp.argsort(-priorities)[: self.answers]
        targets = jnp.pad(rows[best], ((self.items + 1, 0), (0, 0)))
        inputs = jnp.column_stack([shown, time == self.items])
        return Episode(inputs, targets, time > self.items, jnp.asarray(self.horizon))
