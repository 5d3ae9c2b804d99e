"""Copying memory (Hochreiter & Schmidhuber 1997; thesis 4.3.1)."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ._contract import Episode
from ._recall import AbstractRecall, place


class Copying(AbstractRecall):
    r"""Remember `length` symbols over `delay` steps.

    ```
    in   hbaccdfgeb..........?..........
    out  ....................hbaccdfgeb
    ```

    The input is k data symbols, T - 1 blanks, a marker and k blanks; the target is blank until the marker has been
    read, then the data. All T + 2k steps are scored, so that a network without a memory reaches
    k ln n / (T + 2k) nats: 0.1733 for T = 100.

    **Options:**

    - `delay`: T, steps that the symbols are kept.
    - `symbols`: n, how many different symbols.
    - `length`: k, how many symbols to remember.

    **Notes.** The thesis prints this baseline as k log n / (T + 2n); its numbers are those of T + 2k.
    """

    measures: ClassVar[str] = "keeping symbols over a fixed delay"
    delay: int = eqx.field(static=True, default=100)
    symbols: int = eqx.field(static=True, default=8)
    length: int = eqx.field(static=True, default=10)

    @property
    def steps(self) -> int:
        """Number of steps of an episode."""
        return self.delay + 2 * self.length

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def chance(self) -> dict[str, float]:
        return self.blank_steps_are_free(self.steps)

    def sample(self, key: PRNGKeyArray) -> Episode:
        data = self.data(key)
        first = jnp.arange(self.length)
        inputs = place(self.steps, first, data).at[self.length + self.delay - 1].set(self.marker)
        targets = place(self.steps, first + self.length + self.delay, data)
        return Episode(inputs, targets, jnp.ones((self.steps,), bool), jnp.asarray(self.steps))
