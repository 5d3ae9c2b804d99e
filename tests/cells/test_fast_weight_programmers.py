"""The fast-weight nets of 1992 and 1993."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon.cells import RNN, FeedForwardFastWeights, RecurrentFastWeights


def test_the_unsquashed_feed_forward_net_is_linear_attention():
    cell = FeedForwardFastWeights(3, 5, squash="none", key=jax.random.key(0))
    xs = jax.random.normal(jax.random.key(1), (6, 3))
    projected = xs @ cell.slow_weights + cell.bias[None]
    sources, targets = projected[:, :3], projected[:, 3:]
    attention = jnp.tril(xs @ sources.T) @ targets
    np.testing.assert_allclose(unroll(cell, xs[None]).outputs[0], attention, rtol=1e-4, atol=1e-5)


def test_squashed_fast_weights_stay_below_one():
    cell = FeedForwardFastWeights(3, 5, key=jax.random.key(0))
    state = unroll(cell, 10 * jax.random.normal(jax.random.key(1), (2, 50, 3))).state
    assert float(jnp.max(jnp.abs(state.fast))) <= 1


def test_a_recurrent_net_that_writes_nothing_is_an_rnn():
    cell = RecurrentFastWeights(3, 5, key=jax.random.key(0))
    silent = eqx.tree_at(lambda c: c.recurrent_weights, cell, cell.recurrent_weights.at[:, 5:].set(0))
    rnn = RNN(3, 5, key=jax.random.key(1))
    rnn = eqx.tree_at(
        lambda c: (c.input_weights, c.recurrent_weights, c.bias),
        rnn,
        (cell.input_weights, cell.recurrent_weights[:, :5], cell.bias),
    )
    xs = jax.random.normal(jax.random.key(2), (2, 7, 3))
    np.testing.assert_allclose(unroll(silent, xs).outputs, unroll(rnn, xs).outputs, atol=1e-6)
    assert float(jnp.max(jnp.abs(unroll(cell, xs).outputs - unroll(rnn, xs).outputs))) > 1e-2


def test_bad_input():
    for cell in (FeedForwardFastWeights, RecurrentFastWeights):
        with pytest.raises(ValueError, match="hidden_size"):
            cell(3, 0, key=jax.random.key(0))
