"""Flax's recurrent layers."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from ..cells import GRU, LSTM
from ._cells import Spec
from ._rivals import Rival, jax_rival


def rivals(spec: Spec) -> dict[str, Rival]:
    """`flax.linen.RNN` of its LSTM and GRU cells, with our weights."""
    cell = spec.make()
    n = cell.output_size
    if isinstance(cell, LSTM) and cell.peepholes is None:
        name, layer = "flax LSTM", nn.RNN(nn.OptimizedLSTMCell(n))
        gates = {"i": 0, "f": 1, "o": 2, "g": 3}
        inputs, recurrent = _split(cell.input_weights, n), _split(cell.recurrent_weights, n)
        bias = _split(cell.bias, n)
        weights = {f"i{gate}": {"kernel": inputs[k]} for gate, k in gates.items()}
        weights |= {f"h{gate}": {"kernel": recurrent[k], "bias": bias[k]} for gate, k in gates.items()}
    elif isinstance(cell, GRU) and cell.candidate_bias is not None:
        name, layer = "flax GRU", nn.RNN(nn.GRUCell(n))
        # Ours: z is the share of the candidate; theirs of the old state, the same with its signs turned.
        gates = {"z": (0, -1.0), "r": (1, 1.0), "n": (2, 1.0)}
        inputs, bias = _split(cell.input_weights, n), _split(cell.bias, n)
        recurrent = [*_split(cell.gate_weights, n), cell.candidate_weights]
        weights = {f"i{g}": {"kernel": sign * inputs[k], "bias": sign * bias[k]} for g, (k, sign) in gates.items()}
        weights |= {f"h{g}": {"kernel": sign * recurrent[k]} for g, (k, sign) in gates.items()}
        weights["hn"]["bias"] = np.asarray(cell.candidate_bias)
    else:
        return {}
    parameters = {"params": {"cell": jax.tree.map(jnp.asarray, weights)}}

    def run(parameters: Any, inputs: jax.Array) -> jax.Array:
        return jnp.asarray(layer.apply(parameters, inputs))

    return {name: jax_rival(run, parameters, spec)}


def _split(array: Any, size: int) -> list[np.ndarray]:
    return np.split(np.asarray(array), np.shape(array)[-1] // size, axis=-1)
