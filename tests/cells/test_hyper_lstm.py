"""What the HyperLSTM of the paper is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon.cells import LSTM, HyperLSTM, count_parameters


def test_sizes_of_the_published_network():
    readout = 1000 * 50 + 50
    for layer_norm, parameters in ((True, 4_923_154), (False, 4_923_154 - 10 * (1000 + 128))):
        cell = eqx.filter_eval_shape(
            lambda k, ln=layer_norm: HyperLSTM(50, 1000, layer_norm=ln, key=k), jax.random.key(0)
        )
        assert count_parameters(cell) + readout == parameters


def test_with_all_scales_at_one_it_is_an_lstm():
    cell = HyperLSTM(3, 5, hyper_size=4, hyper_embedding_size=2, layer_norm=False, key=jax.random.key(0))
    cell = eqx.tree_at(
        lambda c: (c.scaling_weights, c.embedding_weights),
        cell,
        (cell.scaling_weights.at[:2].set(0.5), jnp.zeros_like(cell.embedding_weights)),
    )
    lstm = LSTM(3, 5, forget_bias=1.0, key=jax.random.key(1))
    lstm = eqx.tree_at(
        lambda c: (c.input_weights, c.recurrent_weights),
        lstm,
        (cell.input_weights[:, 16:], cell.recurrent_weights[:, 16:]),
    )
    xs = jax.random.normal(jax.random.key(2), (2, 7, 3))
    np.testing.assert_allclose(unroll(cell, xs).outputs, unroll(lstm, xs).outputs, atol=1e-6)


def test_all_scales_start_at_a_tenth():
    cell = HyperLSTM(3, 5, hyper_size=7, hyper_embedding_size=2, key=jax.random.key(0))
    scales = jnp.einsum("pgz,pgzh->pgh", cell.embedding_bias, cell.scaling_weights[:2])
    np.testing.assert_allclose(scales, 0.1, atol=1e-7)


def test_recurrent_dropout_acts_only_with_a_key_and_keeps_the_mean():
    cell = HyperLSTM(3, 5, hyper_size=7, recurrent_dropout=0.25, key=jax.random.key(0))
    plain = HyperLSTM(3, 5, hyper_size=7, key=jax.random.key(0))
    xs = jax.random.normal(jax.random.key(1), (1, 1, 3))
    expected = unroll(plain, xs).state.cell
    np.testing.assert_array_equal(unroll(cell, xs).state.cell, expected)
    many = unroll(cell, jnp.broadcast_to(xs, (4000, 1, 3)), key=jax.random.key(2)).state.cell
    dropped = jnp.mean(many == 0, axis=0)  # the cell starts at zero, so a dropped candidate leaves it there
    np.testing.assert_allclose(dropped, 0.25, atol=0.04)
    np.testing.assert_allclose(jnp.mean(many, axis=0), expected[0], atol=0.05 * float(jnp.max(jnp.abs(expected))))


@pytest.mark.parametrize(
    "options",
    [
        {"hidden_size": 0},
        {"hyper_size": 0},
        {"hyper_embedding_size": 0},
        {"recurrent_dropout": 1.0},
        {"recurrent_dropout": -0.1},
    ],
)
def test_bad_input(options):
    (argument,) = options
    with pytest.raises(ValueError, match=argument):
        HyperLSTM(3, **{"hidden_size": 5, **options}, key=jax.random.key(0))
