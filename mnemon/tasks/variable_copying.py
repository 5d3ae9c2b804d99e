"""Copying memory with a variable lag (Henaff et al. 2016; thesis 4.3.1)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ._contract import Episode
from ._recall import AbstractRecall, place


class VariableCopying(AbstractRecall):
    """Copying with a delay drawn uniformly from 1 to `delay`, so that no fixed clock can solve it.

    ```
    in   hbaccdfgeb....?..........
    out  ..............hbaccdfgeb
    ```

    **Options:**

    - `delay`: T, the longest lag.
    - `symbols`: n, how many different symbols.
    - `length`: k, how many symbols to remember.

    **Notes.** Every example has its own lag (the authors draw one for each batch); its loss is the mean over its own
    steps, and what follows them is padding.
    """

    measures: ClassVar[str] = "keeping symbols until told"
    delay: int = eqx.field(static=True, default=100)
    symbols: int = eqx.field(static=True, default=8)
    length: int = eqx.field(static=True, default=10)

    @property
    def horizon(self) -> int:
        return self.delay + 2 * self.length

    @property
    def chance(self) -> dict[str, float]:
        for_each_lag = [self.blank_steps_are_free(lag + 2 * self.length) for lag in range(1, self.delay + 1)]
        return {name: float(np.mean([chance[name] for chance in for_each_lag])) for name in for_each_lag[0]}

    def sample(self, key: PRNGKeyArray) -> Episode:
        data_key, lag_key = jax.random.split(key)
        data = self.data(data_key)
        lag = jax.random.randint(lag_key, (), 1, self.delay + 1)
        first = jnp.arange(self.length)
        inputs = place(self.horizon, first, data).at[self.length + lag - 1].set(self.marker)
        targets = place(self.horizon, first + self.length + lag, data)
        length = lag + 2 * self.length
        return Episode(inputs, targets, jnp.arange(self.horizon) < length, length)
