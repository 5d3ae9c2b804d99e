"""A <- decay A + rate (v or v - A k) k^T; y = A q."""

import numpy as np

from mnemon.cells import AssociativeMemory

from ._case import Case


def oracle(cell, xs):
    key_size, value_size = cell.key_size, cell.output_size
    memory, outputs = np.zeros((value_size, key_size)), []
    for x in xs:
        projected = x @ cell.input_weights
        k, v, q = projected[:key_size], projected[key_size : key_size + value_size], projected[key_size + value_size :]
        if cell.unit_keys:
            k, q = k / np.linalg.norm(k), q / np.linalg.norm(q)
        if cell.rule == "delta":
            v = v - memory @ k
        memory = cell.decay * memory + cell.rate * np.outer(v, k)
        outputs.append(memory @ q)
    return np.stack(outputs)


CASES = [
    Case("associative", lambda k: AssociativeMemory(3, 5, key_size=4, rate=0.7, decay=0.9, key=k), oracle),
    Case("associative-raw", lambda k: AssociativeMemory(3, 5, key_size=4, unit_keys=False, key=k), oracle),
    Case("associative-delta", lambda k: AssociativeMemory(3, 5, rule="delta", rate=0.7, decay=0.9, key=k), oracle),
]
