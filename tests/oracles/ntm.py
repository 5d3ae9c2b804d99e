"""Thesis 2.48-2.57, head by head and slot by slot."""

from typing import Any

import numpy as np

from mnemon.cells import NTM

from ._case import Case, sigmoid
from ._memory import Controller, content, erase_and_add, linear, softmax, softplus


def oracle(cell, xs, interface=linear):
    n, m, reach = cell.memory_slots, cell.word_size, cell.shift_range
    address, bounded = m + 2 * reach + 4, np.tanh if cell.tanh_words else (lambda z: z)

    def place(orders, memory, previous):
        found = content(memory, bounded(orders[:m]), softplus(orders[m]))
        gate, gamma = sigmoid(orders[m + 1]), 1 + softplus(orders[m + 2])
        shifts = softmax(orders[m + 3 : address])
        mixed, moved = gate * found + (1 - gate) * previous, np.zeros(n)
        for i in range(n):
            for d in range(-reach, reach + 1):
                moved[i] += mixed[(i - d) % n] * shifts[d + reach]
        powers = (moved + 1e-12) ** gamma
        return powers / powers.sum()

    controller = Controller(cell.controller)
    learned = cell.initial_memory
    memory = np.full((n, m), cell.memory_value) if learned is None else np.tanh(learned)
    read_weights = [softmax(logits) for logits in cell.initial_read_weights]
    write_weights = [softmax(logits) for logits in cell.initial_write_weights]
    reads, outputs = np.tanh(cell.initial_reads), []
    for x in xs:
        h = controller(x, reads)
        xi = interface(cell.interface, h)
        if cell.bound is not None:
            xi = np.clip(xi, -cell.bound, cell.bound)
        reading = xi[: cell.read_heads * address].reshape(cell.read_heads, -1)
        writing = xi[cell.read_heads * address :].reshape(cell.write_heads, -1)
        before = memory
        write_weights = [place(o, before, w) for o, w in zip(writing, write_weights, strict=True)]
        erases, adds = sigmoid(writing[:, address : address + m]), bounded(writing[:, address + m :])
        memory = erase_and_add(before, write_weights, erases, adds)
        seen = before if cell.read_before_write else memory
        read_weights = [place(o, seen, w) for o, w in zip(reading, read_weights, strict=True)]
        reads = np.stack(read_weights) @ seen
        outputs.append(np.concatenate([h, reads.reshape(-1)]))
    return np.stack(outputs)


SIZES: dict[str, Any] = {"memory_slots": 7, "word_size": 4, "read_heads": 2, "write_heads": 3}

CASES = [
    Case("ntm", lambda k: NTM(3, 5, **SIZES, key=k), oracle),
    Case("ntm-feedforward", lambda k: NTM(3, 5, controller="feedforward", layers=2, **SIZES, key=k), oracle),
    Case(
        "ntm-learned",
        lambda k: NTM(3, 5, memory_init="learned", layers=2, read_before_write=True, **SIZES, key=k),
        oracle,
    ),
    Case("ntm-bounded", lambda k: NTM(3, 5, tanh_words=True, bound=0.3, shift_range=2, **SIZES, key=k), oracle),
]
