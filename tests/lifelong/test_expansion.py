"""Grown networks compute what they computed before, and can learn more."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemon import Copying, Model, Stack, make_model
from mnemon.cells import GRU, LSTM, NRU, RNN, Zoneout, trained
from mnemon.lifelong import (
    condition_numbers,
    deepen,
    largest_difference,
    widen,
    widen_optimizer,
    zero_sum_noise,
)

TASK = Copying(delay=20, symbols=4, length=5)
EPISODES = TASK.batch(jax.random.key(9), 0, 4)
INPUT, OUTPUT = TASK.input_size, TASK.output_size
KEY = jax.random.key(3)

CELLS = {
    "rnn": lambda size, key: RNN(INPUT, size, key=key),
    "rnn-relu-norm": lambda size, key: RNN(INPUT, size, activation="relu", layer_norm=True, key=key),
    "gru": lambda size, key: GRU(INPUT, size, key=key),
    "gru-reset-after": lambda size, key: GRU(INPUT, size, reset_after=True, key=key),
    "lstm": lambda size, key: LSTM(INPUT, size, key=key),
    "lstm-peepholes": lambda size, key: LSTM(INPUT, size, peepholes=True, chrono=20, key=key),
    "lstm-norm": lambda size, key: LSTM(INPUT, size, layer_norm=True, key=key),
    "nru": lambda size, key: NRU(INPUT, size, memory_size=16, heads=4, average_heads=True, key=key),
    "nru-code": lambda size, key: NRU(
        INPUT, size, memory_size=16, heads=4, average_heads=True, heads_see_input=False, relu_heads=True, key=key
    ),
    "zoneout": lambda size, key: Zoneout(LSTM(INPUT, size, key=key), hidden=0.1, cell=0.3),
    "stack": lambda size, key: Stack(LSTM(INPUT, 5, key=key), GRU(5, size, key=key)),
}


def _random_model(cell) -> Model:
    """A network whose parameters are all random, as after training: no zero biases, no unit gains.

    They are small enough that an NRU, which nothing bounds, does not grow until 1e-5 is below the rounding of floats.
    """
    model = Model(cell, OUTPUT, symbols=INPUT, key=jax.random.key(1))
    parameters, rest = eqx.partition(model, trained(model))
    leaves, tree = jax.tree.flatten(parameters)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    noisy = [0.7 * leaf + 0.1 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys, strict=True)]
    return eqx.combine(jax.tree.unflatten(tree, noisy), rest)


@functools.cache
def _teacher(name: str, size: int = 6) -> Model:
    return eqx.filter_jit(lambda key: _random_model(CELLS[name](size, key)))(jax.random.key(0))


@pytest.mark.parametrize("name", sorted(CELLS))
def test_wider_is_the_same_function(name: str):
    teacher = _teacher(name)
    student, _ = widen(teacher, 18, key=KEY)
    assert student.cell.output_size == 18
    assert jax.tree.structure(student.cell.init_state()) == jax.tree.structure(teacher.cell.init_state())
    assert largest_difference(teacher, student, EPISODES) < 1e-5
    changed = eqx.tree_at(lambda m: m.readout_weights, student, student.readout_weights + 0.01)
    assert largest_difference(teacher, changed, EPISODES) > 1e-3  # the measure can tell


def test_uneven_widening_again_and_again():
    model = teacher = _teacher("lstm-peepholes", 5)
    for n, size in enumerate((6, 11, 29)):
        model, widening = widen(model, size, key=jax.random.key(n))
        assert np.array_equal(np.unique(widening.origin), np.arange(widening.origin.max() + 1))
    assert largest_difference(teacher, model, EPISODES) < 1e-5


def test_a_lower_layer_of_a_stack_can_be_widened():
    teacher = _teacher("stack")
    student, _ = widen(teacher, 12, size="a", key=KEY)
    assert isinstance(student.cell, Stack)
    assert student.cell.cells[0].output_size == student.cell.cells[1].input_size == 12
    assert largest_difference(teacher, student, EPISODES) < 1e-5


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm", "nru"])
def test_noise_makes_the_recurrent_matrices_regular(name: str):
    teacher = _teacher(name, 16)
    plain, _ = widen(teacher, 32, noise=0.0, key=KEY)
    noisy, _ = widen(teacher, 32, key=KEY)
    assert largest_difference(teacher, plain, EPISODES) < 1e-5
    assert all(number > 1e7 for number in condition_numbers(plain.cell))
    assert all(number < 1e5 for number in condition_numbers(noisy.cell))


def test_noise_separates_the_gradients_of_copies():
    teacher = _teacher("lstm")

    def spread(noise: float) -> float:
        student, widening = widen(teacher, 12, noise=noise, key=KEY)
        gradient = _gradient(student).cell.input_weights[:, :12]
        return float(jnp.max(jnp.abs(gradient[:, 6:] - gradient[:, widening.origin[6:]])))

    assert spread(0.0) < 1e-7
    assert spread(1.0) > 1e-5


def test_zero_sum_noise():
    index = np.array([0, 1, 2, 1, 1, 0])
    noise = np.asarray(zero_sum_noise(KEY, index, 500))
    for unit in range(3):
        np.testing.assert_allclose(noise[index == unit].sum(0), 0.0, atol=1e-6)
    assert np.all(noise[2] == 0)
    assert noise[[0, 5]].min() >= -1 / 2
    assert noise[[1, 3, 4]].min() >= -1 / 3
    assert noise[[1, 3, 4]].max() <= 2 / 3
    assert np.all(noise[[0, 1, 3, 4, 5]].std(1) > 0.1)  # each column has its own
    np.testing.assert_allclose(noise[[1, 3, 4]].mean(1), 0.0, atol=0.05)


@eqx.filter_jit
def _gradient(model: Model):
    parameters, rest = eqx.partition(model, trained(model))
    return jax.grad(lambda p: TASK.score(eqx.combine(p, rest)(EPISODES)[0], EPISODES)[0])(parameters)


@pytest.mark.parametrize("name", ["lstm-peepholes", "lstm-norm", "gru-reset-after", "nru", "stack"])
def test_optimiser_state_is_that_of_shared_gradients(name: str):
    """After one step of Adam the mapped moments are those of the student's own gradient (exact without noise)."""
    teacher, optimizer = _teacher(name), optax.chain(optax.clip_by_global_norm(1e6), optax.amsgrad(1e-3))
    student, widening = widen(teacher, 12, noise=0.0, key=KEY)

    @eqx.filter_jit
    def after_one_step(model):
        parameters = eqx.filter(model, trained(model))
        return optimizer.update(_gradient(model), optimizer.init(parameters), parameters)[1]

    mapped = widen_optimizer(optimizer, after_one_step(teacher), teacher, student, widening)
    wanted = after_one_step(student)
    assert jax.tree.structure(mapped) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(mapped), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("below", "layer"),
    [
        ("lstm", lambda key: RNN(6, 6, activation="identity", key=key)),
        ("nru", lambda key: RNN(6, 6, activation="relu", key=key)),
        ("nru", lambda key: NRU(6, 6, memory_size=16, heads=4, key=key)),
    ],
)
def test_deeper_is_exact_where_there_is_an_identity(below: str, layer):
    teacher = _teacher(below)
    student = deepen(teacher, layer(KEY))
    assert largest_difference(teacher, student, EPISODES) < 1e-6


@pytest.mark.parametrize(
    ("layer", "bound"),
    [
        (lambda key: RNN(6, 6, key=key), 1e-4),
        (lambda key: GRU(6, 6, reset_after=True, key=key), 2e-3),
        (lambda key: LSTM(6, 6, peepholes=True, key=key), 2e-3),
    ],
)
def test_deeper_is_near_elsewhere(layer, bound: float):
    teacher = _teacher("lstm")
    near = largest_difference(teacher, deepen(teacher, layer(KEY)), EPISODES)
    far = largest_difference(teacher, deepen(teacher, layer(KEY), scale=0.5, gate_bias=3.0), EPISODES)
    assert near < bound
    assert far > 10 * near


def test_a_deepened_network_can_be_widened():
    teacher = deepen(deepen(_teacher("lstm"), GRU(6, 6, key=KEY)), LSTM(6, 6, key=KEY))
    for size in ("a", "b", "h"):
        student, _ = widen(teacher, 9, size=size, key=KEY)
        assert largest_difference(teacher, student, EPISODES) < 1e-5


def test_bad_input():
    teacher = _teacher("lstm-norm")
    with pytest.raises(ValueError, match="hidden_size=4 cannot work: wanted more than the 6 units"):
        widen(teacher, 4, key=KEY)
    with pytest.raises(ValueError, match="hidden_size=13 cannot work: wanted a multiple of the 6 units"):
        widen(teacher, 13, key=KEY)
    with pytest.raises(ValueError, match="size='q' cannot work"):
        widen(teacher, 12, size="q", key=KEY)
    with pytest.raises(ValueError, match="cell='EURNN' cannot work: wanted a cell that can be widened"):
        widen(make_model(TASK, "eurnn", hidden_size=8, key=KEY), 16, key=KEY)
    with pytest.raises(ValueError, match="layer='GRU\\(6, 5\\)' cannot work"):
        deepen(teacher, GRU(6, 5, key=KEY))
    with pytest.raises(ValueError, match="layer='LSTM' cannot work: wanted a layer that can pass on"):
        deepen(teacher, LSTM(6, 6, layer_norm=True, key=KEY))
