"""Batch-normalised long short-term memory (thesis 2.10)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ._contract import BATCH_AXIS, AbstractCell, Key
from ._fixed import Fixed
from ._init import dropout, glorot_normal, orthogonal, require_dropout

EPS = 1e-5


class BNLSTMState(NamedTuple):
    """What a batch-normalised LSTM carries."""

    hidden: Float[Array, " hidden"]  # h_t
    cell: Float[Array, " hidden"]  # c_t, not normalised
    sums: Float[Array, " normalised"]  # what was normalised: h_{t-1} W_h | x_t W_x | c_t
    steps: Int[Array, ""]  # t


class Moments(NamedTuple):
    """What a batch said of `sums` at each step."""

    mean: Float[Array, "*time normalised"]
    variance: Float[Array, "*time normalised"]
    steps: Float[Array, "*time"]


class BNLSTM(AbstractCell[BNLSTMState, Array]):
    r"""LSTM with recurrent batch normalisation, with statistics of its own for each step.

    $$\begin{aligned}
    [i, f, o, g] &= \mathrm{BN}(h_{t-1} W_h; \gamma_h) + \mathrm{BN}(x_t W_x; \gamma_x) + b \\
    c_t &= \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g) \\
    h_t &= \sigma(o) \odot \tanh(\mathrm{BN}(c_t; \gamma_c, \beta_c)) \\
    \mathrm{BN}(v; \gamma, \beta) &= \beta + \gamma \odot (v - \mathrm{E}[v]) / \sqrt{\mathrm{Var}[v] + \epsilon}
    \end{aligned}$$

    (thesis 2.70-2.74; Cooijmans et al. 2016). With a key, E and Var are over the batch, and gradients go
    through them; without, they are averages over the batches seen so far, at the same step of a sequence.

    **Notes.** The averages are kept by `with_statistics`: the mean over the first batches, then a moving one
    with weight `statistics_rate` (the authors' code; the paper averages over the training set at the end).
    Steps beyond those that training has seen use the statistics of the last one it has. Examples that have
    ended (padding) still count in the statistics of a step. All gamma start at 0.1, as in the paper. An operation
    takes about 4.5 times as long as one of LSTM: three passes over the batch for means and variances at every
    step, and a batch whose examples see each other is not shared among cores.

    >>> import jax
    >>> from mnemon import unroll
    >>> cell = BNLSTM(3, 5, max_steps=20, key=jax.random.key(0))
    >>> result = unroll(cell, jax.numpy.ones((4, 7, 3)), key=jax.random.key(1))
    >>> cell = cell.with_statistics(result.statistics)
    >>> int(cell.updates.value.sum())
    7
    """

    input_weights: Float[Array, "input gates"]  # W_x: i | f | o | g
    recurrent_weights: Float[Array, "hidden gates"]  # W_h
    bias: Float[Array, " gates"]  # b
    gain: Float[Array, " normalised"]  # gamma_h | gamma_x | gamma_c
    shift: Float[Array, " hidden"]  # beta_c
    moments: Fixed  # population mean and variance, [max_steps, 2, normalised]
    updates: Fixed  # how often each step was seen, [max_steps]
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)
    statistics_rate: float = eqx.field(static=True)
    recurrent_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        max_steps: int = 1000,
        statistics_rate: float = 0.05,
        forget_bias: float = 1.0,
        recurrent_dropout: float = 0.0,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h and c.
        - `max_steps`: how many steps have statistics of their own; later ones share the last.
        - `statistics_rate`: weight of a batch in the population statistics.
        - `forget_bias`: initial b_f.
        - `recurrent_dropout`: probability of dropping a candidate value tanh(g).
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require(max_steps >= 1, "max_steps", max_steps, "at least one step", "max_steps=784")
        require(0 < statistics_rate <= 1, "statistics_rate", statistics_rate, "in (0, 1]", "statistics_rate=0.05")
        require_dropout(recurrent_dropout)
        input_key, recurrent_key = jax.random.split(key)
        self.input_weights = jnp.concatenate(
            [glorot_normal(k, input_size, hidden_size) for k in jax.random.split(input_key, 4)], axis=1
        )
        self.recurrent_weights = orthogonal(recurrent_key, hidden_size, blocks=4)
        self.bias = jnp.zeros((4 * hidden_size,)).at[hidden_size : 2 * hidden_size].set(forget_bias)
        self.gain = jnp.full((9 * hidden_size,), 0.1)
        self.shift = jnp.zeros((hidden_size,))
        zero_mean_unit_variance = jnp.array([[[0.0], [1.0]]])
        self.moments = Fixed(jnp.broadcast_to(zero_mean_unit_variance, (max_steps, 2, 9 * hidden_size)))
        self.updates = Fixed(jnp.zeros((max_steps,)))
        self.input_size, self.output_size, self.max_steps = input_size, hidden_size, max_steps
        self.statistics_rate, self.recurrent_dropout = statistics_rate, recurrent_dropout

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return tuple(jnp.split(self.recurrent_weights, 4, axis=1))

    def statistics(self, state: BNLSTMState) -> Moments:
        mean = jax.lax.pmean(state.sums, BATCH_AXIS)
        return Moments(mean, (state.sums - mean) ** 2, state.steps.astype(mean.dtype))

    def with_statistics(self, collected: Moments) -> "BNLSTM":
        rows = jnp.minimum(collected.steps.astype(int), self.max_steps) - 1
        seen = jnp.zeros((self.max_steps,)).at[rows].add(1.0)
        total = jnp.zeros_like(self.moments.array).at[rows].add(jnp.stack([collected.mean, collected.variance], 1))
        updates = self.updates.array + (seen > 0)
        rate = jnp.where(seen > 0, jnp.maximum(self.statistics_rate, 1 / jnp.maximum(updates, 1)), 0.0)
        difference = total / jnp.maximum(seen, 1)[:, None, None] - self.moments.array
        moments = self.moments.array + rate[:, None, None] * difference
        return eqx.tree_at(lambda cell: (cell.moments.array, cell.updates.array), self, (moments, updates))

    def init_state(self) -> BNLSTMState:
        zero = jnp.zeros((self.output_size,), self.bias.dtype)
        return BNLSTMState(zero, zero, jnp.zeros_like(self.gain), jnp.zeros((), jnp.int32))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " gates"]:
        return x @ self.input_weights

    def step(
        self, state: BNLSTMState, drive: Float[Array, " gates"], *, key: Key = None
    ) -> tuple[BNLSTMState, Float[Array, " hidden"]]:
        _refuse_batch_of_one(key)
        last_seen = jnp.maximum(jnp.sum(self.updates.value > 0), 1) - 1
        mean, variance = self.moments.value[jnp.minimum(state.steps, last_seen)]

        def normalise(values: Float[Array, " part"], start: int) -> Float[Array, " part"]:
            part = slice(start, start + values.size)
            if key is None:
                centre, spread = mean[part], variance[part]
            else:
                centre = jax.lax.pmean(values, BATCH_AXIS)
                spread = jax.lax.pmean((values - centre) ** 2, BATCH_AXIS)
            return self.gain[part] * (values - centre) * jax.lax.rsqrt(spread + EPS)

        sums = jnp.concatenate([state.hidden @ self.recurrent_weights, drive])
        i, f, o, candidate = jnp.split(jnp.sum(normalise(sums, 0).reshape(2, -1), 0) + self.bias, 4)
        candidate = dropout(jnp.tanh(candidate), self.recurrent_dropout, key)
        cell = jax.nn.sigmoid(f) * state.cell + jax.nn.sigmoid(i) * candidate
        hidden = jax.nn.sigmoid(o) * jnp.tanh(normalise(cell, sums.size) + self.shift)
        return BNLSTMState(hidden, cell, jnp.concatenate([sums, cell]), state.steps + 1), hidden


def _refuse_batch_of_one(key: Key) -> None:
    """In training a single example has no statistics: all that it would learn from is its own mean, zero."""
    if key is None:
        return
    try:
        size = jax.lax.psum(1, BATCH_AXIS)
    except NameError:  # outside of `unroll`
        size = 1
    require(size > 1, "batch", size, "two or more examples to train with batch statistics", "inputs[:2]")
