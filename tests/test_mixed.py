"""Mixed precision: products in bfloat16, all else in float32, for every cell."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, unroll
from mnemon._mixed import with_precision
from mnemon.cells import trained
from mnemon.training import Interrupted
from mnemon.training.runs import RunConfig, open_run, train_run
from tests.tiny import INPUT, NAMES, tiny_cell

# A rounding error of bfloat16 is 2^-9 of a number. These losses are of order 1 and come from a few dozen products in a
# row; a cell that chooses a slot may choose another one of two that are about equally likely.
_TOLERANCE = 0.05


def _loss(cell, precision):
    inputs = jax.random.normal(jax.random.key(1), (4, 7, INPUT))
    result = unroll(cell, inputs, key=jax.random.key(2), precision=precision)
    return jnp.mean(result.outputs**2), result


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_trains_in_mixed_precision(name: str):
    parameters, rest = eqx.partition(tiny_cell(name), trained(tiny_cell(name)))

    @eqx.filter_jit
    def both(parameters):
        def loss(parameters):
            return _loss(eqx.combine(parameters, rest), "bfloat16")

        (mixed, result), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        return mixed, result, gradient, _loss(eqx.combine(parameters, rest), "float32")

    mixed, result, gradient, (full, like) = both(parameters)
    assert abs(mixed - full) <= _TOLERANCE * (1 + abs(full))
    kinds = [[leaf.dtype for leaf in jax.tree.leaves(tree)] for tree in (result, like)]
    assert kinds[0] == kinds[1]  # no state is rounded
    for leaf in jax.tree.leaves(gradient):
        assert leaf.dtype in (jnp.float32, jnp.complex64)
        assert np.all(np.isfinite(np.asarray(leaf)))


@pytest.mark.parametrize("plan", [Plan(defer=False), Plan(), Plan(remat=True), Plan(segment=3)], ids=str)
def test_every_plan_gives_the_gradient_of_rounded_products(plan: Plan):
    cell, inputs = tiny_cell("gru"), jax.random.normal(jax.random.key(1), (4, 7, INPUT))

    def loss(cell, precision):
        return jnp.mean(unroll(cell, inputs, plan=plan, precision=precision).outputs ** 2)

    mixed, full = (eqx.filter_jit(eqx.filter_grad(loss))(cell, precision) for precision in ("bfloat16", "float32"))
    for one, other in zip(jax.tree.leaves(mixed), jax.tree.leaves(full), strict=True):
        np.testing.assert_allclose(one, other, atol=0.02 * np.max(np.abs(other)))
        assert np.max(np.abs(one - other)) > 0


def test_sums_over_time_are_not_rounded():
    """A bias adds a term to its gradient at each step: in bfloat16 the sum would stop growing at 256 of them."""

    def count(bias):
        add = with_precision(lambda total, x: (total + bias + 0 * (x @ jnp.ones((1, 1)))[0], None), "bfloat16")
        return jax.lax.scan(add, jnp.zeros(()), jnp.ones((1000, 1)))[0]

    assert jax.jit(jax.grad(count))(1.0) == 1000


def test_products_are_rounded_and_nothing_else():
    third, one = jnp.full((2, 2), 1 / 3), jnp.eye(2)
    product, total = with_precision(lambda a, b: (a @ b, a + b), "bfloat16")(third, one)
    assert product[0, 0] == jnp.bfloat16(1 / 3)
    assert total[0, 1] == jnp.float32(1 / 3)


def test_a_run_resumes_exactly_and_stores_float32(tmp_path: Path):
    config = RunConfig("copying", "lstm", {"delay": 3}, {"hidden_size": 6}, steps=20, log_every=5, precision="bfloat16")
    whole = train_run(config, tmp_path / "whole").records

    def interrupt(record):
        if record["step"] == 10:
            raise Interrupted("enough")

    with pytest.raises(Interrupted):
        train_run(config, tmp_path / "cut", on_record=interrupt, save_seconds=0.0)
    assert train_run(config, tmp_path / "cut", resume=True).records == whole
    _, state = open_run(tmp_path / "cut").load_state()
    assert {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(state, eqx.is_inexact_array))} == {jnp.dtype("float32")}
    full = RunConfig("copying", "lstm", {"delay": 3}, {"hidden_size": 6}, steps=20, log_every=5)
    assert train_run(full, tmp_path / "full").records[-1]["loss"] != whole[-1]["loss"]


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="precision='float8' cannot work: wanted one of float32, bfloat16"):
        RunConfig("copying", "lstm", precision="float8")
