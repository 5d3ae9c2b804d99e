"""Linear associative memory, Hebbian or with the delta rule."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import glorot_normal


class AssociativeState(NamedTuple):
    """What an associative memory carries."""

    memory: Float[Array, "key value"]  # A^T


class AssociativeDrive(NamedTuple):
    """What an associative memory is asked to do in a step."""

    key: Float[Array, " key"]  # f
    value: Float[Array, " value"]  # g
    query: Float[Array, " key"]


class AssociativeMemory(AbstractCell[AssociativeState, AssociativeDrive]):
    r"""A matrix that stores each pair of a key f and a value g as an outer product, and recalls g = A f.

    $$\begin{aligned}
    [f_t, g_t, q_t] &= x_t W \\
    A_t &= \lambda A_{t-1} + \eta\, g_t f_t^T && \text{(Hebb)} \\
    A_t &= \lambda A_{t-1} + \eta\, (g_t - A_{t-1} f_t) f_t^T && \text{(delta rule)} \\
    y_t &= A_t q_t
    \end{aligned}$$

    With orthonormal keys, rate 1 and no decay, recall is exact. With others a recalled value is g_j plus the crosstalk
    sum_i g_i (f_i . f_j). The delta rule stores only what the memory does not already answer, so that writing a
    second value under a key replaces the first.

    **Notes.** Keys and queries are scaled to length 1 (`unit_keys`), without which recall is exact only up to a
    factor and the delta rule diverges for keys longer than sqrt(2 / rate).

    >>> import jax
    >>> cell = AssociativeMemory(3, 5, rule="delta", key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.memory.shape, y.shape
    ((5, 5), (5,))
    """

    input_weights: Float[Array, "input projections"]  # W: to f | g | q
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    key_size: int = eqx.field(static=True)
    rule: Literal["hebb", "delta"] = eqx.field(static=True)
    rate: float = eqx.field(static=True)
    decay: float = eqx.field(static=True)
    unit_keys: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        key_size: int | None = None,
        rule: Literal["hebb", "delta"] = "hebb",
        rate: float = 1.0,
        decay: float = 1.0,
        unit_keys: bool = True,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of a value g.
        - `key_size`: size of a key f; by default the size of a value.
        - `rule`: store the value, or what is missing of it.
        - `rate`: eta.
        - `decay`: lambda, what is kept of the memory at each step.
        - `unit_keys`: scale keys and queries to length 1.
        - `key`: for the initial parameters.
        """
        key_size = hidden_size if key_size is None else key_size
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=64")
        require(key_size >= 1, "key_size", key_size, "at least one unit", "key_size=64")
        require(rule in ("hebb", "delta"), "rule", rule, "hebb or delta", "rule='delta'")
        require(rate > 0, "rate", rate, "a positive rate", "rate=1.0")
        require(0 <= decay <= 1, "decay", decay, "a fraction to keep, from 0 to 1", "decay=0.95")
        sizes = (key_size, hidden_size, key_size)
        keys = jax.random.split(key, len(sizes))
        self.input_weights = jnp.concatenate(
            [glorot_normal(k, input_size, size) for k, size in zip(keys, sizes, strict=True)], axis=1
        )
        self.input_size, self.output_size, self.key_size = input_size, hidden_size, key_size
        self.rule, self.rate, self.decay, self.unit_keys = rule, rate, decay, unit_keys

    def init_state(self) -> AssociativeState:
        return AssociativeState(jnp.zeros((self.key_size, self.output_size), self.input_weights.dtype))

    def drive(self, x: Float[Array, " input"]) -> AssociativeDrive:
        key, value, query = jnp.split(x @ self.input_weights, [self.key_size, self.key_size + self.output_size])
        if self.unit_keys:
            key, query = _unit(key), _unit(query)
        return AssociativeDrive(key, value, query)

    def step(
        self, state: AssociativeState, drive: AssociativeDrive, *, key: Key = None
    ) -> tuple[AssociativeState, Float[Array, " value"]]:
        value = drive.value
        if self.rule == "delta":
            value = value - drive.key @ state.memory
        memory = self.decay * state.memory + self.rate * jnp.outer(drive.key, value)
        return AssociativeState(memory), drive.query @ memory


def _unit(vector: Float[Array, " size"]) -> Float[Array, " size"]:
    """A vector over its length; zero stays zero, with a finite gradient."""
    square = vector @ vector
    return vector * jnp.where(square > 0, jax.lax.rsqrt(jnp.where(square > 0, square, 1.0)), 0.0)
