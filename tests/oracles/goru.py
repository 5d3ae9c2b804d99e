"""Gated orthogonal recurrent unit, the rotations as one dense matrix (Jing et al. 2017)."""

import numpy as np

from mnemon.cells import GORU

from ._case import Case, sigmoid
from ._dense import rotation_matrix


def oracle(cell, xs):
    matrix = rotation_matrix(cell.rotations)
    n = cell.output_size
    u_r, u_g, u_c = np.split(cell.input_weights, 3, axis=1)
    w_r, w_g = np.split(cell.gate_weights, 2, axis=1)
    b_r, b_g, b_c = np.split(cell.bias, 3)
    h, outputs = np.zeros(n), []
    for x in xs:
        r = sigmoid(x @ u_r + h @ w_r + b_r)
        g = sigmoid(x @ u_g + h @ w_g + b_g)
        z = x @ u_c + r * (h @ matrix)
        c = np.sign(z) * np.maximum(np.abs(z) + cell.modulus_eps + b_c, 0)
        h = g * h + (1 - g) * c
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("goru", lambda k: GORU(3, 8, key=k), oracle),
    Case("goru-tunable", lambda k: GORU(3, 6, capacity=2, modulus_eps=0.001, key=k), oracle),
]
