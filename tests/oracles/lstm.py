"""Thesis 2.17-2.27."""

import numpy as np

from mnemon.cells import LSTM

from ._case import Case, sigmoid


def oracle(cell, xs):
    n = cell.output_size
    p_i, p_f, p_o = (0.0, 0.0, 0.0) if cell.peepholes is None else cell.peepholes
    wx = {gate: cell.input_weights[:, k * n : (k + 1) * n] for k, gate in enumerate("ifog")}
    wh = {gate: cell.recurrent_weights[:, k * n : (k + 1) * n] for k, gate in enumerate("ifog")}
    b = {gate: cell.bias[k * n : (k + 1) * n] for k, gate in enumerate("ifog")}
    h, c, outputs = np.zeros(n), np.zeros(n), []
    for x in xs:
        i = sigmoid(x @ wx["i"] + h @ wh["i"] + p_i * c + b["i"])
        f = sigmoid(x @ wx["f"] + h @ wh["f"] + p_f * c + b["f"])
        c = f * c + i * np.tanh(x @ wx["g"] + h @ wh["g"] + b["g"])
        o = sigmoid(x @ wx["o"] + h @ wh["o"] + p_o * c + b["o"])
        h = o * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("lstm", lambda k: LSTM(3, 5, key=k), oracle),
    Case("lstm-peepholes", lambda k: LSTM(3, 5, peepholes=True, key=k), oracle),
    Case("lstm-chrono", lambda k: LSTM(3, 5, chrono=20, key=k), oracle),
]
