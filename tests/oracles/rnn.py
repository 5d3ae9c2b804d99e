"""h = f(LN(x U + h W + b))."""

import numpy as np

from mnemon.cells import RNN

from ._case import Case, layer_norm


def oracle(cell, xs):
    h, outputs = np.zeros(cell.output_size), []
    for x in xs:
        z = x @ cell.input_weights + h @ cell.recurrent_weights + cell.bias
        if cell.norm is not None:
            z = layer_norm(z, cell.norm.gain, cell.norm.shift)
        h = np.tanh(z) if cell.activation == "tanh" else np.maximum(z, 0)
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("rnn", lambda k: RNN(3, 5, key=k), oracle),
    Case("rnn-relu-ln", lambda k: RNN(3, 5, activation="relu", init="identity", layer_norm=True, key=k), oracle),
    Case("rnn-orth", lambda k: RNN(3, 5, init="orthogonal", key=k), oracle),
]
