"""Non-saturating recurrent unit (thesis chapter 4)."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import uniform
from ._lengths import unit_rows

# Where a fifth power leaves float32.
OVERFLOW = float(jnp.finfo(jnp.float32).max) ** 0.2


class NRUState(NamedTuple):
    """What an NRU carries."""

    hidden: Float[Array, " hidden"]  # h_t
    memory: Float[Array, " memory"]  # m_t


class NRUDrive(NamedTuple):
    """What the input contributes to the pre-activations."""

    hidden: Float[Array, " hidden"]
    heads: Float[Array, " heads"]


class NRU(AbstractCell[NRUState, NRUDrive]):
    r"""NRU: a flat memory with k additive write and k additive erase heads, no saturating gate.

    $$\begin{aligned}
    h_t &= \mathrm{ReLU}([x_t, h_{t-1}, m_{t-1}] W_h + b_h) \\
    u_t &= [x_t, h_t, m_{t-1}] \\
    \alpha &= f(u_t W_\alpha + b_\alpha), \quad \beta = f(u_t W_\beta + b_\beta) \in R^k \\
    v^w &= L_p(f(\mathrm{vec}(p^w q^{wT}))), \quad [p^w, q^w] = u_t W_w + b_w \in R^{2\sqrt{km}}
        \qquad\text{(same for } v^e) \\
    m_t &= m_{t-1} + \sum_{i=1}^k \alpha_i v^w_i - \sum_{i=1}^k \beta_i v^e_i
    \end{aligned}$$

    (thesis 4.1-4.9) where the outer product of size km is cut row by row in k directions of size m, each
    normalised to length 1 in the L_p norm, and f is the identity or, with `relu_heads`, ReLU.

    **Notes.** The authors' code differs from the thesis: its heads do not see x (`heads_see_input=False`), and it
    takes the mean over the heads instead of the sum (`average_heads=True`). Its fifth powers overflow in float32 once
    an outer product is longer than 5e7; divided by that norm, the direction is zero (`longest_direction=OVERFLOW`).
    In the equations nothing keeps a memory that feeds on itself from growing over a long episode; this does.

    The k directions are never built. The L_p norm of an outer product is the product of the norms, so all heads that
    share the right factor q make one outer product: sum_i alpha_i v_i = (sum_i alpha_i p_i / |p_i|) (q / |q|)^T.
    With ReLU the same holds for the positive and the negative parts: relu(pq) = relu(p) relu(q) + relu(-p) relu(-q).
    (When k does not divide sqrt(km) a head ends inside a row, and the directions are built.)

    >>> import jax
    >>> cell = NRU(3, 5, memory_size=16, heads=4, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.memory.shape
    (16,)
    """

    input_weights: Float[Array, "input drive"]  # x rows of W_h | W_alpha | W_beta | W_w | W_e
    hidden_weights: Float[Array, "hidden_and_memory hidden"]  # h and m rows of W_h
    head_weights: Float[Array, "hidden_and_memory heads"]  # h and m rows of W_alpha | W_beta | W_w | W_e
    bias: Float[Array, " drive_and_heads"]
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    memory_size: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    norm: float = eqx.field(static=True)
    relu_heads: bool = eqx.field(static=True)
    heads_see_input: bool = eqx.field(static=True)
    average_heads: bool = eqx.field(static=True)
    longest_direction: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory_size: int = 64,
        heads: int = 4,
        norm: float = 5,
        relu_heads: bool = False,
        heads_see_input: bool = True,
        average_heads: bool = False,
        longest_direction: float = math.inf,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `memory_size`: size m of the memory.
        - `heads`: number k of write and of erase heads; k * m must be a square.
        - `norm`: the p of the L_p norm of a direction, 1 or more (`inf` for the largest entry).
        - `relu_heads`: ReLU on alpha, beta and the directions, so that writing adds and erasing takes away.
        - `heads_see_input`: x is an input of the heads (the authors' code: False).
        - `average_heads`: mean instead of sum over the heads (the authors' code: True).
        - `longest_direction`: an outer product with a larger norm gives a direction of zero (the authors' code:
          `OVERFLOW`).
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=80")
        require(heads >= 1, "heads", heads, "at least one head", "heads=4")
        require(memory_size >= 1, "memory_size", memory_size, "at least one entry", "memory_size=64")
        side = math.isqrt(memory_size * heads)
        near = [n * n // heads for n in (side, side + 1, side + 2) if n and n * n % heads == 0] or [heads * side**2]
        require(
            side * side == memory_size * heads,
            "memory_size",
            memory_size,
            f"memory_size * heads (= {memory_size * heads}) to be a square",
            f"memory_size={near[0]} with heads={heads}",
        )
        require(norm >= 1, "norm", norm, "the p of an L_p norm, 1 or more", "norm=5")
        require(
            longest_direction > 0,
            "longest_direction",
            longest_direction,
            "the norm beyond which a direction is zero",
            "longest_direction=5e7",
        )
        hidden_key, head_key = jax.random.split(key)
        head_outputs = 2 * heads + 4 * side
        fan_in = input_size + hidden_size + memory_size
        head_fan_in = fan_in if heads_see_input else hidden_size + memory_size
        to_hidden = uniform(hidden_key, (fan_in + 1, hidden_size), fan_in**-0.5)
        to_heads = uniform(head_key, (head_fan_in + 1, head_outputs), head_fan_in**-0.5)
        self.bias = jnp.concatenate([to_hidden[0], to_heads[0]])
        self.hidden_weights = to_hidden[1 + input_size :]
        if heads_see_input:
            self.input_weights = jnp.concatenate([to_hidden[1 : 1 + input_size], to_heads[1 : 1 + input_size]], 1)
            self.head_weights = to_heads[1 + input_size :]
        else:
            self.input_weights = to_hidden[1 : 1 + input_size]
            self.head_weights = to_heads[1:]
        self.input_size, self.output_size = input_size, hidden_size
        self.memory_size, self.heads = memory_size, heads
        self.norm = int(norm) if float(norm).is_integer() else norm
        self.relu_heads, self.heads_see_input, self.average_heads = relu_heads, heads_see_input, average_heads
        self.longest_direction = float(longest_direction)

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return (self.hidden_weights[: self.output_size],)

    def axes(self) -> dict[str, Any]:
        return {
            "input_weights": "x h.",
            "hidden_weights": "h. h",
            "head_weights": "h. .",
            "bias": "h.",
            "input_size": "x",
            "output_size": "h",
        }

    def as_identity(self, scale: float, gate_bias: float) -> "tuple[NRU, float]":
        size = self.output_size
        values = (
            self.input_weights.at[:, :size].set(jnp.eye(size)),
            jnp.zeros_like(self.hidden_weights),
            self.bias.at[:size].set(0.0),
        )
        return eqx.tree_at(lambda c: (c.input_weights, c.hidden_weights, c.bias), self, values), 1.0

    def init_state(self) -> NRUState:
        return NRUState(
            jnp.zeros((self.output_size,), self.bias.dtype), jnp.zeros((self.memory_size,), self.bias.dtype)
        )

    def drive(self, x: Float[Array, " input"]) -> NRUDrive:
        from_input = x @ self.input_weights
        whole = jnp.pad(from_input, (0, self.bias.size - from_input.size)) + self.bias
        return NRUDrive(*jnp.split(whole, [self.output_size]))

    def step(self, state: NRUState, drive: NRUDrive, *, key: Key = None) -> tuple[NRUState, Float[Array, " hidden"]]:
        hidden = jax.nn.relu(drive.hidden + jnp.concatenate(state) @ self.hidden_weights)
        outputs = drive.heads + jnp.concatenate([hidden, state.memory]) @ self.head_weights
        amounts, factors = jnp.split(outputs, [2 * self.heads])  # alpha, beta; p and q of w, of e
        p, q = jnp.split(factors.reshape(2, 2, -1), 2, axis=1)
        written, erased = jnp.split(jax.vmap(self._along)(amounts.reshape(2, -1), p[:, 0], q[:, 0]).ravel(), 2)
        change = written - erased
        if self.average_heads:
            change = change / self.heads
        return NRUState(hidden, state.memory + change), hidden

    def _along(
        self, amounts: Float[Array, " heads"], p: Float[Array, " side"], q: Float[Array, " side"]
    ) -> Float[Array, " memory"]:
        """sum_i amounts_i v_i, the directions v_i being the normalised cuts of the outer product of p and q."""
        if self.relu_heads:
            amounts = jax.nn.relu(amounts)
        if p.size % self.heads:
            (p, p_scale), (q, q_scale) = _unit_scale(p), _unit_scale(q)
            directions = jnp.outer(p, q)
            directions = jax.nn.relu(directions) if self.relu_heads else directions
            directions, norms = unit_rows(directions.reshape(self.heads, -1), self.norm)
            return _sum_rows(self._within(amounts, norms * (p_scale * q_scale)), directions)
        rows = p.reshape(self.heads, -1)  # p_i
        if not self.relu_heads:
            rows, row_norms = unit_rows(rows, self.norm)
            column, column_norm = unit_rows(q[None], self.norm)
            return jnp.outer(_sum_rows(self._within(amounts, row_norms * column_norm), rows), column).ravel()
        (rows, row_scales), (q, q_scale) = _unit_scale(rows), _unit_scale(q)
        positive, negative = (jax.nn.relu(rows), jax.nn.relu(q)), (jax.nn.relu(-rows), jax.nn.relu(-q))
        if math.isinf(self.norm):
            norms = jnp.maximum(*(jnp.max(p, 1) * jnp.max(q) for p, q in (positive, negative)))
        else:
            above, below = (jnp.sum(p**self.norm, 1) * jnp.sum(q**self.norm) for p, q in (positive, negative))
            norms = _root(above + below, self.norm)
        amounts = self._within(amounts, norms * row_scales[:, 0] * q_scale) / jnp.where(norms > 0, norms, 1.0)
        above, below = (jnp.outer(_sum_rows(amounts, p), q).ravel() for p, q in (positive, negative))
        return above + below

    def _within(self, amounts: Float[Array, " heads"], norms: Float[Array, " heads"]) -> Float[Array, " heads"]:
        """The amounts; zero along outer products beyond the longest."""
        if math.isinf(self.longest_direction):
            return amounts
        return jnp.where(jax.lax.stop_gradient(norms) <= self.longest_direction, amounts, 0.0)


def _sum_rows(amounts: Float[Array, " rows"], rows: Float[Array, "rows n"]) -> Float[Array, " n"]:
    """amounts @ rows, for few rows: XLA makes one loop of it with whatever is around it."""
    return jnp.sum(amounts[:, None] * rows, 0)


def _root(powers: Array, p: float) -> Array:
    """powers^(1/p) with a finite gradient at zero."""
    return jnp.where(powers > 0, jnp.where(powers > 0, powers, 1.0) ** (1.0 / p), 0.0)


def _unit_scale(vectors: Float[Array, "*rows n"]) -> tuple[Float[Array, "*rows n"], Float[Array, "*rows 1"]]:
    """Vectors over their largest magnitudes, and these: p-th powers neither overflow nor vanish."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(vectors), axis=-1, keepdims=True))
    return vectors / jnp.where(largest > 0, largest, 1.0), largest
