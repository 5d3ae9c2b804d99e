"""h' = tanh((W + F) h + C x); F' = F + TO(h) FROM(h)^T."""

import numpy as np

from mnemon.cells import RecurrentFastWeights

from ._case import Case


def oracle(cell, xs):
    n = cell.output_size
    h, fast, outputs = np.zeros(n), np.zeros((n, n)), []
    slow, to_source, to_target = np.split(cell.recurrent_weights, 3, axis=1)
    for x in xs:
        source, target = h @ to_source + cell.source_bias, h @ to_target + cell.target_bias
        h = np.tanh((slow.T + fast) @ h + x @ cell.input_weights + cell.bias)
        fast = fast + np.outer(target, source)
        outputs.append(h)
    return np.stack(outputs)


CASES = [Case("recurrent-fast-weights", lambda k: RecurrentFastWeights(3, 5, key=k), oracle)]
