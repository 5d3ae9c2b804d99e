"""Rae et al. 2016, equations 2-8, with weightings over all rows."""

import numpy as np

from mnemon.cells import SAM

from ._case import Case, sigmoid


def lstm(cell, x, reads, h, c):
    """One step of the controller."""
    controller = cell.controller
    (weights,) = controller.layer_weights
    gates = x @ controller.input_weights + np.concatenate([reads.reshape(-1), h]) @ weights + controller.bias
    i, f, o, candidate = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
    return sigmoid(o) * np.tanh(c), c


def cosines(key, memory):
    """The similarity of a key with every row."""
    return np.array([key @ row / np.sqrt((key @ key + 1e-6) * (row @ row + 1e-6)) for row in memory])


def content_read(key, memory, top_k, strength):
    """A weighting that is zero but for the K nearest rows."""
    similarity = cosines(key, memory)
    rows = np.argsort(-similarity, kind="stable")[:top_k]
    weights = np.zeros(len(memory))
    weights[rows] = np.exp(strength * similarity[rows])
    return weights / weights.sum()


def oracle(cell, xs):
    slots, word, heads = cell.memory_slots, cell.word_size, cell.heads
    h, c = np.zeros((2, cell.controller.hidden_size))
    memory, reads, last_access = np.zeros((slots, word)), np.zeros((heads, word)), np.zeros(slots)
    read_weights, outputs = np.zeros((heads, slots)), []
    for t, x in enumerate(xs, start=1):
        h, c = lstm(cell, x, reads, h, c)
        interface = (h @ cell.interface.weights + cell.interface.bias).reshape(heads, -1)
        least_recent = np.argsort(last_access, kind="stable")
        write_weights = np.zeros((heads, slots))
        erase = np.zeros(slots)
        for n in range(heads):
            alpha, gamma = sigmoid(interface[n, 2 * word : 2 * word + 2])
            indicator = np.zeros(slots)
            indicator[least_recent[n]] = 1.0
            erase += indicator
            write_weights[n] = alpha * (gamma * read_weights[n] + (1 - gamma) * indicator)
        memory = (1 - erase)[:, None] * memory
        for n in range(heads):
            memory = memory + np.outer(write_weights[n], interface[n, word : 2 * word])
        for n in range(heads):
            strength = 1 + np.log1p(np.exp(interface[n, -1])) if cell.strengths else 1.0
            read_weights[n] = content_read(interface[n, :word], memory, cell.top_k, strength)
            reads[n] = read_weights[n] @ memory
        last_access[(write_weights + read_weights).sum(0) > cell.access_threshold] = t
        outputs.append(np.concatenate([h, reads.reshape(-1)]))
    return np.stack(outputs)


CASES = [
    Case("sam", lambda k: SAM(3, 5, memory_slots=11, word_size=4, heads=2, top_k=3, key=k), oracle),
    Case(
        "sam-strengths",
        lambda k: SAM(3, 5, memory_slots=7, word_size=4, heads=1, top_k=2, strengths=True, key=k),
        oracle,
    ),
    # Every row is read and some are not accessed: all of the memory is in use.
    Case(
        "sam-full",
        lambda k: SAM(3, 5, memory_slots=4, word_size=6, heads=3, top_k=2, access_threshold=0.3, key=k),
        oracle,
    ),
]
