"""Denoising (Jing et al. 2017; thesis 4.3.2)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from .._errors import require
from ._contract import Episode
from ._recall import AbstractRecall, place


class Denoising(AbstractRecall):
    """Pick `length` symbols out of `delay` steps of noise and repeat them after the marker.

    ```
    in   ..h...b.ac...cd.f..g.e...b..?..........
    out  .............................hbaccdfgeb
    ```

    **Options:**

    - `delay`: T, steps of noise in which the symbols are hidden.
    - `symbols`: n, how many different symbols.
    - `length`: k, how many symbols to remember.

    **Notes.** Only the steps after the marker are scored, as in the authors' code, so that a network without a memory
    reaches ln n = 2.079 nats.
    """

    measures: ClassVar[str] = "keeping what matters, ignoring noise"
    delay: int = eqx.field(static=True, default=100)
    symbols: int = eqx.field(static=True, default=8)
    length: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        require(
            self.delay >= self.length,
            "delay",
            self.delay,
            f"room for the {self.length} symbols",
            f"delay={10 * self.length}",
        )

    @property
    def steps(self) -> int:
        """Number of steps of an episode."""
        return self.delay + 1 + self.length

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def scored_steps(self) -> int:
        return self.length

    @property
    def chance(self) -> dict[str, float]:
        return self.blank_steps_are_free(self.length)

    def sample(self, key: PRNGKeyArray) -> Episode:
        data_key, place_key = jax.random.split(key)
        data = self.data(data_key)
        positions = jnp.sort(jax.random.choice(place_key, self.delay, (self.length,), replace=False))
        inputs = place(self.steps, positions, data).at[self.delay].set(self.marker)
        targets = place(self.steps, jnp.arange(self.length) + self.delay + 1, data)
        return Episode(inputs, targets, jnp.arange(self.steps) > self.delay, jnp.asarray(self.steps))
