"""Thesis 2.37-2.39."""

import numpy as np

from mnemon.cells import JANET

from ._case import Case, sigmoid


def oracle(cell, xs):
    n = cell.output_size
    h, outputs = np.zeros(n), []
    for x in xs:
        s = x @ cell.input_weights[:, :n] + h @ cell.recurrent_weights[:, :n] + cell.bias[:n]
        candidate = np.tanh(x @ cell.input_weights[:, n:] + h @ cell.recurrent_weights[:, n:] + cell.bias[n:])
        h = sigmoid(s) * h + (1 - sigmoid(s - cell.beta)) * candidate
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("janet", lambda k: JANET(3, 5, key=k), oracle),
    Case("janet-plain-chrono", lambda k: JANET(3, 5, beta=0.0, chrono=20, key=k), oracle),
]
