"""Thesis 3.1-3.11 and Algorithm 1, slot by slot."""

from typing import Any

import numpy as np

from mnemon.cells import TARDIS

from ._case import Case, sigmoid


def oracle(cell, xs):
    n, slots = cell.output_size, len(cell.usage_weights)
    addresses = cell.addresses.array
    content = np.zeros((slots, cell.micro_weights.shape[1]))
    h, c, counts, last, outputs = np.zeros(n), np.zeros(n), np.zeros(slots), None, []
    columns = {gate: slice(k * n, (k + 1) * n) for k, gate in enumerate("fioc")}
    columns |= {
        "alpha": slice(4 * n, 4 * n + 1),
        "beta": slice(4 * n + 1, 4 * n + 2),
        "gamma": slice(4 * n + 2, None),
    }
    for t, x in enumerate(xs):
        from_x = {gate: x @ cell.input_weights[:, at] + cell.bias[at] for gate, at in columns.items()}
        from_h = {gate: h @ cell.hidden_weights[:, at] for gate, at in columns.items()}

        if cell.usage == "softmax":
            usage = np.exp(counts) / np.exp(counts).sum()
        else:
            usage = (counts - counts.mean()) / np.sqrt(counts.var() + 1e-5)
        logits = np.zeros(slots)
        for i in range(slots):
            word = np.concatenate([addresses[i], content[i]])
            inside = from_h["gamma"] + from_x["gamma"] + word @ cell.memory_weights + usage @ cell.usage_weights
            logits[i] = cell.score_weights @ np.tanh(inside)
            if i == last:
                logits[i] -= cell.last_read_penalty
        last = int(np.argmax(logits))
        counts[last] += 1
        r = np.concatenate([addresses[last], content[last]])

        from_r = {gate: r @ cell.read_weights[:, at] for gate, at in columns.items() if gate != "gamma"}
        total = {gate: from_x[gate] + from_h[gate] + from_r[gate] for gate in from_r}
        alpha, beta = 1.0, 1.0
        if cell.reset_gates:
            alpha = sigmoid(total["alpha"] / cell.gate_temperature.array)
            beta = sigmoid(total["beta"] / cell.gate_temperature.array)
        candidate = np.tanh(alpha * from_h["c"] + from_x["c"] + beta * from_r["c"])
        c = sigmoid(total["f"]) * c + sigmoid(total["i"]) * candidate
        h = sigmoid(total["o"]) * np.tanh(c)
        content = content.copy()
        content[t if t < slots else last] = h @ cell.micro_weights
        if cell.output_weights is None:
            outputs.append(h)
        else:
            outputs.append(np.tanh(np.concatenate([h, r]) @ cell.output_weights + cell.output_bias))
    return np.stack(outputs)


def _case(name: str, **options: Any) -> Case:
    options = {"memory_slots": 3, "address_size": 2, "word_size": 4, "addressing_size": 7} | options
    return Case(name, lambda k: TARDIS(3, 6, **options, key=k), oracle)


CASES = [
    _case("tardis"),
    _case("tardis-reinforce", estimator="reinforce", memory_slots=9),
    _case("tardis-no-reset", reset_gates=False, gate_temperature=1.0),
    _case(
        "tardis-authors",
        address_size=0,
        temperature=1.0,
        usage="softmax",
        last_read_penalty=0.0,
        write_gradient=True,
        output="hidden",
    ),
]
