"""Copying memory (Hochreiter & Schmidhuber 1997; thesis 4.3.1)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from .._errors import require
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
    - `random_labels`: want other symbols than those that were read, so that nothing can be learned (a test of
      stability, thesis 4.3.5).
    - `reset_every`: episodes that the network's state runs through before it starts afresh; with more than 1 the
      network must learn to forget by itself (thesis 4.3.5).

    **Notes.** The thesis prints this baseline as k log n / (T + 2n); its numbers are those of T + 2k.
    """

    measures: ClassVar[str] = "keeping symbols over a fixed delay"
    delay: int = eqx.field(static=True, default=100)
    symbols: int = eqx.field(static=True, default=8)
    length: int = eqx.field(static=True, default=10)
    random_labels: bool = eqx.field(static=True, default=False)
    reset_every: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require(self.reset_every >= 1, "reset_every", self.reset_every, "at least one episode", "reset_every=5")

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
        wanted = self.data(jax.random.fold_in(key, 1)) if self.random_labels else data
        targets = place(self.steps, first + self.length + self.delay, wanted)
        return Episode(inputs, targets, jnp.ones((self.steps,), bool), jnp.asarray(self.steps))

    @property
    def carries_state(self) -> bool:
        return self.reset_every > 1

    def batch(self, key: PRNGKeyArray, update: Int[Array, ""] | int, size: int) -> Episode:
        episodes = super().batch(key, update, size)
        if not self.carries_state:
            return episodes
        return episodes._replace(reset=jnp.broadcast_to(update % self.reset_every == 0, (size,)))
