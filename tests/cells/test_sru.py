"""What a statistical recurrent unit means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon.cells import SRU


def _cell(**options) -> SRU:
    return SRU(3, 5, statistics_size=4, recurrent_size=2, key=jax.random.key(0), **options)


def test_each_scale_forgets_at_its_own_rate():
    cell = _cell(alphas=(0.0, 0.5, 0.9))
    before = cell.init_state()._replace(averages=jnp.ones((3, 4)))
    silent = jnp.full((4,), -1e6)  # a drive under which the statistics are zero
    after, _ = cell.step(before, silent)
    np.testing.assert_allclose(after.averages, np.array([[0.0], [0.5], [0.9]]) * np.ones((3, 4)), rtol=1e-6)


def test_averages_of_constant_statistics_converge_to_them():
    cell = _cell(alphas=(0.0, 0.5, 0.9))
    inputs = jnp.ones((1, 400, 3))
    result = unroll(cell, inputs, observe=lambda state: state.averages)
    fast, _, slow = result.observed[0, -1]
    np.testing.assert_allclose(slow, fast, rtol=1e-3)
    assert not np.allclose(result.observed[0, 2, 0], result.observed[0, 2, 2], rtol=0.1)


def test_bad_input():
    with pytest.raises(ValueError, match=r"alphas=\(0.5, 1.0\).*\[0, 1\)"):
        _cell(alphas=(0.5, 1.0))
    with pytest.raises(ValueError, match="alphas"):
        _cell(alphas=())
    with pytest.raises(ValueError, match="statistics_size=0"):
        SRU(3, 5, statistics_size=0, key=jax.random.key(0))
