"""Gated fast weights (Schlag & Schmidhuber 2017)."""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import standardise


class GatedFastState(NamedTuple):
    """What gated fast weights carry."""

    fast_hidden: Float[Array, " hidden"]  # h^F
    slow_hidden: Float[Array, " slow"]  # h^S
    first: Float[Array, "first_inputs hidden"]  # F^(1)^T
    second: Float[Array, "second_inputs hidden"]  # F^(2)^T


class GatedFastDrive(NamedTuple):
    """The input, and its part of the slow net's first layer."""

    x: Float[Array, " input"]
    slow: Float[Array, " layer"]


class GatedFastWeights(AbstractCell[GatedFastState, GatedFastDrive]):
    r"""A slow RNN writes, through a gate, the weights of a small fast RNN that gives the output.

    $$\begin{aligned}
    h^F_{t+1} &= \mathrm{LN}(\tanh(F^{(2)}_t [\mathrm{LN}(\tanh(F^{(1)}_t [h^F_t; x_t; 1])); 1])) \\
    [z_t; \Delta^{(1)}_t; \Delta^{(2)}_t] &= S^{(2)} \tanh(S^{(1)} [h^S_t; x_t]), \qquad h^S_{t+1} = \tanh(z_t) \\
    [\alpha; \beta; \gamma; \delta] &= \Delta_t, \quad H_t = \tanh(\alpha) \tanh(\beta)^T, \quad
        T_t = \sigma(\gamma) \sigma(\delta)^T \\
    F_{t+1} &= T_t \odot H_t + (1 - T_t) \odot F_t
    \end{aligned}$$

    (2-8, the last two lines for each of the two fast matrices). The fast matrices that are used at a step were
    written by the steps before it, so the slow net cannot bypass the fast one. The output is $h^F_{t+1}$.

    **Notes.** The constant input 1 of the fast layers is not printed, but the paper's S^(2) width of 394 and its 46,234
    parameters need it (`fast_bias`); its count of 3,880 time-varying variables leaves the 80 fast biases out.
    LN has no gain and shift, for the same reason. The fast matrices and states start at zero. Without the gate
    (`gate=False`) F_{t+1} = F_t + H_t. `layer_norm` has the four placements the paper tried. The paper states neither
    its initial weights (here normal, of variance one over the number of inputs) nor what LN adds to the variance, and
    training depends on both: with 1e-5 the fast layers are unsteady while their matrices are small, see
    `docs/findings.md`.

    >>> import jax
    >>> cell = GatedFastWeights(15, 40, slow_layer_size=100, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(15))
    >>> state.first.shape, state.second.shape
    ((56, 40), (41, 40))
    """

    slow_input_weights: Float[Array, "input layer"]  # x rows of S^(1)
    slow_recurrent_weights: Float[Array, "slow layer"]  # h^S rows of S^(1)
    slow_bias: Float[Array, " layer"]
    update_weights: Float[Array, "layer update"]  # S^(2): to z, alpha1, beta1, alpha2, beta2 | gamma1, delta1, ...
    update_bias: Float[Array, " update"]
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    slow_size: int = eqx.field(static=True)
    gate: bool = eqx.field(static=True)
    fast_bias: bool = eqx.field(static=True)
    layer_norm: Literal["post", "pre", "both", "none"] = eqx.field(static=True)
    eps: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        slow_size: int | None = None,
        slow_layer_size: int = 100,
        gate: bool = True,
        gate_bias: float = 0.0,
        fast_bias: bool = True,
        layer_norm: Literal["post", "pre", "both", "none"] = "post",
        eps: float = 1e-5,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h^F and of the fast layer below it.
        - `slow_size`: size of h^S; by default the size of h^F.
        - `slow_layer_size`: size of the slow net's first layer.
        - `gate`: blend the fast matrices with their updates; without it the updates are added.
        - `gate_bias`: of γ and δ at first; at 0 a quarter of the fast matrices is overwritten at every step, at -2 a
          seventieth.
        - `fast_bias`: a constant input to both fast layers.
        - `layer_norm`: normalise the fast layers after or before the tanh, both, or not.
        - `eps`: added to the variance in the layer norm.
        - `key`: for the initial parameters.
        """
        slow_size = hidden_size if slow_size is None else slow_size
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=40")
        require(slow_size >= 1, "slow_size", slow_size, "at least one unit", "slow_size=40")
        require(slow_layer_size >= 1, "slow_layer_size", slow_layer_size, "at least one unit", "slow_layer_size=100")
        norms = ("post", "pre", "both", "none")
        require(layer_norm in norms, "layer_norm", layer_norm, f"one of {', '.join(norms)}", "layer_norm='post'")
        require(eps > 0, "eps", eps, "a positive number", "eps=1e-5")
        self.input_size, self.output_size, self.slow_size = input_size, hidden_size, slow_size
        self.gate, self.fast_bias, self.layer_norm, self.eps = gate, fast_bias, layer_norm, eps
        first_key, update_key = jax.random.split(key)
        updates = (2 if gate else 1) * sum(inputs + hidden_size for inputs in self._fast_inputs())
        to_layer = _by_inputs(first_key, input_size + slow_size, slow_layer_size)
        self.slow_input_weights, self.slow_recurrent_weights = to_layer[:input_size], to_layer[input_size:]
        self.slow_bias = jnp.zeros((slow_layer_size,))
        self.update_weights = _by_inputs(update_key, slow_layer_size, slow_size + updates)
        gates = updates // 2 if gate else 0
        self.update_bias = jnp.zeros((slow_size + updates,)).at[slow_size + updates - gates :].set(gate_bias)

    def _fast_inputs(self) -> tuple[int, int]:
        """Number of inputs of the two fast layers."""
        constant = int(self.fast_bias)
        return self.output_size + self.input_size + constant, self.output_size + constant

    def init_state(self) -> GatedFastState:
        dtype, size = self.slow_bias.dtype, self.output_size
        first, second = (jnp.zeros((inputs, size), dtype) for inputs in self._fast_inputs())
        return GatedFastState(jnp.zeros((size,), dtype), jnp.zeros((self.slow_size,), dtype), first, second)

    def drive(self, x: Float[Array, " input"]) -> GatedFastDrive:
        return GatedFastDrive(x, x @ self.slow_input_weights + self.slow_bias)

    def step(
        self, state: GatedFastState, drive: GatedFastDrive, *, key: Key = None
    ) -> tuple[GatedFastState, Float[Array, " hidden"]]:
        layer = jnp.tanh(drive.slow + state.slow_hidden @ self.slow_recurrent_weights)
        update = layer @ self.update_weights + self.update_bias
        first_inputs, second_inputs = self._fast_inputs()
        sizes = (self.output_size, first_inputs, self.output_size, second_inputs)
        values, gates = jnp.split(update, [self.slow_size + sum(sizes)])
        slow_hidden, alpha1, beta1, alpha2, beta2 = _split(jnp.tanh(values), (self.slow_size, *sizes))
        gates1 = gates2 = None
        if self.gate:
            gamma1, delta1, gamma2, delta2 = _split(jax.nn.sigmoid(gates), sizes)
            gates1, gates2 = (delta1, gamma1), (delta2, gamma2)

        constant = [jnp.ones((1,), drive.x.dtype)] if self.fast_bias else []
        inputs = jnp.concatenate([state.fast_hidden, drive.x, *constant])
        inner, first = read_and_write(state.first, inputs, (beta1, alpha1), gates1)
        inputs = jnp.concatenate([self._activate(inner), *constant])
        outer, second = read_and_write(state.second, inputs, (beta2, alpha2), gates2)
        fast_hidden = self._activate(outer)
        return GatedFastState(fast_hidden, slow_hidden, first, second), fast_hidden

    def _activate(self, v: Float[Array, " hidden"]) -> Float[Array, " hidden"]:
        v = standardise(v, self.eps) if self.layer_norm in ("pre", "both") else v
        v = jnp.tanh(v)
        return standardise(v, self.eps) if self.layer_norm in ("post", "both") else v


def _by_inputs(key: PRNGKeyArray, inputs: int, outputs: int) -> Float[Array, "inputs outputs"]:
    return jax.random.normal(key, (inputs, outputs)) / math.sqrt(inputs)


def _split(vector: Float[Array, " total"], sizes: tuple[int, ...]) -> list[Array]:
    return jnp.split(vector, [sum(sizes[: n + 1]) for n in range(len(sizes) - 1)])


Factors = tuple[Float[Array, " rows"], Float[Array, " columns"]]


def read_and_write(
    fast: Float[Array, "rows columns"],
    inputs: Float[Array, " rows"],
    values: Factors,
    gates: Factors | None,
) -> tuple[Float[Array, " columns"], Float[Array, "rows columns"]]:
    """The product of a fast layer with its inputs, and its matrix for the next step: T * H + (1 - T) * F.

    H and T are the outer products of `values` and of `gates`; without gates H is added.
    """
    if gates is None:
        return inputs @ fast, fast + jnp.outer(*values)
    return _read_and_blend(fast, inputs, values, gates)


@jax.custom_vjp
def _read_and_blend(fast, inputs, values: Factors, gates: Factors):
    return inputs @ fast, fast + jnp.outer(*gates) * (jnp.outer(*values) - fast)


def _forward(fast, inputs, values: Factors, gates: Factors):
    return _read_and_blend(fast, inputs, values, gates), (fast, inputs, values, gates)


def _backward(residuals, cotangents):
    fast, inputs, (row_values, column_values), (row_gates, column_gates) = residuals
    output_ct, after_ct = cotangents
    by_rows = after_ct @ (column_gates * column_values)
    by_columns = (row_gates * row_values) @ after_ct
    overlap = after_ct * fast
    values_ct = (row_gates * by_rows, column_gates * by_columns)
    gates_ct = (
        row_values * by_rows - overlap @ column_gates,
        column_values * by_columns - row_gates @ overlap,
    )
    fast_ct = after_ct * (1 - jnp.outer(row_gates, column_gates)) + jnp.outer(inputs, output_ct)
    return fast_ct, fast @ output_ct, values_ct, gates_ct


_read_and_blend.defvjp(_forward, _backward)
