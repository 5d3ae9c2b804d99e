"""Thesis 4.1-4.9, the k directions built one by one."""

import numpy as np

from mnemon.cells import NRU

from ._case import Case


def oracle(cell, xs):
    n, m, k = cell.output_size, cell.memory_size, cell.heads
    side = int(np.sqrt(m * k))
    relu = (lambda v: np.maximum(v, 0)) if cell.relu_heads else (lambda v: v)

    def directions(pq):
        p, q = pq[:side], pq[side:]
        flat = relu(np.outer(p, q)).reshape(-1)
        cuts = [flat[i * m : (i + 1) * m] for i in range(k)]
        norms = [max(np.linalg.norm(cut, cell.norm), 1e-12) for cut in cuts]
        return [
            cut / norm if norm <= cell.longest_direction else 0 * cut for cut, norm in zip(cuts, norms, strict=True)
        ]

    h, memory, outputs = np.zeros(n), np.zeros(m), []
    for x in xs:
        h = np.maximum(
            x @ cell.input_weights[:, :n] + np.concatenate([h, memory]) @ cell.hidden_weights + cell.bias[:n],
            0,
        )
        u = np.concatenate([h, memory]) @ cell.head_weights + cell.bias[n:]
        if cell.heads_see_input:
            u = u + x @ cell.input_weights[:, n:]
        alpha, beta = relu(u[:k]), relu(u[k : 2 * k])
        write, erase = directions(u[2 * k : 2 * k + 2 * side]), directions(u[2 * k + 2 * side :])
        change = sum(a * v for a, v in zip(alpha, write, strict=True))
        change = change - sum(b * v for b, v in zip(beta, erase, strict=True))
        memory = memory + (change / k if cell.average_heads else change)
        outputs.append(h)
    return np.stack(outputs)


CASES = [
    Case("nru", lambda k: NRU(3, 5, memory_size=16, heads=4, key=k), oracle),
    Case(
        "nru-authors",
        lambda k: NRU(3, 5, memory_size=9, heads=1, heads_see_input=False, average_heads=True, key=k),
        oracle,
    ),
    Case("nru-relu", lambda k: NRU(3, 5, memory_size=18, heads=2, relu_heads=True, key=k), oracle),
    Case("nru-l2", lambda k: NRU(3, 5, memory_size=16, heads=4, norm=2, longest_direction=0.3, key=k), oracle),
    Case(
        "nru-l2.5",
        lambda k: NRU(3, 5, memory_size=16, heads=4, norm=2.5, relu_heads=True, longest_direction=0.08, key=k),
        oracle,
    ),
    Case("nru-max", lambda k: NRU(3, 5, memory_size=16, heads=4, norm=np.inf, relu_heads=True, key=k), oracle),
    Case("nru-heads-across-rows", lambda k: NRU(3, 5, memory_size=4, heads=9, longest_direction=0.3, key=k), oracle),
    Case(
        "nru-heads-across-rows-relu",
        lambda k: NRU(3, 5, memory_size=4, heads=9, relu_heads=True, key=k),
        oracle,
    ),
]
