"""Equations 2-8, column vectors and [outputs, inputs] matrices as printed."""

import numpy as np

from mnemon.cells import GatedFastWeights

from ._case import Case, layer_norm, sigmoid


def oracle(cell, xs):
    m, o = cell.output_size, cell.slow_size
    one = [1.0] if cell.fast_bias else []
    sizes = [(m, m + cell.input_size + len(one)), (m, m + len(one))]
    s1 = np.concatenate([cell.slow_recurrent_weights, cell.slow_input_weights]).T
    fast = [np.zeros(size) for size in sizes]
    h_fast, h_slow, outputs = np.zeros(m), np.zeros(o), []

    def activate(v):
        v = layer_norm(v, eps=cell.eps) if cell.layer_norm in ("pre", "both") else v
        v = np.tanh(v)
        return layer_norm(v, eps=cell.eps) if cell.layer_norm in ("post", "both") else v

    for x in xs:
        inner = activate(fast[0] @ np.concatenate([h_fast, x, one]))
        h_fast = activate(fast[1] @ np.concatenate([inner, one]))
        slow = cell.update_weights.T @ np.tanh(s1 @ np.concatenate([h_slow, x]) + cell.slow_bias) + cell.update_bias
        h_slow, rest = np.tanh(slow[:o]), slow[o:]
        vectors = []  # alpha, beta of both matrices, then gamma, delta of both
        for _ in range(2 if cell.gate else 1):
            for rows, columns in sizes:
                vectors += [rest[:rows], rest[rows : rows + columns]]
                rest = rest[rows + columns :]
        assert rest.size == 0
        for i in range(2):
            h = np.outer(np.tanh(vectors[2 * i]), np.tanh(vectors[2 * i + 1]))
            if cell.gate:
                t = np.outer(sigmoid(vectors[4 + 2 * i]), sigmoid(vectors[5 + 2 * i]))
                fast[i] = t * h + (1 - t) * fast[i]
            else:
                fast[i] = fast[i] + h
        outputs.append(h_fast)
    return np.stack(outputs)


CASES = [
    Case("gated-fast-weights", lambda k: GatedFastWeights(3, 5, slow_size=4, slow_layer_size=7, key=k), oracle),
    Case("gated-fast-weights-no-gate", lambda k: GatedFastWeights(3, 5, slow_layer_size=7, gate=False, key=k), oracle),
    Case(
        "gated-fast-weights-no-bias",
        lambda k: GatedFastWeights(3, 5, slow_layer_size=7, fast_bias=False, layer_norm="both", eps=1e-2, key=k),
        oracle,
    ),
    Case(
        "gated-fast-weights-pre", lambda k: GatedFastWeights(3, 5, slow_layer_size=7, layer_norm="pre", key=k), oracle
    ),
    Case(
        "gated-fast-weights-raw", lambda k: GatedFastWeights(3, 5, slow_layer_size=7, layer_norm="none", key=k), oracle
    ),
]
