"""Zoneout: a cell whose state is kept at random (Krueger et al. 2017)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import require, unknown
from ._contract import AbstractCell, Key


class Zoneout(AbstractCell[Any, Any]):
    r"""Any cell, with entries of its state that keep their old value at random.

    $$s_t = d_t \odot s_{t-1} + (1 - d_t) \odot \tilde s_t, \qquad d_t \sim \mathrm{Bernoulli}(z)$$

    for each named part s of the state, with a rate z of its own, where the cell computes \(\tilde s_t\).
    Without a key d_t is its mean z. The output is the `hidden` part.

    **Notes.** As in the paper's equations, an LSTM computes its new h from the new c before that is zoned out;
    the authors' code uses the c that has been.

    >>> import jax
    >>> from mnemon.cells import LSTM
    >>> cell = Zoneout(LSTM(3, 5, key=jax.random.key(0)), hidden=0.05, cell=0.5)
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3), key=jax.random.key(1))
    >>> y.shape
    (5,)
    """

    inner: AbstractCell
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    rates: tuple[tuple[str, float], ...] = eqx.field(static=True)

    def __init__(self, inner: AbstractCell, /, **rates: float):
        """**Arguments:**

        - `inner`: a cell whose output is the `hidden` part of its state: RNN, LSTM, GRU, JANET, GORU, ...
        - `rates`: for each part of the state the probability that an entry is kept.
        """
        state = eqx.filter_eval_shape(inner.init_state)
        hidden = getattr(state, "hidden", None)
        require(
            hidden is not None and hidden.shape == (inner.output_size,),
            "inner",
            type(inner).__name__,
            "a cell whose output is the `hidden` part of its state",
            "Zoneout(LSTM(10, 70, key=key), hidden=0.05, cell=0.5)",
        )
        for name, rate in rates.items():
            if name not in state._fields:
                raise unknown(f"part of the state of {type(inner).__name__}", name, state._fields)
            require(0 <= rate < 1, name, rate, "a probability below 1", f"{name}=0.1")
        self.inner = inner
        self.input_size, self.output_size = inner.input_size, inner.output_size
        self.rates = tuple(rates.items())

    def prepare(self) -> "Zoneout":
        return eqx.tree_at(lambda cell: cell.inner, self, self.inner.prepare())

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return self.inner.recurrent_matrices()

    def axes(self) -> dict[str, Any]:
        inner = self.inner.axes()
        return {"inner": inner, "input_size": "x", "output_size": "h"} if inner else {}

    def statistics(self, state: Any) -> Any:
        return self.inner.statistics(state)

    def with_statistics(self, collected: Any) -> "Zoneout":
        return eqx.tree_at(lambda cell: cell.inner, self, self.inner.with_statistics(collected))

    def init_state(self) -> Any:
        return self.inner.init_state()

    def drive(self, x: Float[Array, " input"]) -> Any:
        return self.inner.drive(x)

    def step(self, state: Any, drive: Any, *, key: Key = None) -> tuple[Any, Float[Array, " output"]]:
        cell_key, *keys = [None] * (1 + len(self.rates)) if key is None else jax.random.split(key, 1 + len(self.rates))
        after, _ = self.inner.step(state, drive, key=cell_key)
        zoned = {
            name: _zone_out(getattr(state, name), getattr(after, name), rate, part_key)
            for (name, rate), part_key in zip(self.rates, keys, strict=True)
        }
        after = after._replace(**zoned)
        return after, after.hidden


def _zone_out(before: Array, after: Array, rate: float, key: Key) -> Array:
    if key is None:
        return rate * before + (1 - rate) * after
    return jnp.where(jax.random.bernoulli(key, rate, before.shape), before, after)
