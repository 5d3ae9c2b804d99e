"""Statistical recurrent unit (thesis 2.8)."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import glorot_uniform


class SRUState(NamedTuple):
    """What an SRU carries."""

    averages: Float[Array, "scales statistics"]  # m_t, one row for each alpha


class SRU(AbstractCell[SRUState, Array]):
    r"""SRU: moving averages of recurrent statistics at several time scales, no gate.

    $$\begin{aligned}
    r_t &= f(m_{t-1} W_r + b_r) \\
    \hat m_t &= f(r_t W_m + x_t W_x + b_m) \\
    m_t^{(\alpha)} &= \alpha\, m_{t-1}^{(\alpha)} + (1 - \alpha)\, \hat m_t \quad\text{for each } \alpha \\
    h_t &= f(m_t W_h + b_h)
    \end{aligned}$$

    with f = ReLU and m_t the averages of all scales side by side (thesis 2.43-2.47).

    **Notes.** The default scales are those of Oliva et al. (2017); the thesis's experiments use 0, 0.5, 0.9,
    0.99 and 0.999. Weights start Glorot uniform with gain sqrt(2) and biases at zero, as in the thesis's
    experiments (Oliva et al.: all weights uniform in [-0.1, 0.1]).

    >>> import jax
    >>> cell = SRU(3, 5, statistics_size=4, recurrent_size=2, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.averages.shape, y.shape
    ((5, 4), (5,))
    """

    input_weights: Float[Array, "input statistics"]  # W_x
    statistics_weights: Float[Array, "recurrent statistics"]  # W_m
    statistics_bias: Float[Array, " statistics"]  # b_m
    recurrent_weights: Float[Array, "averages recurrent"]  # W_r
    recurrent_bias: Float[Array, " recurrent"]  # b_r
    output_weights: Float[Array, "averages hidden"]  # W_h
    output_bias: Float[Array, " hidden"]  # b_h
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    statistics_size: int = eqx.field(static=True)
    alphas: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        statistics_size: int = 64,
        recurrent_size: int = 16,
        alphas: Sequence[float] = (0.0, 0.25, 0.5, 0.9, 0.99),
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of the output h.
        - `statistics_size`: size of the statistics that are averaged.
        - `recurrent_size`: size of r, the summary of the averages that the next statistics see.
        - `alphas`: the scales of the moving averages, each in [0, 1).
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=60")
        require(statistics_size >= 1, "statistics_size", statistics_size, "at least one", "statistics_size=55")
        require(recurrent_size >= 1, "recurrent_size", recurrent_size, "at least one", "recurrent_size=16")
        in_range = len(alphas) >= 1 and all(0 <= alpha < 1 for alpha in alphas)
        require(in_range, "alphas", alphas, "one or more numbers in [0, 1)", "alphas=(0.0, 0.5, 0.9)")
        averages = len(alphas) * statistics_size
        gain = 2.0**0.5
        statistics_key, recurrent_key, output_key = jax.random.split(key, 3)
        to_statistics = glorot_uniform(statistics_key, input_size + recurrent_size, statistics_size, gain)
        self.input_weights = to_statistics[:input_size]
        self.statistics_weights = to_statistics[input_size:]
        self.statistics_bias = jnp.zeros((statistics_size,))
        self.recurrent_weights = glorot_uniform(recurrent_key, averages, recurrent_size, gain)
        self.recurrent_bias = jnp.zeros((recurrent_size,))
        self.output_weights = glorot_uniform(output_key, averages, hidden_size, gain)
        self.output_bias = jnp.zeros((hidden_size,))
        self.input_size, self.output_size = input_size, hidden_size
        self.statistics_size, self.alphas = statistics_size, tuple(alphas)

    def init_state(self) -> SRUState:
        return SRUState(jnp.zeros((len(self.alphas), self.statistics_size), self.output_bias.dtype))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " statistics"]:
        return x @ self.input_weights + self.statistics_bias

    def step(
        self, state: SRUState, drive: Float[Array, " statistics"], *, key: Key = None
    ) -> tuple[SRUState, Float[Array, " hidden"]]:
        summary = jax.nn.relu(state.averages.ravel() @ self.recurrent_weights + self.recurrent_bias)
        statistics = jax.nn.relu(drive + summary @ self.statistics_weights)
        alphas = jnp.asarray(self.alphas, drive.dtype)[:, None]
        averages = alphas * state.averages + (1 - alphas) * statistics[None]
        output = jax.nn.relu(averages.ravel() @ self.output_weights + self.output_bias)
        return SRUState(averages), output
