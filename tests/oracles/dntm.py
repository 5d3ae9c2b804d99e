"""Thesis 2.58-2.69, cell by cell."""

import numpy as np

from mnemon.cells import DNTM
from mnemon.memory.content import NORM_EPSILON

from ._case import Case, sigmoid, stop


def oracle(cell, xs):
    n, c, q = cell.hidden_size, cell.word_size, cell.read_size
    cells = len(cell.addresses)
    gates = cell.controller.bias.size
    wx_control = cell.input_weights[:, :gates]
    wx_read = cell.input_weights[:, gates : gates + q + 2]
    wx_write = cell.input_weights[:, gates + q + 2 : gates + 2 * q + 5 + c]
    wx_candidate = cell.input_weights[:, gates + 2 * q + 5 + c :]

    def control(x, h, r):
        total = x @ wx_control + r @ cell.controller.input_weights + cell.controller.bias
        if not hasattr(cell.controller, "gate_weights"):
            return np.tanh(total)
        gate = sigmoid(total[: 2 * n] + h @ cell.controller.gate_weights)
        z, reset = gate[:n], gate[n:]
        candidate = np.tanh(total[2 * n :] + (reset * h) @ cell.controller.candidate_weights)
        return (1 - z) * h + z * candidate

    def address(head, content, average):
        key, beta, gamma = head[:q], 1 + np.log(1 + np.exp(head[q])), sigmoid(head[q + 1])
        cosines = np.zeros(cells)
        for i in range(cells):
            word = np.concatenate([cell.addresses[i], content[i]])
            cosines[i] = key @ word / np.sqrt((key @ key + NORM_EPSILON) * (word @ word + NORM_EPSILON))
        if cell.average_cosines:
            logits = beta * (cosines - gamma * average)
            average = cell.lru_decay * average + (1 - cell.lru_decay) * cosines
        else:
            logits = beta * cosines - gamma * average
            average = cell.lru_decay * average + (1 - cell.lru_decay) * beta * cosines
        weights = np.exp(logits) / np.sum(np.exp(logits))
        if cell.soft_probability is not None:
            weights = np.eye(cells)[np.argmax(weights)]
        return weights, stop(average)

    def read(x, h, content, average):
        head = x @ wx_read + h @ cell.read_head_weights + cell.read_head_bias
        weights, average = address(head, content, average)
        r = np.zeros(q)
        for i in range(1, cells):  # cell 0 is NOP
            r = r + weights[i] * np.concatenate([cell.addresses[i], content[i]])
        return r, average

    def write(x, h, content, average):
        outputs = h @ cell.write_head_weights + cell.write_head_bias
        outputs = outputs + np.concatenate([x @ wx_write, np.zeros(c)])
        weights, average = address(outputs[: q + 2], content, average)
        alpha, erase = sigmoid(outputs[q + 2]), sigmoid(outputs[q + 3 : q + 3 + c])
        candidate = outputs[q + 3 + c :] + alpha * (x @ wx_candidate)
        candidate = np.tanh(candidate) if cell.candidate == "tanh" else np.maximum(candidate, 0)
        content = content.copy()
        for i in range(1, cells):
            content[i] = content[i] * (1 - weights[i] * erase) + weights[i] * candidate
        return content, average

    h, r, content = np.zeros(n), np.zeros(q), np.zeros((cells, c))
    read_average, write_average, outputs = np.zeros(cells), np.zeros(cells), []
    for x in xs:
        if cell.order == "read-write":
            for _ in range(cell.hops):
                r, read_average = read(x, h, content, read_average)
                h = control(x, h, r)
            content, write_average = write(x, h, content, write_average)
        else:
            h = control(x, h, r)
            content, write_average = write(x, h, content, write_average)
            for hop in range(cell.hops):
                r, read_average = read(x, h, content, read_average)
                if hop < cell.hops - 1:
                    h = control(x, h, r)
        outputs.append(np.concatenate([h, r]))
    return np.stack(outputs)


def _case(name, **options):
    return Case(name, lambda k: DNTM(3, 5, memory_slots=6, address_size=2, word_size=4, **options, key=k), oracle)


CASES = [
    _case("dntm"),
    _case("dntm-hops", hops=3),
    _case("dntm-feedforward", controller="feedforward", hops=2),
    _case("dntm-authors", order="write-read", candidate="tanh", average_cosines=True, lru_decay=0.04, hops=2),
    _case("dntm-discrete", addressing="discrete", hops=2),
    _case("dntm-discrete-authors", addressing="discrete", order="write-read", controller="feedforward"),
]
