"""Dynamic neural Turing machine (thesis 2.9.2)."""

from itertools import accumulate
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .._errors import require
from ..memory import attend, choose, cosine_similarity, erase_and_add, least_recently_used, oneplus
from ._contract import AbstractCell, Key, split_key
from ._fixed import Fixed
from ._init import Feedforward, glorot_normal, sparse_rows
from .gru import GRU, GRUState
from .rnn import ACTIVATIONS

NOP = 0  # the row that reads and writes ignore


class DNTMState(NamedTuple):
    """What a D-NTM carries. Row 0 of all that has one row for each cell is the NOP cell."""

    hidden: Float[Array, " hidden"]  # h_t
    content: Float[Array, "cells word"]  # C_t
    read: Float[Array, " address_and_word"]  # r_t
    read_weights: Float[Array, " cells"]  # w^r_t, of the last hop
    write_weights: Float[Array, " cells"]  # w^w_t
    read_average: Float[Array, " cells"]  # v_t of the read head
    write_average: Float[Array, " cells"]  # v_t of the write head
    log_probability: Float[Array, ""]  # of all discrete choices of this step
    entropy: Float[Array, ""]  # of all weightings of this step


class DNTMDrive(NamedTuple):
    """What the input gives to the parts of a D-NTM."""

    controller: Float[Array, " gates"]
    read_head: Float[Array, " read_head"]
    write_head: Float[Array, " write_head"]
    candidate: Float[Array, " word"]  # W_x x_t


class DNTM(AbstractCell[DNTMState, DNTMDrive]):
    r"""D-NTM: a memory whose words have a trained address and a content that starts at zero.

    $$\begin{aligned}
    M_t &= [A; C_t], \quad [k_t, \beta_t, \gamma_t] \text{ linear in } [x_t, h_{t-1}] \\
    z_t[i] &= (1 + \mathrm{softplus}(\beta_t)) \cos(k_t, M_t[i]) \\
    w_t &= \mathrm{softmax}(z_t - \sigma(\gamma_t) v_{t-1}), \quad v_t = 0.1 v_{t-1} + 0.9 z_t \\
    r_t &= M_t^T w^r_t, \quad h_t = g(x_t, h_{t-1}, r_t) \\
    c_t &= \mathrm{ReLU}(W_m h_t + \sigma(\alpha_t) W_x x_t) \\
    C_t[i] &= C_{t-1}[i] (1 - w^w_t[i] e_t) + w^w_t[i] c_t
    \end{aligned}$$

    (2.58-2.68). The write head has its own \(k, \beta, \gamma\) and \(v\), and \(\alpha\) and \(e\), linear
    in \([x_t, h_t]\). Besides the `memory_slots` cells there is a NOP cell, with an address: what is read from
    it or written to it is ignored. With several `hops` a step reads and updates h as often before it writes.

    With discrete addressing the weights are one-hot: sampled with a key (2.69), the most likely cell without.
    They have no gradient; an objective finds the log-probability in the state. For the curriculum a step uses
    soft weights with probability `soft_probability`, a `Fixed` array of this name that
    `set_fixed(model, soft_probability=p)` sets, or a schedule of the trainer: `soft_probability=inverse_sqrt(1)`, or
    `soft_probability~inverse_sqrt(1)` to draw once a batch for all its steps, as its authors do.

    **Notes.** The thesis leaves open: the output, here [h_t, r_t]; that every hop moves v; that no gradient
    goes through v (from the paper). The authors' code writes before it reads (`order="write-read"`: r_{t-1}
    makes h_t, which writes and then reads), has a tanh candidate (`candidate="tanh"`), averages the cosines without
    strengths (`average_cosines=True`), with `lru_decay=0.04`. Not offered: its strength without the 1, its
    trained v_0, its initial content of 1e-6, and its two NOP rows, one for each head.

    >>> import jax
    >>> cell = DNTM(3, 5, memory_slots=8, address_size=2, word_size=4, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape, state.read_weights.shape
    ((11,), (9,))
    """

    addresses: Float[Array, "cells address"]  # A
    controller: GRU | Feedforward  # g; its input is r, and x is added to that
    input_weights: Float[Array, "input drive"]  # x rows of g | read head | write head | W_x
    read_head_weights: Float[Array, "hidden read_head"]  # h rows of k, beta, gamma
    write_head_weights: Float[Array, "hidden write_head"]  # h rows of k, beta, gamma, alpha, e, W_m
    read_head_bias: Float[Array, " read_head"]
    write_head_bias: Float[Array, " write_head"]
    soft_probability: Fixed | None  # p_t, only with discrete addressing
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    hidden_size: int = eqx.field(static=True)
    read_size: int = eqx.field(static=True)
    word_size: int = eqx.field(static=True)
    hops: int = eqx.field(static=True)
    order: Literal["read-write", "write-read"] = eqx.field(static=True)
    candidate: Literal["relu", "tanh"] = eqx.field(static=True)
    average_cosines: bool = eqx.field(static=True)
    lru_decay: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory_slots: int = 32,
        address_size: int = 8,
        word_size: int = 16,
        controller: Literal["gru", "feedforward"] = "gru",
        addressing: Literal["continuous", "discrete"] = "continuous",
        soft_probability: float = 0.0,
        hops: int = 1,
        order: Literal["read-write", "write-read"] = "read-write",
        candidate: Literal["relu", "tanh"] = "relu",
        average_cosines: bool = False,
        lru_decay: float = 0.1,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `memory_slots`: number of cells, besides the NOP cell.
        - `address_size`: size of the trained address of a cell.
        - `word_size`: size of the content of a cell.
        - `controller`: g, with or without a recurrence of its own.
        - `addressing`: soft weights, or one-hot ones that are sampled in training.
        - `soft_probability`: how often discrete addressing uses soft weights in training, at first.
        - `hops`: reads in each step.
        - `order`: whether a step reads or writes first (the authors' code: write-read).
        - `candidate`: activation of c (the authors' code: tanh).
        - `average_cosines`: v averages cosines instead of logits (the authors' code: True).
        - `lru_decay`: how much of v stays in each step (the authors' code: 0.04).
        - `key`: for the initial parameters.
        """
        for name, size in [
            ("hidden_size", hidden_size),
            ("memory_slots", memory_slots),
            ("address_size", address_size),
            ("word_size", word_size),
            ("hops", hops),
        ]:
            require(size >= 1, name, size, "1 or more", f"{name}=8")
        probable = 0.0 <= soft_probability <= 1.0
        require(probable, "soft_probability", soft_probability, "a probability", "soft_probability=0.5")
        require(0.0 <= lru_decay < 1.0, "lru_decay", lru_decay, "0 or more, below 1", "lru_decay=0.1")
        keys = jax.random.split(key, 5)
        read_size = address_size + word_size
        read_head, write_head = read_size + 2, read_size + 3 + 2 * word_size
        self.addresses = sparse_rows(keys[0], memory_slots + 1, address_size, std=0.15)
        make_controller = GRU if controller == "gru" else Feedforward
        self.controller = make_controller(read_size, hidden_size, key=keys[1])
        drive_size = self.controller.bias.size + read_head + write_head
        self.input_weights = glorot_normal(keys[2], input_size, drive_size)
        self.read_head_weights = glorot_normal(keys[3], hidden_size, read_head)
        self.write_head_weights = glorot_normal(keys[4], hidden_size, write_head)
        self.read_head_bias = jnp.zeros((read_head,))
        self.write_head_bias = jnp.zeros((write_head,))
        discrete = addressing == "discrete"
        self.soft_probability = Fixed(jnp.asarray(soft_probability), "soft_probability") if discrete else None
        self.input_size, self.output_size = input_size, hidden_size + read_size
        self.hidden_size, self.read_size, self.word_size, self.hops = hidden_size, read_size, word_size, hops
        self.order, self.candidate = order, candidate
        self.average_cosines, self.lru_decay = average_cosines, lru_decay

    def init_state(self) -> DNTMState:
        cells, dtype = len(self.addresses), self.addresses.dtype
        hidden, read = jnp.zeros((self.hidden_size,), dtype), jnp.zeros((self.read_size,), dtype)
        content, zeros = jnp.zeros((cells, self.word_size), dtype), jnp.zeros((cells,), dtype)
        return DNTMState(hidden, content, read, zeros, zeros, zeros, zeros, zeros[0], zeros[0])

    def drive(self, x: Float[Array, " input"]) -> DNTMDrive:
        ends = accumulate([self.controller.bias.size, self.read_size + 2, self.read_size + 3 + self.word_size])
        controller, read, write, candidate = jnp.split(x @ self.input_weights, list(ends))
        write = jnp.pad(write, (0, self.word_size))  # the candidate's W_m h_t has no x
        return DNTMDrive(controller, read + self.read_head_bias, write + self.write_head_bias, candidate)

    def step(self, state: DNTMState, drive: DNTMDrive, *, key: Key = None) -> tuple[DNTMState, Float[Array, " output"]]:
        soft_key, write_key, *read_keys = split_key(key, self.hops + 2)
        soft = jnp.array(False)
        if self.soft_probability is not None and soft_key is not None:
            soft = jax.random.bernoulli(soft_key, self.soft_probability.value)
        none = jnp.zeros_like(state.entropy)
        state = state._replace(log_probability=none, entropy=none)
        if self.order == "read-write":
            for read_key in read_keys:
                state = self._control(self._read(state, drive, soft, read_key), drive)
            state = self._write(state, drive, soft, write_key)
        else:
            state = self._write(self._control(state, drive), drive, soft, write_key)
            state = self._read(state, drive, soft, read_keys[0])
            for read_key in read_keys[1:]:
                state = self._read(self._control(state, drive), drive, soft, read_key)
        return state, jnp.concatenate([state.hidden, state.read])

    def _control(self, state: DNTMState, drive: DNTMDrive) -> DNTMState:
        # The controller's input is r; what x adds to its pre-activations comes as one vector.
        parts, structure = jax.tree.flatten(self.controller.drive(state.read))
        added = jnp.split(drive.controller, list(accumulate(part.size for part in parts))[:-1])
        total: Any = jax.tree.unflatten(structure, [part + more for part, more in zip(parts, added, strict=True)])
        return state._replace(hidden=self.controller.step(GRUState(state.hidden), total)[1])

    def _read(self, state: DNTMState, drive: DNTMDrive, soft: Bool[Array, ""], key: Key) -> DNTMState:
        head = drive.read_head + state.hidden @ self.read_head_weights
        state, weights, average = self._address(state, head, state.read_average, soft, key)
        read = _but_nop(weights) @ self._memory(state)
        return state._replace(read=read, read_weights=weights, read_average=average)

    def _write(self, state: DNTMState, drive: DNTMDrive, soft: Bool[Array, ""], key: Key) -> DNTMState:
        outputs = drive.write_head + state.hidden @ self.write_head_weights
        ends = accumulate([self.read_size + 2, 1, self.word_size])
        head, alpha, erase, candidate = jnp.split(outputs, list(ends))
        state, weights, average = self._address(state, head, state.write_average, soft, key)
        candidate = ACTIVATIONS[self.candidate](candidate + jax.nn.sigmoid(alpha) * drive.candidate)
        written = _but_nop(weights)[None]
        content = erase_and_add(state.content, written, jax.nn.sigmoid(erase)[None], candidate[None])
        return state._replace(content=content, write_weights=weights, write_average=average)

    def _memory(self, state: DNTMState) -> Float[Array, "cells address_and_word"]:
        return jnp.concatenate([self.addresses, state.content], axis=1)

    def _address(
        self,
        state: DNTMState,
        head: Float[Array, " head"],
        average: Float[Array, " cells"],
        soft: Bool[Array, ""],
        key: Key,
    ) -> tuple[DNTMState, Float[Array, " cells"], Float[Array, " cells"]]:
        """The state with this choice's log-probability and entropy added, the weights, and the next v."""
        word, (strength, gate) = head[:-2], head[-2:]
        cosines = cosine_similarity(word[None], self._memory(state))[0]
        before, after = (1.0, oneplus(strength)) if self.average_cosines else (oneplus(strength), 1.0)
        logits, average = least_recently_used(before * cosines, average, jax.nn.sigmoid(gate), self.lru_decay)
        logits = after * logits
        choice = attend(logits)
        if self.soft_probability is not None:
            choice = jax.tree.map(lambda a, b: jnp.where(soft, a, b), choice, choose(key, logits))
        state = state._replace(
            log_probability=state.log_probability + choice.log_probability,
            entropy=state.entropy + choice.entropy,
        )
        return state, choice.weights, average


def _but_nop(weights: Float[Array, " cells"]) -> Float[Array, " cells"]:
    """Weights whose cell for doing nothing does nothing."""
    return jnp.where(np.arange(weights.size) == NOP, 0.0, weights)
