"""What batch statistics mean."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, unroll
from mnemon.cells import BNLSTM, LSTM, Stack, count_parameters

KEY = jax.random.key(0)


def _cell(**options) -> BNLSTM:
    return BNLSTM(3, 5, key=KEY, **{"max_steps": 7, **options})


def _inputs(batch: int = 4, time: int = 7) -> jax.Array:
    return 3.0 + jax.random.normal(jax.random.key(1), (batch, time, 3))


def test_after_one_batch_evaluation_on_it_is_training_on_it():
    cell, inputs = _cell(), _inputs()
    training = unroll(cell, inputs, key=KEY)
    before = unroll(cell, inputs).outputs
    after = unroll(cell.with_statistics(training.statistics), inputs).outputs
    np.testing.assert_allclose(after, training.outputs, atol=1e-5)
    assert np.abs(before - training.outputs).max() > 1e-2


def test_statistics_are_those_of_the_batch_at_each_step():
    cell, inputs = _cell(), _inputs()
    result = unroll(cell, inputs, key=KEY, observe=lambda state: state.sums)
    np.testing.assert_allclose(result.statistics.mean, np.mean(result.observed, 0), atol=1e-5)
    np.testing.assert_allclose(result.statistics.variance, np.var(result.observed, 0), atol=1e-5)
    np.testing.assert_array_equal(result.statistics.steps, np.arange(1, 8))


def test_first_batches_are_averaged_then_a_moving_average():
    cell = _cell(statistics_rate=0.4)
    collected = unroll(cell, _inputs(), key=KEY).statistics
    means = []
    for value in (1.0, 3.0, 0.0):
        cell = cell.with_statistics(collected._replace(mean=jnp.full_like(collected.mean, value)))
        means.append(float(cell.moments.value[2, 0, 0]))
    np.testing.assert_allclose(means, [1.0, 2.0, 1.2], rtol=1e-6)  # 1, (1 + 3) / 2, 2 + 0.4 (0 - 2)


def test_longer_sequences_reuse_the_last_step_that_training_has_seen():
    inputs = _inputs(time=12)
    short = _cell(max_steps=30)
    short = short.with_statistics(unroll(short, inputs[:, :7], key=KEY).statistics)
    np.testing.assert_array_equal(short.updates.value, np.arange(30) < 7)
    exact = _cell(max_steps=7)
    exact = exact.with_statistics(unroll(exact, inputs[:, :7], key=KEY).statistics)
    np.testing.assert_allclose(unroll(short, inputs).outputs, unroll(exact, inputs).outputs, atol=1e-6)
    # Steps beyond max_steps share the last row in training too.
    longer = exact.with_statistics(unroll(exact, inputs, key=KEY).statistics)
    assert np.all(longer.updates.value == 2)


def test_state_carried_on_continues_the_steps():
    cell, inputs = _cell(), _inputs()
    first = unroll(cell, inputs[:, :3], key=KEY)
    second = unroll(cell, inputs[:, 3:], state=first.state, key=KEY)
    np.testing.assert_array_equal(second.statistics.steps, [4, 5, 6, 7])


def test_gradients_flow_through_the_batch():
    cell, inputs = _cell(), _inputs()
    gradient = jax.grad(lambda x: jnp.sum(unroll(cell, x, key=KEY).outputs[0]))(inputs)
    assert np.abs(gradient[1:]).max() > 1e-5


def test_statistics_are_no_parameters_and_work_in_a_stack_and_in_every_plan():
    assert count_parameters(_cell(max_steps=7)) == count_parameters(_cell(max_steps=70))
    stack = Stack(LSTM(3, 3, key=KEY), _cell())
    inputs = _inputs()
    result = eqx.filter_jit(unroll)(stack, inputs, key=KEY, plan=Plan(segment=3))
    assert result.statistics[0] == ()
    after = stack.with_statistics(result.statistics)
    # The lower cell's outputs vary little, so that their normalisation magnifies rounding.
    np.testing.assert_allclose(unroll(after, inputs).outputs, result.outputs, atol=3e-4)
    assert np.abs(unroll(stack, inputs).outputs - result.outputs).max() > 1e-2
    # Each block is a batch of its own, but the mean of what comes from the input is the same.
    blocks = unroll(stack, inputs, key=KEY, plan=Plan(block=2)).statistics
    np.testing.assert_allclose(blocks[1].mean[:, 20:40], result.statistics[1].mean[:, 20:40], atol=1e-5)


def test_a_batch_of_one_is_refused_in_training_alone():
    cell, inputs = _cell(), _inputs(batch=1)
    assert unroll(cell, inputs).outputs.shape == (1, 7, 5)
    with pytest.raises(ValueError, match=r"batch=1 .*two or more examples"):
        unroll(cell, inputs, key=KEY)
    with pytest.raises(ValueError, match=r"batch=1 .*two or more examples"):
        cell(cell.init_state(), inputs[0, 0], key=KEY)
    with pytest.raises(ValueError, match="max_steps=0"):
        _cell(max_steps=0)
    with pytest.raises(ValueError, match="statistics_rate=0"):
        _cell(statistics_rate=0.0)
