"""Equinox's recurrent cells in a scan, as its documentation shows."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..cells import GRU, LSTM
from ._cells import Spec
from ._rivals import Rival, jax_rival


def rivals(spec: Spec) -> dict[str, Rival]:
    """Equinox's LSTM and GRU with our weights."""
    cell = spec.make()
    key = jax.random.key(0)
    if isinstance(cell, LSTM) and cell.peepholes is None:
        layer: Any = eqx.nn.LSTMCell(cell.input_size, cell.output_size, key=key)
        order = [0, 1, 3, 2]  # ours: i f o g; theirs: i f g o
        values = [_arrange(w, order) for w in (cell.input_weights, cell.recurrent_weights, cell.bias)]
        layer = eqx.tree_at(lambda c: (c.weight_ih, c.weight_hh, c.bias), layer, values)
        start = (jnp.zeros((spec.batch, cell.output_size)),) * 2
        name = "eqx.nn.LSTMCell"
    elif isinstance(cell, GRU) and cell.candidate_bias is not None:
        layer = eqx.nn.GRUCell(cell.input_size, cell.output_size, key=key)
        order = [1, 0, 2]  # ours: z r h; theirs: r z h, with z the share of the old state
        sign = np.concatenate([-np.ones(cell.output_size), np.ones(2 * cell.output_size)])
        recurrent = np.concatenate([cell.gate_weights, cell.candidate_weights], axis=1)
        values = [_arrange(np.asarray(w) * sign, order) for w in (cell.input_weights, recurrent, cell.bias)]
        values.append(jnp.asarray(cell.candidate_bias))
        layer = eqx.tree_at(lambda c: (c.weight_ih, c.weight_hh, c.bias, c.bias_n), layer, values)
        start, name = jnp.zeros((spec.batch, cell.output_size)), "eqx.nn.GRUCell"
    else:
        return {}

    def run(layer, inputs):
        def step(state, x):
            state = jax.vmap(layer)(x, state)
            return state, state[0] if isinstance(state, tuple) else state

        state = jax.tree.map(lambda leaf: leaf[: inputs.shape[0]], start)
        return jnp.swapaxes(jax.lax.scan(step, state, jnp.swapaxes(inputs, 0, 1))[1], 0, 1)

    return {name: jax_rival(run, layer, spec)}


def _arrange(array: Any, order: list[int]) -> jax.Array:
    blocks = np.split(np.asarray(array), len(order), axis=-1)
    return jnp.asarray(np.concatenate([blocks[n] for n in order], axis=-1).T, jnp.float32)
