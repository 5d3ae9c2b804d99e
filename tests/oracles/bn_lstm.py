"""Cooijmans et al. 2016 with population statistics."""

import equinox as eqx
import jax
import numpy as np

from mnemon.cells import BNLSTM

from ._case import Case, sigmoid


def _make(key):
    """A cell that has seen a batch of five steps, so that the sixth uses the statistics of the fifth."""
    cell = BNLSTM(3, 4, max_steps=8, key=key)
    mean_key, variance_key = jax.random.split(key)
    moments = cell.moments.array.at[:, 0].set(jax.random.normal(mean_key, (8, 36)))
    moments = moments.at[:, 1].set(jax.random.uniform(variance_key, (8, 36), minval=0.5, maxval=2.0))
    updates = cell.updates.array.at[:5].set(1.0)
    return eqx.tree_at(lambda c: (c.moments.array, c.updates.array), cell, (moments, updates))


def oracle(cell, xs):
    n = cell.output_size
    gain_h, gain_x, gain_c = np.split(cell.gain, [4 * n, 8 * n])
    h, c, outputs = np.zeros(n), np.zeros(n), []
    for t, x in enumerate(xs):
        mean, variance = cell.moments.array[min(t, 4)]
        spread = np.sqrt(variance + 1e-5)
        from_h = gain_h * (h @ cell.recurrent_weights - mean[: 4 * n]) / spread[: 4 * n]
        from_x = gain_x * (x @ cell.input_weights - mean[4 * n : 8 * n]) / spread[4 * n : 8 * n]
        i, f, o, g = np.split(from_h + from_x + cell.bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(gain_c * (c - mean[8 * n :]) / spread[8 * n :] + cell.shift)
        outputs.append(h)
    return np.stack(outputs)


CASES = [Case("bn-lstm", _make, oracle)]
