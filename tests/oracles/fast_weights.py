"""Ba et al. 2016 with the matrix A built: z = x C + h W + b, h <- f(LN(z + A h)), A <- lambda A + eta h h^T."""

import numpy as np

from mnemon.cells import FastWeights

from ._case import Case, layer_norm


def oracle(cell, xs):
    n = cell.output_size
    f = np.tanh if cell.activation == "tanh" else (lambda v: np.maximum(v, 0))
    h, past, outputs = np.zeros(n), [], []
    for x in xs:
        z = x @ cell.input_weights + h @ cell.recurrent_weights + cell.bias
        kept = past if cell.max_steps is None or cell.form == "matrix" else past[-cell.max_steps :]
        fast = sum(
            (cell.rate * cell.decay**age * np.outer(v, v) for age, v in enumerate(reversed(kept))), np.zeros((n, n))
        )
        if cell.layer_norm == "slow":
            z = layer_norm(z, cell.norm.gain, cell.norm.shift)
        h = f(z) if cell.start_norm is None else f(layer_norm(z, cell.start_norm.gain, cell.start_norm.shift))
        for _ in range(cell.inner_steps):
            total = z + fast @ h
            h = f(layer_norm(total, cell.norm.gain, cell.norm.shift) if cell.layer_norm == "sum" else total)
        past.append(h)
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("fast-weights", lambda k: FastWeights(3, 5, key=k), oracle),
    Case("fast-weights-attention", lambda k: FastWeights(3, 5, form="attention", max_steps=6, key=k), oracle),
    Case(
        "fast-weights-window", lambda k: FastWeights(3, 5, form="attention", max_steps=2, inner_steps=2, key=k), oracle
    ),
    Case("fast-weights-3-steps", lambda k: FastWeights(3, 5, inner_steps=3, normalise_start=True, key=k), oracle),
    Case("fast-weights-slow-norm", lambda k: FastWeights(3, 5, layer_norm="slow", rate=0.1, key=k), oracle),
    Case(
        "fast-weights-no-norm",
        lambda k: FastWeights(
            3, 5, layer_norm="none", activation="tanh", decay=0.7, form="attention", max_steps=7, key=k
        ),
        oracle,
    ),
    Case("fast-weights-no-inner-step", lambda k: FastWeights(3, 5, inner_steps=0, key=k), oracle),
]
