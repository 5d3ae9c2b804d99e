"""Arjovsky et al. 2016 and Wisdom et al. 2016: every factor as a dense complex matrix."""

import numpy as np
from scipy.linalg import expm

from mnemon.cells import URNN, FullURNN

from ._case import Case


def _product_of_factors(cell):
    n = cell.bias.size
    fourier = np.array([[np.exp(-2j * np.pi * j * k / n) for k in range(n)] for j in range(n)]) / np.sqrt(n)
    d1, d2, d3 = (np.diag(np.exp(1j * angles)) for angles in cell.angles)
    v1, v2 = (re + 1j * im for re, im in cell.reflections)
    r1, r2 = (np.eye(n) - 2 * np.outer(v, v.conj()) / np.sum(np.abs(v) ** 2) for v in (v1, v2))
    permutation = np.eye(n)[np.asarray(cell.permutation)]
    return d3 @ r2 @ fourier.conj().T @ d2 @ permutation @ r1 @ fourier @ d1


def _exponential(cell):
    n = cell.bias.size
    g = cell.unitary.generator
    skew = np.zeros((n, n), complex)
    for j in range(n):
        skew[j, j] = 1j * g[j, j]
        for k in range(j):
            skew[j, k], skew[k, j] = g[j, k] + 1j * g[k, j], -g[j, k] + 1j * g[k, j]
    base = cell.unitary.base.array[0] + 1j * cell.unitary.base.array[1]
    return (base @ expm(skew)).T  # for column vectors


def _oracle(matrix_of):
    def oracle(cell, xs):
        n = cell.bias.size
        matrix = matrix_of(cell)
        v = cell.input_weights[:, :n] + 1j * cell.input_weights[:, n:]
        h, outputs = cell.initial[0] + 1j * cell.initial[1], []
        for x in xs:
            z = matrix @ h + x @ v
            modulus = np.abs(z) + 1e-5
            h = z / modulus * np.maximum(modulus + cell.bias, 0)
            outputs.append(np.concatenate([h.real, h.imag]))
        return np.stack(outputs)

    return oracle


CASES = [
    Case("urnn", lambda k: URNN(3, 5, key=k), _oracle(_product_of_factors)),
    Case("urnn-even", lambda k: URNN(3, 8, key=k), _oracle(_product_of_factors)),
    Case("full-urnn", lambda k: FullURNN(3, 5, key=k), _oracle(_exponential)),
]
