"""Every cell against the float64 NumPy function of its equations: outputs, and gradients by finite differences."""

import importlib
import pkgutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon.cells import CELLS, trained
from tests import oracles
from tests.oracles._case import Case, stop

CASES: list[Case] = [
    case
    for module in pkgutil.iter_modules(oracles.__path__)
    if not module.name.startswith("_")
    for case in importlib.import_module(f"{oracles.__name__}.{module.name}").CASES
]


def _float64(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64) if eqx.is_inexact_array(leaf) else leaf, tree)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outputs_and_gradients(case: Case):
    rng = np.random.default_rng(0)
    cell = _float64(eqx.filter_jit(case.make)(jax.random.key(1)))
    # Parameters that start at zero or at the same value would hide mistakes: give every one its own value.
    parameters, rest = eqx.partition(cell, trained(cell))
    cell = eqx.combine(jax.tree.map(lambda a: a + 0.1 * rng.standard_normal(a.shape), parameters), rest)
    xs = rng.standard_normal((6, cell.input_size))
    stop.record()
    expected = case.oracle(cell, xs)
    weights = rng.standard_normal(expected.shape)
    with jax.enable_x64(True):

        def loss(cell, xs):
            outputs = unroll(cell, xs[None]).outputs[0]
            return jnp.sum(outputs * weights), outputs

        on_device = jax.tree.map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, (cell, xs))
        differentiate = eqx.filter_jit(
            lambda args: eqx.filter_value_and_grad(lambda both: loss(*both), has_aux=True)(args)
        )
        (_, outputs), gradient = differentiate(on_device)
    np.testing.assert_allclose(outputs, expected, rtol=1e-8, atol=1e-9)

    movable, rest = eqx.partition((cell, xs), trained((cell, xs)))
    direction = jax.tree.map(lambda a: rng.standard_normal(a.shape), movable)

    def moved(step):
        stop.play_back()
        there = jax.tree.map(lambda a, d: a + step * d, movable, direction)
        return np.sum(case.oracle(*eqx.combine(there, rest)) * weights)

    slope = (moved(1e-6) - moved(-1e-6)) / 2e-6
    gradient = eqx.filter(gradient, trained(gradient))
    products = jax.tree.map(lambda g, d: np.sum(np.asarray(g) * d), gradient, direction)
    np.testing.assert_allclose(sum(jax.tree.leaves(products)), slope, rtol=1e-5, atol=1e-6)


def test_every_registered_cell_has_an_oracle():
    covered = {type(eqx.filter_eval_shape(case.make, jax.random.key(0))) for case in CASES}
    assert {entry.cell for entry in CELLS.values()} <= covered
