"""Thesis 2.41-2.42."""

import numpy as np
from scipy.linalg import expm

from mnemon.cells import SpectralRNN

from ._case import Case, sigmoid

ACTIVATIONS = {"tanh": np.tanh, "identity": lambda z: z}


def _basis(orthogonal):
    n = orthogonal.base.array.shape[0]
    a = np.zeros((n, n))
    entries = iter(orthogonal.generator)
    for row in range(n):
        for column in range(row):
            a[row, column] = next(entries)
    return orthogonal.base.array @ expm(a - a.T)


def oracle(cell, xs):
    matrix = _basis(cell.left)
    if cell.right is not None:
        s = 2 * cell.margin * (sigmoid(cell.spectrum) - 0.5) + 1
        matrix = matrix @ np.diag(s) @ _basis(cell.right).T
    h, outputs = cell.initial, []
    for x in xs:
        h = ACTIVATIONS[cell.activation](x @ cell.input_weights + h @ matrix + cell.bias)
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("spectral-rnn", lambda k: SpectralRNN(3, 5, margin=0.3, key=k), oracle),
    Case("spectral-rnn-orthogonal", lambda k: SpectralRNN(3, 5, margin=0, activation="identity", key=k), oracle),
]
