"""W <- squash(W + TO FROM^T); y = W x."""

import numpy as np

from mnemon.cells import FeedForwardFastWeights

from ._case import Case


def oracle(cell, xs):
    squash = np.tanh if cell.squash == "tanh" else (lambda w: w)
    fast, outputs = np.zeros((cell.output_size, cell.input_size)), []
    for x in xs:
        slow = x @ cell.slow_weights + cell.bias
        source, target = slow[: cell.input_size], slow[cell.input_size :]
        fast = squash(fast + np.outer(target, source))
        outputs.append(fast @ x)
    return np.stack(outputs)


CASES = [
    Case("ff-fast-weights", lambda k: FeedForwardFastWeights(3, 5, key=k), oracle),
    Case("ff-fast-weights-linear", lambda k: FeedForwardFastWeights(3, 5, squash="none", key=k), oracle),
]
