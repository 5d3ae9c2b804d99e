"""Each head's interface weights built as the mean of its programs, on the oracles of NTM and DNC."""

import numpy as np

from mnemon.cells import NUTM

from . import dnc, ntm
from ._case import Case
from ._memory import content, linear, softplus


def oracle(cell, xs):
    heads, programs, _ = cell.keys.shape
    size = sum(cell.core.units)
    ends = np.cumsum(cell.core.units)

    def interface(_, h):
        queries, vectors = linear(cell.query, h).reshape(heads, -1), []
        for head in range(heads):
            query, keys, strength = queries[head, :-1], cell.keys[head], softplus(queries[head, -1])
            if cell.tanh_keys:
                query, keys = np.tanh(query), np.tanh(keys)
            weights = content(keys, query, strength)
            vector = 0
            for p in range(programs):
                columns = slice(p * size + ends[head] - cell.core.units[head], p * size + ends[head])
                bias = 0 if cell.values.bias is None else cell.values.bias[columns]
                vector = vector + weights[p] * (h @ cell.values.weights[:, columns] + bias)
            vectors.append(vector)
        return np.concatenate(vectors)

    core_oracle = dnc.oracle if hasattr(cell.core, "deallocate") else ntm.oracle
    return core_oracle(cell.core, xs, interface)


CASES = [
    Case("nutm", lambda k: NUTM(3, 5, programs=2, key_size=3, **ntm.SIZES, key=k), oracle),
    Case("nutm-dnc", lambda k: NUTM(3, 5, core="dnc", programs=3, tanh_keys=True, **dnc.SIZES, key=k), oracle),
]
