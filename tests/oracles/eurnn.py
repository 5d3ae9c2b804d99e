"""h = modReLU(x U + Rot(h), b), the rotations as one dense matrix (Jing et al. 2017)."""

import numpy as np

from mnemon.cells import EURNN

from ._case import Case
from ._dense import rotation_matrix


def oracle(cell, xs):
    matrix = rotation_matrix(cell.rotations)
    n = cell.output_size
    h, outputs = np.zeros(n), []
    for x in xs:
        drive = x @ cell.input_weights
        if cell.complex_valued:
            z = h @ matrix + drive[:n] + 1j * drive[n:]
            modulus = np.abs(z) + cell.modulus_eps
            h = z / modulus * np.maximum(modulus + cell.bias, 0)
        else:
            z = h @ matrix + drive
            h = np.sign(z) * np.maximum(np.abs(z) + cell.modulus_eps + cell.bias, 0)
        outputs.append(np.real(h))
    return np.stack(outputs)


CASES = [
    Case("eurnn", lambda k: EURNN(3, 8, key=k), oracle),
    Case("eurnn-authors", lambda k: EURNN(3, 4, modulus_eps=0.01, key=k), oracle),
    Case("eurnn-complex", lambda k: EURNN(3, 8, complex_valued=True, key=k), oracle),
    Case("eurnn-tunable", lambda k: EURNN(3, 6, capacity=4, key=k), oracle),
    Case("eurnn-tunable-complex", lambda k: EURNN(3, 10, capacity=2, complex_valued=True, key=k), oracle),
]
