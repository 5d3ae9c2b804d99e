"""What drives an external memory: a controller, and the interface network that makes orders of its output."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._gates import lstm_gates
from ._init import uniform


class ControllerState(NamedTuple):
    """What a controller carries."""

    hidden: Float[Array, "layers hidden"]  # h_t^1 .. h_t^L
    cell: Float[Array, "layers hidden"] | None  # c_t^1 .. c_t^L of an LSTM

    @property
    def output(self) -> Float[Array, " controller"]:
        """What the memory and the readout see: the hidden values of all layers."""
        return self.hidden.ravel()


class Controller(eqx.Module):
    """Layers that each see the input, the last reads, the layer below and (LSTM) their own last output."""

    input_weights: Float[Array, "input drive"]
    layer_weights: tuple[Float[Array, "seen gates"], ...]  # rows: reads | layer below | own last output
    bias: Float[Array, " drive"]
    hidden_size: int = eqx.field(static=True)
    kind: Literal["lstm", "feedforward"] = eqx.field(static=True)
    bound: float | None = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        read_size: int,
        hidden_size: int,
        *,
        layers: int,
        kind: Literal["lstm", "feedforward"],
        bound: float | None,
        key: PRNGKeyArray,
    ):
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=100")
        require(layers >= 1, "layers", layers, "at least one layer", "layers=1")
        require(bound is None or bound > 0, "bound", bound, "a positive bound", "bound=20.0")
        gates = 4 * hidden_size if kind == "lstm" else hidden_size
        inputs, seen = [], []
        for layer, layer_key in enumerate(jax.random.split(key, layers)):
            rows = input_size + read_size + (layer > 0) * hidden_size + (kind == "lstm") * hidden_size
            weights = uniform(layer_key, (rows, gates), rows**-0.5)
            inputs.append(weights[:input_size])
            seen.append(weights[input_size:])
        self.input_weights = jnp.concatenate(inputs, axis=1)
        self.layer_weights = tuple(seen)
        bias = jnp.zeros((layers, gates))
        if kind == "lstm":
            bias = bias.at[:, hidden_size : 2 * hidden_size].set(1.0)  # forget gates start open
        self.bias = bias.ravel()
        self.hidden_size, self.kind, self.bound = hidden_size, kind, bound

    def init_state(self) -> ControllerState:
        zero = jnp.zeros((len(self.layer_weights), self.hidden_size), self.bias.dtype)
        return ControllerState(zero, zero if self.kind == "lstm" else None)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " drive"]:
        return x @ self.input_weights + self.bias

    def __call__(
        self, state: ControllerState, drive: Float[Array, " drive"], reads: Float[Array, "heads word"]
    ) -> ControllerState:
        hidden, cell = [], []
        for layer, weights in enumerate(self.layer_weights):
            seen = [reads.ravel(), *hidden[-1:]]
            if self.kind == "lstm":
                seen.append(state.hidden[layer])
            size = weights.shape[1]
            z = drive[layer * size : (layer + 1) * size] + jnp.concatenate(seen) @ weights
            if self.kind == "feedforward" or state.cell is None:
                hidden.append(jnp.tanh(z))
                continue
            if self.bound is None:
                h, c = lstm_gates(z, state.cell[layer])
                hidden.append(h)
                cell.append(c)
                continue
            i, f, o, candidate = jnp.split(z, 4)
            c = jax.nn.sigmoid(f) * state.cell[layer] + jax.nn.sigmoid(i) * jnp.tanh(candidate)
            cell.append(jnp.clip(c, -self.bound, self.bound))
            hidden.append(jax.nn.sigmoid(o) * jnp.tanh(cell[-1]))
        return ControllerState(jnp.stack(hidden), jnp.stack(cell) if cell else None)


class Interface(eqx.Module):
    """The interface network: one linear layer from the controller's output to the interface vector."""

    weights: Float[Array, "controller interface"]
    bias: Float[Array, " interface"] | None

    def __init__(self, controller_size: int, interface_size: int, *, bias: bool, key: PRNGKeyArray):
        self.weights = uniform(key, (controller_size, interface_size), controller_size**-0.5)
        self.bias = jnp.zeros((interface_size,)) if bias else None

    def __call__(self, output: Float[Array, " controller"]) -> Float[Array, " interface"]:
        vector = output @ self.weights
        return vector if self.bias is None else vector + self.bias


def parts(vectors: Float[Array, "*heads size"], sizes: Sequence[int]) -> list[Array]:
    """Cut vectors in parts of these sizes, along the last axis; a part of size 1 loses that axis."""
    cuts = jnp.split(vectors, np.cumsum(sizes)[:-1], axis=-1)
    return [cut[..., 0] if size == 1 else cut for cut, size in zip(cuts, sizes, strict=True)]
