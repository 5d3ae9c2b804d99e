"""Vanilla recurrent network (thesis 2.2)."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import LayerNorm, glorot_normal, orthogonal

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "identity": lambda z: z,
}
Activation = Literal["tanh", "relu", "identity"]


class RNNState(NamedTuple):
    """What a vanilla RNN carries."""

    hidden: Float[Array, " hidden"]  # h_t


class RNN(AbstractCell[RNNState, Array]):
    r"""Vanilla RNN.

    $$h_t = f(\mathrm{LN}(x_t U + h_{t-1} W + b))$$

    with f = tanh, ReLU or the identity; the layer normalisation LN is optional and is one over the whole sum.

    **Notes.** Identity initialisation with ReLU is the IRNN of Le et al. (2015); `recurrent_scale` scales the
    identity or the orthogonal matrix (Ba et al. use 0.5 I for their IRNN). The thesis trains its RNN-orth and
    RNN-id with ReLU and layer norm. `init="default"` is Glorot normal.

    >>> import jax
    >>> cell = RNN(3, 5, init="orthogonal", key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (5,)
    """

    input_weights: Float[Array, "input hidden"]  # U
    recurrent_weights: Float[Array, "hidden hidden"]  # W
    bias: Float[Array, " hidden"]  # b
    norm: LayerNorm | None
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        activation: Activation = "tanh",
        init: Literal["default", "identity", "orthogonal"] = "default",
        recurrent_scale: float = 1.0,
        layer_norm: bool = False,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `activation`: f.
        - `init`: how W starts.
        - `recurrent_scale`: factor on the initial W.
        - `layer_norm`: normalise the pre-activation.
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require(activation in ACTIVATIONS, "activation", activation, "tanh, relu or identity", "activation='relu'")
        recurrent = {
            "default": lambda k: glorot_normal(k, hidden_size, hidden_size),
            "identity": lambda k: jnp.eye(hidden_size),
            "orthogonal": lambda k: orthogonal(k, hidden_size),
        }
        require(init in recurrent, "init", init, f"one of {', '.join(recurrent)}", "init='orthogonal'")
        input_key, recurrent_key = jax.random.split(key)
        gain = 2.0**0.5 if activation == "relu" else 1.0
        self.input_weights = glorot_normal(input_key, input_size, hidden_size, gain)
        self.recurrent_weights = recurrent_scale * recurrent[init](recurrent_key)
        self.bias = jnp.zeros((hidden_size,))
        self.norm = LayerNorm(hidden_size) if layer_norm else None
        self.input_size, self.output_size = input_size, hidden_size
        self.activation = activation

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return (self.recurrent_weights,)

    def axes(self) -> dict[str, Any]:
        return {
            "input_weights": "x h",
            "recurrent_weights": "h h",
            "bias": "h",
            "norm": "H",
            "input_size": "x",
            "output_size": "h",
        }

    def as_identity(self, scale: float, gate_bias: float) -> "tuple[RNN, float] | None":
        if self.norm is not None:
            return None
        factor = scale if self.activation == "tanh" else 1.0
        cell = eqx.tree_at(
            lambda c: (c.input_weights, c.recurrent_weights, c.bias),
            self,
            (factor * jnp.eye(self.output_size), jnp.zeros_like(self.recurrent_weights), jnp.zeros_like(self.bias)),
        )
        return cell, factor

    def init_state(self) -> RNNState:
        return RNNState(jnp.zeros_like(self.bias))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " hidden"]:
        return x @ self.input_weights + self.bias

    def step(
        self, state: RNNState, drive: Float[Array, " hidden"], *, key: Key = None
    ) -> tuple[RNNState, Float[Array, " hidden"]]:
        z = drive + state.hidden @ self.recurrent_weights
        if self.norm is not None:
            z = self.norm(z)
        hidden = ACTIVATIONS[self.activation](z)
        return RNNState(hidden), hidden
