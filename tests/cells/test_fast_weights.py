"""The two forms of fast weights are one network."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core as jex

from mnemon import Plan, unroll
from mnemon.cells import RNN, FastWeights, count_parameters, time_varying

BATCH, TIME, INPUT, HIDDEN = 4, 9, 3, 13


def _pair(**options) -> tuple[FastWeights, FastWeights]:
    """The same network in both forms, with parameters that hide nothing."""
    noise = jax.random.key(7)

    def make(form):
        cell = FastWeights(INPUT, HIDDEN, form=form, max_steps=TIME, **options, key=jax.random.key(0))
        return jax.tree.map(lambda a: a + 0.1 * jax.random.normal(noise, a.shape) if eqx.is_array(a) else a, cell)

    return make("matrix"), make("attention")


def _inputs(time: int = TIME) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (BATCH, time, INPUT))


def _outputs_and_gradients(cell, **options):
    def loss(cell):
        outputs = unroll(cell, _inputs(), **options).outputs
        return jnp.sum(jnp.sin(outputs)), outputs

    (_, outputs), gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))(cell)
    return outputs, jax.tree.leaves(eqx.filter(gradient, eqx.is_inexact_array))


@pytest.mark.parametrize(
    ("options", "run"),
    [
        ({}, {"lengths": jnp.array([9, 4, 1, 6]), "reset": jnp.zeros((BATCH, TIME), bool).at[0, 4].set(True)}),
        ({"inner_steps": 3, "decay": 0.9}, {}),
        ({"layer_norm": "slow", "rate": 0.01}, {}),
        ({"layer_norm": "none", "activation": "tanh", "normalise_start": True}, {}),
    ],
    ids=["lengths and resets", "inner steps", "slow", "none"],
)
def test_attention_is_the_matrix(options, run):
    for a, b in zip(*(jax.tree.leaves(_outputs_and_gradients(cell, **run)) for cell in _pair(**options)), strict=True):
        scale = 1.0 + np.max(np.abs(a))
        np.testing.assert_allclose(a / scale, b / scale, atol=1e-5)


def test_attention_can_be_carried_over():
    matrix, attention = _pair()
    first = unroll(attention, _inputs()[:, :4])
    second = unroll(attention, _inputs()[:, 4:], state=first.state)
    np.testing.assert_allclose(second.outputs, unroll(matrix, _inputs()).outputs[:, 4:], atol=1e-5)


def test_beyond_max_steps_the_oldest_states_are_forgotten():
    short = FastWeights(INPUT, HIDDEN, form="attention", max_steps=2, key=jax.random.key(0))
    matrix = FastWeights(INPUT, HIDDEN, form="matrix", key=jax.random.key(0))
    a, b = (unroll(cell, _inputs()).outputs for cell in (short, matrix))
    np.testing.assert_allclose(a[:, :3], b[:, :3], atol=1e-5)
    assert float(jnp.max(jnp.abs(a[:, 3:] - b[:, 3:]))) > 1e-3


def _shapes(jaxpr) -> set[tuple[int, ...]]:
    """Shapes of all values of a traced computation and of the computations inside it."""
    found = {tuple(var.aval.shape) for eqn in jaxpr.eqns for var in eqn.outvars}
    for eqn in jaxpr.eqns:
        for value in jax.tree.leaves(eqn.params, is_leaf=lambda v: isinstance(v, jex.ClosedJaxpr | jex.Jaxpr)):
            inner = value.jaxpr if isinstance(value, jex.ClosedJaxpr) else value
            if isinstance(inner, jex.Jaxpr):
                found |= _shapes(inner)
    return found


@pytest.mark.parametrize("plan", [Plan(), Plan(defer=False), Plan(remat=True, segment=3)])
def test_attention_never_builds_the_matrix(plan):
    def trace(cell):
        dynamic, static = eqx.partition(cell, eqx.is_array)

        def loss(dynamic):
            return jnp.sum(unroll(eqx.combine(dynamic, static), _inputs(), plan=plan).outputs)

        return _shapes(jax.make_jaxpr(jax.grad(loss))(dynamic).jaxpr)

    matrix, attention = (trace(cell) for cell in _pair())
    built = {shape for shape in matrix if shape[-2:] == (HIDDEN, HIDDEN) and BATCH in shape}
    assert built, "the matrix form builds B x h x h, else this test sees nothing"
    assert not {shape for shape in attention if shape[-2:] == (HIDDEN, HIDDEN) and BATCH in shape}


def test_the_form_is_chosen_by_cost():
    def form(**options):
        return FastWeights(INPUT, HIDDEN, **options, key=jax.random.key(0)).form

    assert form() == "matrix"
    assert form(max_steps=HIDDEN) == "matrix"
    assert form(max_steps=HIDDEN - 1) == "attention"
    assert form(max_steps=HIDDEN - 1, form="matrix") == "matrix"


def test_without_inner_steps_it_is_an_rnn():
    cell = _pair(inner_steps=0)[0]
    rnn = RNN(INPUT, HIDDEN, activation="relu", key=jax.random.key(0))
    parts = ("input_weights", "recurrent_weights", "bias")
    rnn = eqx.tree_at(lambda c: [getattr(c, part) for part in parts], rnn, [getattr(cell, part) for part in parts])
    np.testing.assert_allclose(unroll(cell, _inputs()).outputs, unroll(rnn, _inputs()).outputs, atol=1e-6)


def test_sizes_of_the_published_network():
    cell = FastWeights(15, 300, key=jax.random.key(0))
    embedding, readout = 15 * 15, 300 * 15 + 15
    assert count_parameters(cell) + embedding + readout == 100_140
    assert time_varying(cell) == 300 + 300 * 300
    assert time_varying(FastWeights(15, 300, max_steps=11, key=jax.random.key(0))) == 11 * 300


@pytest.mark.parametrize(
    "options",
    [
        {"inner_steps": -1},
        {"decay": -0.1},
        {"decay": 1.5},
        {"rate": -1.0},
        {"max_steps": 0},
        {"hidden_size": 0},
    ],
)
def test_bad_input(options):
    (argument,) = options
    with pytest.raises(ValueError, match=argument):
        FastWeights(3, **{"hidden_size": 5, **options}, key=jax.random.key(0))


def test_attention_needs_to_know_how_many_steps():
    with pytest.raises(ValueError, match="max_steps"):
        FastWeights(3, 5, form="attention", key=jax.random.key(0))
