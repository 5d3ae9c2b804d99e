"""The equations of the lecture (Graves et al. 2016), head by head and slot by slot."""

from typing import Any

import numpy as np

from mnemon.cells import DNC

from ._case import Case, sigmoid
from ._memory import Controller, content, erase_and_add, linear, softmax, softplus


def sharper(d, s):
    powers = ((d + 1e-6) / np.max(d + 1e-6)) ** s
    return powers / powers.sum()


def oracle(cell, xs, interface=linear):
    n, w, r = cell.memory_slots, cell.word_size, cell.read_heads
    strength = softplus if cell.softplus_strengths else (lambda z: 1 + softplus(z))

    def mask_of(z):
        return cell.mask_floor + (1 - cell.mask_floor) * sigmoid(z) if cell.masked_content else None

    controller = Controller(cell.controller)
    memory, usage, precedence, links = np.zeros((n, w)), np.zeros(n), np.zeros(n), np.zeros((n, n))
    write_weights, read_weights, reads = np.zeros(n), np.zeros((r, n)), np.zeros((r, w))
    outputs = []
    for x in xs:
        h = controller(x, reads)
        xi = interface(cell.interface, h)
        per_head = w + 5 + (w if cell.masked_content else 0) + (2 if cell.sharpen_links else 0)
        heads = xi[: r * per_head].reshape(r, per_head)
        writing = xi[r * per_head :]
        write_key, erase, word = writing[:w], sigmoid(writing[w : 2 * w]), writing[2 * w : 3 * w]
        write_strength = strength(writing[3 * w])
        allocation_gate, write_gate = sigmoid(writing[3 * w + 1]), sigmoid(writing[3 * w + 2])

        psi = np.ones(n)
        for i in range(r):
            psi = psi * (1 - sigmoid(heads[i, w + 1]) * read_weights[i])
        usage = (usage + write_weights - usage * write_weights) * psi
        allocation, product = np.zeros(n), 1.0
        for slot in sorted(range(n), key=lambda i: (usage[i], i)):
            allocation[slot] = (1 - usage[slot]) * product
            product *= usage[slot]
        found = content(memory, write_key, write_strength, mask_of(writing[3 * w + 3 :]))
        write_weights = write_gate * (allocation_gate * allocation + (1 - allocation_gate) * found)
        if cell.deallocate:
            memory = memory * psi[:, None]
        memory = erase_and_add(memory, [write_weights], [erase], [word])

        after = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if i != j:
                    after[i, j] = (1 - write_weights[i] - write_weights[j]) * links[i, j]
                    after[i, j] += write_weights[i] * precedence[j]
        links, precedence = after, (1 - write_weights.sum()) * precedence + write_weights

        new_weights = np.zeros((r, n))
        for i in range(r):
            modes = softmax(heads[i, w + 2 : w + 5])
            forward, backward = links @ read_weights[i], links.T @ read_weights[i]
            if cell.sharpen_links:
                backward = sharper(backward, 1 + softplus(heads[i, -2]))
                forward = sharper(forward, 1 + softplus(heads[i, -1]))
            found = content(memory, heads[i, :w], strength(heads[i, w]), mask_of(heads[i, w + 5 : 2 * w + 5]))
            new_weights[i] = modes[0] * backward + modes[1] * found + modes[2] * forward
        read_weights = new_weights
        reads = read_weights @ memory
        outputs.append(np.concatenate([h, reads.reshape(-1)]))
    return np.stack(outputs)


SIZES: dict[str, Any] = {"memory_slots": 6, "word_size": 4, "read_heads": 2}
IMPROVED = {"masked_content": True, "deallocate": True, "sharpen_links": True}

CASES = [
    Case("dnc", lambda k: DNC(3, 5, **SIZES, key=k), oracle),
    Case("dnc-deep", lambda k: DNC(3, 5, layers=3, interface_bias=True, **SIZES, key=k), oracle),
    Case("dnc-masked", lambda k: DNC(3, 5, masked_content=True, **SIZES, key=k), oracle),
    Case("dnc-deallocating", lambda k: DNC(3, 5, deallocate=True, **SIZES, key=k), oracle),
    Case("dnc-sharp", lambda k: DNC(3, 5, sharpen_links=True, **SIZES, key=k), oracle),
    Case("dnc-improved", lambda k: DNC(3, 5, **IMPROVED, mask_floor=0.0, **SIZES, key=k), oracle),
    Case("dnc-softplus", lambda k: DNC(3, 5, softplus_strengths=True, bound=0.1, **SIZES, key=k), oracle),
]
