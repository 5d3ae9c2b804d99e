"""Lemmas 3 and 4 against integration and Monte Carlo, and where Theorem 2 holds."""

import math

import numpy as np
import pytest

from mnemon._errors import MnemonError
from mnemon.lens import (
    critical_product,
    many_programs_chance,
    one_program_chance,
    power_density,
    product_density,
    sampled_chances,
)


@pytest.mark.parametrize("programs", [1, 2, 5])
@pytest.mark.parametrize("b", [0.7, 1.6])
def test_densities_integrate_to_the_chances(programs, b):
    gamma = 4.0
    limit = gamma**-programs
    # Substituting x = exp(u): both densities are singular at 0.
    u = np.linspace(math.log(limit) - 60, math.log(limit), 400_001)
    x = np.exp(u)
    many = np.trapezoid(product_density(x, programs, b) * x, u)
    one = np.trapezoid(power_density(x, programs, b) * x, u)
    np.testing.assert_allclose(many, many_programs_chance(programs, gamma * b), rtol=1e-5)
    # The tail of the power's density below the grid is exp(-60 / programs) of the whole.
    np.testing.assert_allclose(one, one_program_chance(gamma * b), rtol=1e-5)


@pytest.mark.parametrize("programs", [2, 4])
def test_densities_are_those_of_samples(programs):
    b, count = 1.5, 400_000
    draws = b * np.random.default_rng(0).random((count, programs))
    edges = np.linspace(0.05, 0.9, 9) * b**programs
    middles = np.linspace(edges[:-1], edges[1:], 201).T
    for samples, density in ((draws.prod(1), product_density), (draws[:, 0] ** programs, power_density)):
        observed = np.histogram(samples, edges)[0]
        expected = count * np.trapezoid(density(middles, programs, b), middles, axis=1)
        assert np.all(np.abs(observed - expected) < 5 * np.sqrt(expected + 1))


@pytest.mark.parametrize("programs", [1, 3, 50])
def test_chances_are_those_of_samples(programs):
    product, samples = np.array([0.5, 1.0, 2.0, math.e, 4.0, 9.0]), 40_000
    one, many = sampled_chances(programs, product, samples, np.random.default_rng(4))
    for sampled, exact in ((one, one_program_chance(product)), (many, many_programs_chance(programs, product))):
        assert np.all(np.abs(sampled - exact) < 5 * np.sqrt(exact * (1 - exact) / samples) + 1e-12)


@pytest.mark.parametrize("programs", [2, 3, 10, 100, 1000])
def test_theorem_2_holds_above_the_critical_product_and_fails_below(programs):
    critical = critical_product(programs)
    assert math.e < critical < 4
    assert many_programs_chance(programs, 1.01 * critical) < one_program_chance(1.01 * critical)
    for product in (1.01, 2.0, 0.99 * critical):
        assert many_programs_chance(programs, product) > one_program_chance(product)


def test_the_critical_product_falls_to_e():
    values = [critical_product(n) for n in (2, 5, 20, 100, 1000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] - math.e < 0.05


def test_bad_input():
    with pytest.raises(MnemonError, match="programs=0"):
        many_programs_chance(0, 2.0)
    with pytest.raises(MnemonError, match="one program is one program"):
        critical_product(1)
