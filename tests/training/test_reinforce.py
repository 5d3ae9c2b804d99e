"""REINFORCE through the trainer: right in expectation, silent in the loss, learning the auxiliary prediction."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Copying, fit, make_model
from mnemon.training import Reinforce, Supervised

TASK = Copying(delay=2, symbols=3, length=2)
SIZES: dict[str, Any] = {"hidden_size": 33, "memory_slots": 3, "address_size": 2, "word_size": 4}


def model(cell="tardis-reinforce"):
    return make_model(TASK, cell, key=jax.random.key(0), **SIZES)


@pytest.mark.parametrize("auxiliary", [False, True])
def test_it_changes_the_gradient_and_not_the_value(auxiliary):
    episodes = TASK.batch(jax.random.key(1), 0, 3)
    net, objective = model(), Reinforce(auxiliary=auxiliary)
    carry = objective.init_carry(net, TASK, 3)

    def value_and_gradient(objective, carry):
        def loss(net):
            return objective(net, TASK, episodes, carry, key=jax.random.key(2))[0]

        return eqx.filter_jit(eqx.filter_value_and_grad(loss))(net)

    plain, gradient = value_and_gradient(Supervised(), None)
    value, estimate = value_and_gradient(objective, carry)
    np.testing.assert_allclose(value, plain, rtol=1e-6)
    differs = [
        bool(jnp.any(jnp.abs(a - b) > 1e-7))
        for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(estimate), strict=True)
    ]
    assert any(differs)
    np.testing.assert_allclose(gradient.readout_weights, estimate.readout_weights, rtol=1e-5, atol=1e-7)


def test_the_auxiliary_prediction_learns_in_training():
    result = fit(model(), TASK, updates=60, batch=8, objective=Reinforce(auxiliary=True, rate=0.02), log_every=20)
    losses = [record["auxiliary_loss"] for record in result.records]
    assert losses[-1] < losses[0]
    assert np.isfinite([record["loss"] for record in result.records]).all()


def test_cells_without_choices_are_refused():
    net = make_model(TASK, "gru", hidden_size=4, key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"wanted a cell with a log_probability, e\.g\. tardis-reinforce"):
        fit(net, TASK, updates=1, objective=Reinforce())
