"""Thesis 2.17-2.27."""

import numpy as np

from mnemon.cells import LSTM

from ._case import Case, layer_norm, sigmoid


def _normalised(parts, norm, n):
    whole = layer_norm(np.concatenate([parts[gate] for gate in "ifog"]), norm.gain, norm.shift)
    return {gate: whole[k * n : (k + 1) * n] for k, gate in enumerate("ifog")}


def oracle(cell, xs):
    n = cell.output_size
    p_i, p_f, p_o = (0.0, 0.0, 0.0) if cell.peepholes is None else cell.peepholes
    wx = {gate: cell.input_weights[:, k * n : (k + 1) * n] for k, gate in enumerate("ifog")}
    wh = {gate: cell.recurrent_weights[:, k * n : (k + 1) * n] for k, gate in enumerate("ifog")}
    b = {gate: cell.bias[k * n : (k + 1) * n] for k, gate in enumerate("ifog")}
    h, c, outputs = np.zeros(n), np.zeros(n), []
    for x in xs:
        from_x = {gate: x @ wx[gate] for gate in "ifog"}
        from_h = {gate: h @ wh[gate] for gate in "ifog"}
        if cell.norms is not None:
            from_x, from_h = _normalised(from_x, cell.norms[0], n), _normalised(from_h, cell.norms[1], n)
        i = sigmoid(from_x["i"] + from_h["i"] + p_i * c + b["i"])
        f = sigmoid(from_x["f"] + from_h["f"] + p_f * c + b["f"])
        c = f * c + i * np.tanh(from_x["g"] + from_h["g"] + b["g"])
        o = sigmoid(from_x["o"] + from_h["o"] + p_o * c + b["o"])
        h = o * np.tanh(c if cell.norms is None else layer_norm(c, cell.norms[2].gain, cell.norms[2].shift))
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("lstm", lambda k: LSTM(3, 5, key=k), oracle),
    Case("lstm-peepholes", lambda k: LSTM(3, 5, peepholes=True, key=k), oracle),
    Case("lstm-layer-norm", lambda k: LSTM(3, 5, layer_norm=True, key=k), oracle),
    Case("lstm-chrono", lambda k: LSTM(3, 5, chrono=20, key=k), oracle),
]
