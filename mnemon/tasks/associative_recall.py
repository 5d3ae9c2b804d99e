"""Associative recall (Graves, Wayne & Danihelka 2014; thesis 3.7.3)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from .._errors import require
from ._bits import AbstractBits, random_bits, rows_at
from ._contract import Episode


class AssociativeRecall(AbstractBits):
    """Items go by, one of them is shown again, and the item that followed it is wanted.

    ```
    in   ..#.##.#..##...    one bit, items of two rows
         #..#..#........    an item begins
         .........#..#..    the query begins and ends
    out               #.
    ```

    An item is a marked step and `item_length` rows of bits. The number of items is uniform from `min_items` to
    `max_items`, and so is the query among all items but the last.

    **Options:**

    - `max_items`: most items; networks are trained to 6 and tested to 20.
    - `min_items`: fewest items.
    - `item_length`: rows of an item.
    - `bits`: bits of a row.
    """

    measures: ClassVar[str] = "finding what followed an item"
    max_items: int = eqx.field(static=True, default=6)
    min_items: int = eqx.field(static=True, default=2)
    item_length: int = eqx.field(static=True, default=3)
    bits: int = eqx.field(static=True, default=6)

    def __check_init__(self):
        require(self.bits >= 1, "bits", self.bits, "at least one bit", "bits=6")
        require(self.item_length >= 1, "item_length", self.item_length, "at least one row", "item_length=3")
        require(self.min_items >= 2, "min_items", self.min_items, "at least two items", "min_items=2")
        require(
            self.max_items >= self.min_items,
            "max_items",
            self.max_items,
            f"at least min_items={self.min_items}",
            "max_items=6",
        )

    @property
    def input_size(self) -> int:
        return self.bits + 2

    @property
    def output_size(self) -> int:
        return self.bits

    @property
    def horizon(self) -> int:
        return (self.item_length + 1) * (self.max_items + 2)

    @property
    def mean_answers(self) -> float:
        return self.item_length

    def sample(self, key: PRNGKeyArray) -> Episode:
        rows_key, count_key, query_key = jax.random.split(key, 3)
        items = random_bits(rows_key, self.max_items, self.item_length, self.bits)
        count = jax.random.randint(count_key, (), self.min_items, self.max_items + 1)
        asked = jax.random.randint(query_key, (), 0, count - 1)
        # Blocks of a marked step and an item's rows: the items, the query, and the answer (marked as the query's end).
        time = jnp.arange(self.horizon)
        block, within = time // (self.item_length + 1), time % (self.item_length + 1)
        marked, answer = within == 0, (block == count + 1) & (within > 0)
        rows = items.reshape(-1, self.bits)
        shown = jnp.where(block == count, asked, block) * self.item_length + within - 1
        inputs = jnp.column_stack(
            [
                rows_at(rows, shown, ~marked & (block <= count)),
                marked & (block < count),
                marked & ((block == count) | (block == count + 1)),
            ]
        )
        targets = rows_at(rows, (asked + 1) * self.item_length + within - 1, answer)
        return Episode(inputs, targets, answer, (count + 2) * (self.item_length + 1))
