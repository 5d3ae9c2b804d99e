"""Differentiable neural computer (Graves et al. 2016)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ..memory import (
    allocation_weights,
    content_weights,
    erase_and_add,
    follow_links,
    mix_read_modes,
    oneplus,
    retention,
    sharpen,
    update_links,
    update_precedence,
    update_usage,
)
from ._contract import AbstractCell, Key
from ._controller import Controller, ControllerState, Interface, parts


class DNCState(NamedTuple):
    """What a DNC carries."""

    controller: ControllerState
    memory: Float[Array, "slots word"]  # M_t
    usage: Float[Array, " slots"]  # u_t
    precedence: Float[Array, " slots"]  # p_t
    links: Float[Array, "slots slots"]  # L_t
    write_weights: Float[Array, " slots"]  # w^w_t
    read_weights: Float[Array, "heads slots"]  # w^r_t
    reads: Float[Array, "heads word"]  # r_t
    allocation_gate: Float[Array, ""]  # g^a_t
    write_gate: Float[Array, ""]  # g^w_t
    free_gates: Float[Array, " heads"]  # f_t
    read_modes: Float[Array, "heads 3"]  # π_t: backward, content, forward


class DNC(AbstractCell[DNCState, Array]):
    r"""DNC: a memory that allocates its slots, and remembers the order in which they were written.

    The controller is a deep LSTM, layer l of which sees [x_t, r_{t-1}, h_t^{l-1}, h_{t-1}^l]. The interface vector
    ξ_t = h_t W_ξ holds, for each read head, a key k, a strength β, a free gate f and read modes π, and for the write
    head a key, an erase vector e, a word v, a strength, an allocation gate g^a and a write gate g^w. Gates and e are
    sigmoids, π is a softmax, β = oneplus. C is content addressing.

    $$\begin{aligned}
    \psi_t &= \prod_i (1 - f_t^i w^{r,i}_{t-1}), \quad
    u_t = (u_{t-1} + w^w_{t-1} - u_{t-1} \odot w^w_{t-1}) \odot \psi_t \\
    a_t[\phi[j]] &= (1 - u_t[\phi[j]]) \prod_{i<j} u_t[\phi[i]] \qquad (\phi: \text{ascending usage}) \\
    w^w_t &= g^w_t (g^a_t a_t + (1 - g^a_t) C(M_{t-1}, k^w_t, \beta^w_t)) \\
    M_t &= M_{t-1} \odot (1 - w^w_t e_t^T) + w^w_t v_t^T \\
    L_t[i, j] &= (1 - w^w_t[i] - w^w_t[j]) L_{t-1}[i, j] + w^w_t[i] p_{t-1}[j], \quad L_t[i, i] = 0 \\
    p_t &= (1 - \textstyle\sum_i w^w_t[i]) p_{t-1} + w^w_t \\
    w^{r,i}_t &= \pi^i_t[1] L_t^T w^{r,i}_{t-1} + \pi^i_t[2] C(M_t, k^{r,i}_t, \beta^{r,i}_t)
        + \pi^i_t[3] L_t w^{r,i}_{t-1}, \quad r^i_t = M_t^T w^{r,i}_t
    \end{aligned}$$

    The output is [h_t^1 .. h_t^L, r_t^1 .. r_t^R]: a linear readout of it is the paper's output
    y_t = W_y [h_t] + W_r [r_t].

    **Notes.** All state starts at zero. The interface vector is ordered by head, not by kind (a permutation of the
    columns of W_ξ). Squared norms have 1e-6 added, as in DeepMind's code; other things that code does differently
    are options: `softplus_strengths`, `usage_gradient=False`, `interface_bias` and `bound=20`. `masked_content`,
    `deallocate` and `sharpen_links` are the improvements of Csordás & Schmidhuber (2019): a mask on key and memory,
    M_{t-1} times ψ_t before the write, and powers of the two link weightings.

    >>> import jax
    >>> cell = DNC(3, 7, memory_slots=6, word_size=4, read_heads=2, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.links.shape, y.shape
    ((6, 6), (15,))
    """

    controller: Controller
    interface: Interface  # W_ξ; None when NUTM puts programs in its place
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    memory_slots: int = eqx.field(static=True)
    word_size: int = eqx.field(static=True)
    read_heads: int = eqx.field(static=True)
    masked_content: bool = eqx.field(static=True)
    mask_floor: float = eqx.field(static=True)
    deallocate: bool = eqx.field(static=True)
    sharpen_links: bool = eqx.field(static=True)
    softplus_strengths: bool = eqx.field(static=True)
    usage_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        layers: int = 1,
        memory_slots: int = 32,
        word_size: int = 16,
        read_heads: int = 4,
        masked_content: bool = False,
        mask_floor: float = 0.1,
        deallocate: bool = False,
        sharpen_links: bool = False,
        softplus_strengths: bool = False,
        usage_gradient: bool = True,
        interface_bias: bool = False,
        bound: float | None = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of each layer of the controller.
        - `layers`: number L of layers of the controller.
        - `memory_slots`: number N of words in the memory.
        - `word_size`: size W of a word.
        - `read_heads`: number R of read heads.
        - `masked_content`: a mask for each key, so that a lookup can use a part of the word.
        - `mask_floor`: least value of a mask.
        - `deallocate`: empty the slots that the free gates free.
        - `sharpen_links`: sharpen the forward and backward weightings.
        - `softplus_strengths`: strengths from 0 on, not from 1 (DeepMind's code: True).
        - `usage_gradient`: gradients pass from usage to the write weights (DeepMind's code: False).
        - `interface_bias`: a bias in the interface network (DeepMind's code: True).
        - `bound`: largest magnitude of the LSTM's cells (DeepMind's code: 20).
        - `key`: for the initial parameters.
        """
        require(memory_slots >= 2, "memory_slots", memory_slots, "at least two words", "memory_slots=32")
        require(word_size >= 1, "word_size", word_size, "at least one entry", "word_size=16")
        require(read_heads >= 1, "read_heads", read_heads, "at least one head", "read_heads=4")
        require(0 <= mask_floor < 1, "mask_floor", mask_floor, "at least 0 and less than 1", "mask_floor=0.1")
        self.input_size, self.memory_slots = input_size, memory_slots
        self.word_size, self.read_heads = word_size, read_heads
        self.masked_content, self.mask_floor = masked_content, mask_floor
        self.deallocate, self.sharpen_links = deallocate, sharpen_links
        self.softplus_strengths, self.usage_gradient = softplus_strengths, usage_gradient
        controller_key, interface_key = jax.random.split(key)
        reads = read_heads * word_size
        self.controller = Controller(
            input_size, reads, hidden_size, layers=layers, kind="lstm", bound=bound, key=controller_key
        )
        size = layers * hidden_size
        self.interface = Interface(size, sum(self.units), bias=interface_bias, key=interface_key)
        self.output_size = size + reads

    @property
    def read_parts(self) -> list[int]:
        """Sizes of what each read head gets: key, strength, free gate, modes; mask; sharpness of b and f."""
        return [self.word_size, 1, 1, 3, self.word_size * self.masked_content, 2 * self.sharpen_links]

    @property
    def write_parts(self) -> list[int]:
        """Sizes of what the write head gets: key, erase, word, strength, both gates; mask."""
        return [self.word_size] * 3 + [1, 1, 1, self.word_size * self.masked_content]

    @property
    def units(self) -> list[int]:
        """Sizes of the parts of the interface vector that belong to one head: read heads, then write head."""
        return [sum(self.read_parts)] * self.read_heads + [sum(self.write_parts)]

    def init_state(self) -> DNCState:
        n, w, r = self.memory_slots, self.word_size, self.read_heads
        shapes = [(n, w), (n,), (n,), (n, n), (n,), (r, n), (r, w), (), (), (r,), (r, 3)]
        controller = self.controller.init_state()
        return DNCState(controller, *(jnp.zeros(shape, controller.hidden.dtype) for shape in shapes))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " drive"]:
        return self.controller.drive(x)

    def step(
        self, state: DNCState, drive: Float[Array, " drive"], *, key: Key = None
    ) -> tuple[DNCState, Float[Array, " output"]]:
        controller = self.controller(state.controller, drive, state.reads)
        return self.access(state, controller, self.interface(controller.output))

    def access(
        self, state: DNCState, controller: ControllerState, interface: Float[Array, " interface"]
    ) -> tuple[DNCState, Float[Array, " output"]]:
        """Write to the memory and read from it as the interface vector says."""
        reading, writing = jnp.split(interface, [sum(self.units[:-1])])
        write_key, erase, word, write_strength, allocation_gate, write_gate, write_mask = parts(
            writing, self.write_parts
        )
        keys, strengths, free_gates, read_modes, masks, sharpness = parts(
            reading.reshape(self.read_heads, -1), self.read_parts
        )
        allocation_gate, write_gate = jax.nn.sigmoid(allocation_gate), jax.nn.sigmoid(write_gate)
        free_gates, read_modes = jax.nn.sigmoid(free_gates), jax.nn.softmax(read_modes)

        kept = retention(free_gates, state.read_weights)
        last_write = state.write_weights
        if not self.usage_gradient:
            last_write = jax.lax.stop_gradient(last_write)
        usage = update_usage(state.usage, last_write, kept)
        content = self._content(write_key[None], write_strength[None], state.memory, write_mask[None])[0]
        write_weights = write_gate * (allocation_gate * allocation_weights(usage) + (1.0 - allocation_gate) * content)
        memory = kept[:, None] * state.memory if self.deallocate else state.memory
        memory = erase_and_add(memory, write_weights[None], jax.nn.sigmoid(erase)[None], word[None])

        links = update_links(state.links, state.precedence, write_weights)
        precedence = update_precedence(state.precedence, write_weights)
        forward, backward = follow_links(links, state.read_weights)
        if self.sharpen_links:
            backward, forward = (
                sharpen(weights, oneplus(exponents), epsilon=1e-6)
                for weights, exponents in zip((backward, forward), sharpness.T, strict=True)
            )
        content = self._content(keys, strengths, memory, masks)
        read_weights = mix_read_modes(read_modes, backward, content, forward)
        reads = read_weights @ memory

        after = DNCState(
            controller, memory, usage, precedence, links, write_weights, read_weights, reads,
            allocation_gate, write_gate, free_gates, read_modes,
        )  # fmt: skip
        return after, jnp.concatenate([controller.output, reads.ravel()])

    def _content(self, keys, strengths, memory, masks) -> Float[Array, "heads slots"]:
        strengths = jax.nn.softplus(strengths) if self.softplus_strengths else oneplus(strengths)
        if not self.masked_content:
            return content_weights(keys, strengths, memory)
        masks = self.mask_floor + (1.0 - self.mask_floor) * jax.nn.sigmoid(masks)
        return content_weights(keys, strengths, memory, masks)
