"""Thesis 2.43-2.47, one moving average after another."""

import numpy as np

from mnemon.cells import SRU

from ._case import Case


def oracle(cell, xs):
    averages = [np.zeros(cell.statistics_size) for _ in cell.alphas]
    outputs = []
    for x in xs:
        r = np.maximum(np.concatenate(averages) @ cell.recurrent_weights + cell.recurrent_bias, 0)
        statistics = np.maximum(x @ cell.input_weights + r @ cell.statistics_weights + cell.statistics_bias, 0)
        averages = [a * m + (1 - a) * statistics for a, m in zip(cell.alphas, averages, strict=True)]
        outputs.append(np.maximum(np.concatenate(averages) @ cell.output_weights + cell.output_bias, 0))
    return np.stack(outputs)


CASES = [
    Case("sru", lambda k: SRU(3, 5, statistics_size=4, recurrent_size=2, key=k), oracle),
    Case(
        "sru-two-scales",
        lambda k: SRU(3, 5, statistics_size=4, recurrent_size=7, alphas=(0.3, 0.8), key=k),
        oracle,
    ),
]
