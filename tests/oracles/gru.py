"""Thesis 2.30-2.33, and the variant that resets after the product."""

import numpy as np

from mnemon.cells import GRU

from ._case import Case, sigmoid


def oracle(cell, xs):
    n = cell.output_size
    wz, wr, wh = (cell.input_weights[:, k * n : (k + 1) * n] for k in range(3))
    uz, ur = cell.gate_weights[:, :n], cell.gate_weights[:, n:]
    bz, br, bh = (cell.bias[k * n : (k + 1) * n] for k in range(3))
    h, outputs = np.zeros(n), []
    for x in xs:
        z = sigmoid(x @ wz + h @ uz + bz)
        r = sigmoid(x @ wr + h @ ur + br)
        if cell.candidate_bias is None:
            candidate = np.tanh(x @ wh + (r * h) @ cell.candidate_weights + bh)
        else:
            candidate = np.tanh(x @ wh + bh + r * (h @ cell.candidate_weights + cell.candidate_bias))
        h = (1 - z) * h + z * candidate
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("gru", lambda k: GRU(3, 5, key=k), oracle),
    Case("gru-reset-after", lambda k: GRU(3, 5, reset_after=True, key=k), oracle),
]
