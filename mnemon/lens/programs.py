r"""Critical vanishing of the gradients of an interface network with one or with many stored programs.

The gradient of an interface network over T steps is at most a product of T factors \(\gamma \|W^c_t\| \|M\|\)
(Proposition 1). With one program all factors are one X ~ U(0, b) to the power T; with many independent programs they
are T independent ones. The gradient vanishes when the product of the X is below \(\gamma^{-T}\).

Theorem 2 says that many programs vanish less often than one. Both chances depend on \(\gamma b\) and T alone: for
\(\gamma b \geq 1\) the chance of one program is \(1 / (\gamma b)\), and that of many is \(P(G \geq T \ln \gamma b)\),
where G, the sum of the -ln(X / b), is Gamma-distributed with shape T. By the law of large numbers the latter goes to 0
for \(\gamma b > e\) and to 1 for \(\gamma b < e\): the theorem holds exactly where \(\gamma b\) is above a critical
value that falls from 3.51 at T = 2 to e (see [`critical_product`][mnemon.lens.critical_product]), and fails below it.
"""

import math

import numpy as np

from .._errors import require


def many_programs_chance(programs: int, product: np.ndarray | float) -> np.ndarray:
    r"""P(X_1 ... X_T < gamma^-T), the integral of Lemma 3, for each \(\gamma b\).

    >>> many_programs_chance(1, 4.0)
    array(0.25)
    """
    _check_programs(programs)
    excess = programs * np.log(np.maximum(np.asarray(product, float), 1.0))  # T ln(gamma b)
    # P(Gamma(T) >= y) = P(Poisson(y) < T)
    with np.errstate(divide="ignore"):
        logs = np.log(excess)
    terms = [
        np.exp(-excess) if k == 0 else np.where(excess > 0, np.exp(k * logs - excess - math.lgamma(k + 1)), 0.0)
        for k in range(programs)
    ]
    return np.asarray(np.minimum(np.sum(terms, axis=0), 1.0))


def one_program_chance(product: np.ndarray | float) -> np.ndarray:
    r"""P(X < 1 / gamma), the integral of Lemma 4, for each \(\gamma b\).

    >>> one_program_chance(np.array([0.5, 4.0]))
    array([1.  , 0.25])
    """
    return np.asarray(np.minimum(1.0, 1.0 / np.maximum(np.asarray(product, float), 1e-300)))


def product_density(x: np.ndarray, programs: int, b: float) -> np.ndarray:
    """The density of X_1 ... X_n at 0 < x < b^n (Lemma 3)."""
    _check_programs(programs)
    excess = programs * math.log(b) - np.log(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(excess > 0, (programs - 1) * np.log(np.maximum(excess, 0)), -np.inf) if programs > 1 else 0.0
    return np.where(excess >= 0, np.exp(powers - programs * math.log(b) - math.lgamma(programs)), 0.0)


def power_density(x: np.ndarray, programs: int, b: float) -> np.ndarray:
    """The density of X^n at 0 < x < b^n (Lemma 4)."""
    _check_programs(programs)
    inside = x < b**programs
    return np.where(inside, x ** (1.0 / programs - 1.0) / (b * programs), 0.0)


def sampled_chances(
    programs: int, product: np.ndarray, samples: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    r"""Both chances (one program, many) by Monte Carlo, for each \(\gamma b\)."""
    _check_programs(programs)
    require(samples >= 1, "samples", samples, "at least one sample", "samples=100000")
    # ln(X / b), summed over the programs; the factors b and gamma are on the other side.
    logs = np.log(1.0 - random.random((samples, programs)))
    one, many = np.sort(programs * logs[:, 0]), np.sort(logs.sum(axis=1))
    limits = -programs * np.log(product)
    return np.searchsorted(one, limits) / samples, np.searchsorted(many, limits) / samples


def critical_product(programs: int) -> float:
    r"""The \(\gamma b\) above which Theorem 2 holds for T = `programs`, and below which (down to 1) it fails.

    >>> round(critical_product(2), 4)
    3.5129
    """
    require(programs >= 2, "programs", programs, "two or more; one program is one program", "programs=10")
    low, high = math.e, 4.0  # many - one is positive at e and negative at 4
    for _ in range(60):
        middle = (low + high) / 2
        if many_programs_chance(programs, middle) > one_program_chance(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _check_programs(programs: int) -> None:
    require(programs >= 1, "programs", programs, "at least one", "programs=10")
