"""The controllers and the addressing that the oracles of the external memories share, in float64 NumPy."""

import numpy as np

from ._case import sigmoid


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def content(memory, key, strength, mask=None):
    """C(M, k, beta), slot by slot."""
    mask = np.ones_like(key) if mask is None else mask
    similarities = []
    for word in memory:
        k, v = mask * key, mask * word
        similarities.append(k @ v / np.sqrt((k @ k + 1e-6) * (v @ v + 1e-6)))
    return softmax(strength * np.array(similarities))


def erase_and_add(memory, weights, erases, adds):
    """The heads erase one after another, then they add."""
    for w, e in zip(weights, erases, strict=True):
        memory = memory * (1 - np.outer(w, e))
    for w, a in zip(weights, adds, strict=True):
        memory = memory + np.outer(w, a)
    return memory


class Controller:
    """Runs a controller; layer l sees x, the reads, h of the layer below and (LSTM) its own last h."""

    def __init__(self, controller):
        self.weights = controller
        self.layers = len(controller.layer_weights)
        self.size = controller.hidden_size
        self.hidden = [np.zeros(self.size) for _ in range(self.layers)]
        self.cell = [np.zeros(self.size) for _ in range(self.layers)]

    def __call__(self, x, reads):
        w, below = self.weights, []
        width = w.bias.size // self.layers
        for l in range(self.layers):
            columns = slice(l * width, (l + 1) * width)
            seen = [reads.reshape(-1), *below] + ([self.hidden[l]] if w.kind == "lstm" else [])
            z = x @ w.input_weights[:, columns] + w.bias[columns] + np.concatenate(seen) @ w.layer_weights[l]
            if w.kind == "lstm":
                i, f, o, c = np.split(z, 4)
                self.cell[l] = sigmoid(f) * self.cell[l] + sigmoid(i) * np.tanh(c)
                if w.bound is not None:
                    self.cell[l] = np.clip(self.cell[l], -w.bound, w.bound)
                self.hidden[l] = sigmoid(o) * np.tanh(self.cell[l])
            else:
                self.hidden[l] = np.tanh(z)
            below = [self.hidden[l]]
        return np.concatenate(self.hidden)


def linear(interface, h):
    """The interface vector of the plain network."""
    return h @ interface.weights + (0 if interface.bias is None else interface.bias)
