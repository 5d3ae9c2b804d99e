"""Rae et al. 2016, supplement, with all weightings and links as dense arrays that are cut to their largest entries."""

import numpy as np

from mnemon.cells import SDNC

from ._case import Case, sigmoid
from .sam import content_read, lstm


def cut(weights, count):
    """Only the `count` largest entries of a vector."""
    kept = np.argsort(-weights, kind="stable")[:count]
    return np.where(np.isin(np.arange(len(weights)), kept), weights, 0.0)


def oracle(cell, xs):
    slots, word, heads = cell.memory_slots, cell.word_size, cell.read_heads
    h, c = np.zeros((2, cell.controller.hidden_size))
    memory, reads, last_access = np.zeros((slots, word)), np.zeros((heads, word)), np.zeros(slots)
    read_weights, precedence, outputs = np.zeros((heads, slots)), np.zeros(slots), []
    links = np.zeros((slots, slots))  # N
    indexed = np.zeros((slots, slots), bool)  # which entries of the transpose of N are kept: P
    for t, x in enumerate(xs, start=1):
        h, c = lstm(cell, x, reads, h, c)
        interface = h @ cell.interface.weights + cell.interface.bias
        vector, (alpha, gamma) = interface[:word], sigmoid(interface[word : word + 2])
        least_recent = np.zeros(slots)
        least_recent[np.argmin(last_access)] = 1.0
        write_weights = alpha * (gamma * read_weights.mean(0) + (1 - gamma) * least_recent)
        memory = (1 - least_recent)[:, None] * memory + np.outer(write_weights, vector)

        links = (1 - write_weights)[:, None] * links + np.outer(write_weights, precedence)
        np.fill_diagonal(links, 0.0)
        links = np.array([cut(row, cell.links) for row in links])
        for j in np.flatnonzero(precedence):
            candidates = np.where(indexed[j] | (write_weights > 0), links[:, j], 0.0)
            indexed[j] = cut(candidates, cell.links) > 0
        precedence = cut((1 - write_weights.sum()) * precedence + write_weights, cell.links)

        for n, head in enumerate(interface[word + 2 :].reshape(heads, -1)):
            modes = np.exp(head[word : word + 3]) / np.exp(head[word : word + 3]).sum()
            forward = np.where(indexed.T, links, 0.0) @ read_weights[n]
            backward = links.T @ read_weights[n]
            strength = 1 + np.log1p(np.exp(head[-1])) if cell.strengths else 1.0
            content = content_read(head[:word], memory, cell.top_k, strength)
            read_weights[n] = cut(modes[0] * backward + modes[1] * content + modes[2] * forward, cell.top_k)
            reads[n] = read_weights[n] @ memory
        last_access[write_weights + read_weights.sum(0) > cell.access_threshold] = t
        outputs.append(np.concatenate([h, reads.reshape(-1)]))
    return np.stack(outputs)


def make(**options):
    """The paper stops gradients at the links; with `link_gradients` they can be checked by finite differences."""
    return lambda k: SDNC(3, 5, **options, link_gradients=True, key=k)


CASES = [
    Case("sdnc", make(memory_slots=11, word_size=4, read_heads=2, top_k=3, links=6), oracle),
    Case("sdnc-few-links", make(memory_slots=9, word_size=6, read_heads=1, top_k=4, links=2), oracle),
    Case(
        "sdnc-all-links",
        make(memory_slots=4, word_size=6, read_heads=3, top_k=2, links=7, strengths=True),
        oracle,
    ),
]
