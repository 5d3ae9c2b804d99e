"""Ha et al. 2016, appendix A.2.2-A.2.3, gate by gate."""

import numpy as np

from mnemon.cells import HyperLSTM

from ._case import Case, layer_norm, sigmoid


def oracle(cell, xs):
    n, k, z = cell.output_size, cell.hyper_size, cell.hyper_embedding_size

    def norm(v, norms, gate=None):
        if norms is None:
            return v
        gain, shift = (norms.gain, norms.shift) if gate is None else (norms.gain[gate], norms.shift[gate])
        return layer_norm(v, gain, shift, eps=1e-3)

    def lstm(c, pre, norms, cell_norm):
        i, f, o, g = (norm(p, norms, gate) for gate, p in enumerate(pre))
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
        return c, sigmoid(o) * np.tanh(norm(c, cell_norm))

    h, c, hyper_h, hyper_c, outputs = np.zeros(n), np.zeros(n), np.zeros(k), np.zeros(k), []
    for x in xs:
        seen = hyper_h
        pre = x @ cell.input_weights[:, : 4 * k] + h @ cell.recurrent_weights[:, : 4 * k]
        pre = pre + hyper_h @ cell.hyper_weights + cell.hyper_bias
        hyper_c, hyper_h = lstm(hyper_c, pre.reshape(4, k), cell.hyper_gate_norms, cell.hyper_cell_norm)
        if not cell.delayed:
            seen = hyper_h
        embeddings = (seen @ cell.embedding_weights).reshape(3, 4, z)
        gates = []
        for gate in range(4):
            columns = slice(4 * k + gate * n, 4 * k + (gate + 1) * n)
            z_h, z_x = (embeddings[part, gate] + cell.embedding_bias[part, gate] for part in (0, 1))
            d_h, d_x, b = (v @ cell.scaling_weights[p, gate] for p, v in enumerate((z_h, z_x, embeddings[2, gate])))
            gates.append(d_h * (h @ cell.recurrent_weights[:, columns]) + d_x * (x @ cell.input_weights[:, columns]))
            gates[-1] = gates[-1] + b + cell.bias[gate]
        c, h = lstm(c, gates, cell.gate_norms, cell.cell_norm)
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("hyper-lstm", lambda k: HyperLSTM(3, 5, hyper_size=7, hyper_embedding_size=2, key=k), oracle),
    Case(
        "hyper-lstm-plain",
        lambda k: HyperLSTM(3, 5, hyper_size=7, hyper_embedding_size=2, layer_norm=False, key=k),
        oracle,
    ),
    Case(
        "hyper-lstm-delay", lambda k: HyperLSTM(3, 5, hyper_size=7, hyper_embedding_size=2, delayed=True, key=k), oracle
    ),
]
