"""Arrays that are not trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemon._errors import UnknownName
from mnemon.cells import DNTM, TARDIS, Fixed, Stack, count_parameters, set_fixed, trained


def _tardis(**options):
    return TARDIS(3, 6, memory_slots=4, address_size=2, word_size=5, key=jax.random.key(0), **options)


def test_a_fixed_array_is_no_parameter():
    with_addresses, leaves = _tardis(), jax.tree.leaves(_tardis())
    fixed = 4 * 2 + 1  # the addresses and the temperature of the gates
    assert count_parameters(with_addresses) == sum(leaf.size for leaf in leaves) - fixed
    shapes = eqx.filter_eval_shape(_tardis)
    assert count_parameters(shapes) == count_parameters(with_addresses)


def test_neither_gradients_nor_weight_decay_move_it():
    cell = _tardis()
    x = jnp.ones(3)

    def loss(cell):
        return jnp.sum(cell(cell.init_state(), x)[1] ** 2)

    gradient = eqx.filter_jit(eqx.filter_grad(loss))(cell)
    np.testing.assert_array_equal(gradient.addresses.array, 0.0)
    optimizer = optax.adamw(0.1, weight_decay=0.5)
    parameters = eqx.filter(cell, trained(cell))
    steps, _ = optimizer.update(eqx.filter(gradient, trained(gradient)), optimizer.init(parameters), parameters)
    moved = eqx.apply_updates(cell, steps)
    np.testing.assert_array_equal(moved.addresses.array, cell.addresses.array)
    assert np.any(np.asarray(moved.micro_weights) != np.asarray(cell.micro_weights))


def test_set_by_name_wherever_it_is_and_inside_jit():
    cell = DNTM(3, 5, addressing="discrete", key=jax.random.key(0))
    model = {"stack": Stack(cell), "other": Fixed(jnp.ones(2), "other")}
    changed = eqx.filter_jit(lambda model, p: set_fixed(model, soft_probability=p))(model, 0.25)
    assert float(changed["stack"].cells[0].soft_probability.value) == 0.25
    np.testing.assert_array_equal(changed["other"].value, 1.0)
    assert jax.tree.structure(changed) == jax.tree.structure(model)


def test_an_unknown_name_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'soft_probability'"):
        set_fixed(DNTM(3, 5, addressing="discrete", key=jax.random.key(0)), soft_probabilty=0.5)
    with pytest.raises(UnknownName, match="unknown fixed array"):
        set_fixed(_tardis(), soft_probability=0.5)
