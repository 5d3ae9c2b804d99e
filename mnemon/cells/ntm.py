"""Neural Turing machine (Graves et al. 2014; thesis 2.9.1)."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ..memory import circular_shift, content_weights, erase_and_add, interpolate, oneplus, sharpen
from ._contract import AbstractCell, Key
from ._controller import Controller, ControllerState, Interface, parts


class NTMState(NamedTuple):
    """What an NTM carries."""

    controller: ControllerState
    memory: Float[Array, "slots word"]  # M_t
    read_weights: Float[Array, "reads slots"]  # w_t of the read heads
    write_weights: Float[Array, "writes slots"]  # w_t of the write heads
    reads: Float[Array, "reads word"]  # r_t


class NTM(AbstractCell[NTMState, Array]):
    r"""NTM: a controller with heads that find their place in a memory by content and by location.

    The controller gives h_t from [x_t, r_{t-1}] (and h_{t-1}); one linear layer gives each head from h_t a key k, a
    strength β (softplus), a gate g (sigmoid), shifts s (softmax) and a sharpness γ (1 + softplus), and each write head
    also what to erase e (sigmoid) and what to add a. Each head addresses the memory by

    $$\begin{aligned}
    w^c_t[i] &= e^{\beta_t D(k_t, M[i])} / \textstyle\sum_j e^{\beta_t D(k_t, M[j])} \\
    w^g_t &= g_t w^c_t + (1 - g_t) w_{t-1} \\
    \tilde w_t[i] &= \textstyle\sum_j w^g_t[j] \, s_t[(i - j) \bmod N] \\
    w_t[i] &= \tilde w_t[i]^{\gamma_t} / \textstyle\sum_j \tilde w_t[j]^{\gamma_t}
    \end{aligned}$$

    (thesis 2.54-2.57), D being the cosine. The write heads address M_{t-1} and write, the read heads address M_t:

    $$ M_t[i] = M_{t-1}[i] \odot \prod_{heads} (1 - w_t[i] e_t) + \sum_{heads} w_t[i] a_t, \qquad r_t = M_t^T w_t $$

    (2.52, 2.48). The output is [h_t, r_t]: a linear readout of it is the paper's output layer.

    **Notes.** k comes from h_t, as in the paper; thesis 2.53 prints h_{t-1}. The memory starts as a small constant,
    and r_0 = tanh, w_0 = softmax of learned values (Collier & Beel 2018); the paper learns the memory too
    (`memory_init="learned"`). They also bound k and a by tanh (`tanh_words`), clip the heads' parameters (`bound=20`)
    and read before they write (`read_before_write`). A feed-forward controller is tanh([x_t, r_{t-1}] W + b). With
    more than one layer each layer also sees x_t and r_{t-1}, and h_t is all layers.

    >>> import jax
    >>> cell = NTM(3, 7, memory_slots=6, word_size=4, read_heads=2, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.memory.shape, y.shape
    ((6, 4), (15,))
    """

    controller: Controller
    interface: Interface  # the heads' linear layers side by side; None when NUTM puts programs in its place
    initial_reads: Float[Array, "reads word"]  # r_0 before tanh
    initial_read_weights: Float[Array, "reads slots"]  # w_0 before softmax
    initial_write_weights: Float[Array, "writes slots"]
    initial_memory: Float[Array, "slots word"] | None  # M_0 before tanh
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    memory_slots: int = eqx.field(static=True)
    word_size: int = eqx.field(static=True)
    read_heads: int = eqx.field(static=True)
    write_heads: int = eqx.field(static=True)
    shift_range: int = eqx.field(static=True)
    memory_value: float = eqx.field(static=True)
    read_before_write: bool = eqx.field(static=True)
    tanh_words: bool = eqx.field(static=True)
    bound: float | None = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        controller: Literal["lstm", "feedforward"] = "lstm",
        layers: int = 1,
        memory_slots: int = 128,
        word_size: int = 20,
        read_heads: int = 1,
        write_heads: int = 1,
        shift_range: int = 1,
        memory_init: Literal["constant", "learned"] = "constant",
        memory_value: float = 1e-6,
        read_before_write: bool = False,
        tanh_words: bool = False,
        bound: float | None = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of each layer of the controller.
        - `controller`: recurrent or not.
        - `layers`: number of layers of the controller.
        - `memory_slots`: number N of words in the memory.
        - `word_size`: size M of a word.
        - `read_heads`: number of read heads.
        - `write_heads`: number of write heads.
        - `shift_range`: how many slots a head can move in one step, either way.
        - `memory_init`: what the memory starts as.
        - `memory_value`: the constant it starts as.
        - `read_before_write`: read heads address and read M_{t-1}.
        - `tanh_words`: bound keys and added words by tanh.
        - `bound`: largest magnitude on the outputs of the heads' linear layers.
        - `key`: for the initial parameters.
        """
        require(memory_slots >= 3, "memory_slots", memory_slots, "at least three words", "memory_slots=128")
        require(word_size >= 1, "word_size", word_size, "at least one entry", "word_size=20")
        require(read_heads >= 1, "read_heads", read_heads, "at least one head", "read_heads=1")
        require(write_heads >= 1, "write_heads", write_heads, "at least one head", "write_heads=1")
        reach = (memory_slots - 1) // 2
        require(
            0 <= shift_range <= reach,
            "shift_range",
            shift_range,
            f"0 to {reach}, half the slots",
            "shift_range=1",
        )
        require(bound is None or bound > 0, "bound", bound, "a positive bound", "bound=20.0")
        self.input_size, self.memory_slots, self.word_size = input_size, memory_slots, word_size
        self.read_heads, self.write_heads, self.shift_range = read_heads, write_heads, shift_range
        self.memory_value, self.read_before_write = memory_value, read_before_write
        self.tanh_words, self.bound = tanh_words, bound
        keys = jax.random.split(key, 6)
        reads = read_heads * word_size
        self.controller = Controller(
            input_size, reads, hidden_size, layers=layers, kind=controller, bound=None, key=keys[0]
        )
        self.interface = Interface(layers * hidden_size, sum(self.units), bias=True, key=keys[1])
        # Heads that all start with equal weights, on a memory of equal words, would stay equal to each other.
        self.initial_read_weights = jax.random.normal(keys[2], (read_heads, memory_slots))
        self.initial_write_weights = jax.random.normal(keys[3], (write_heads, memory_slots))
        self.initial_reads = 0.1 * jax.random.normal(keys[4], (read_heads, word_size))
        learned = 0.5 * jax.random.normal(keys[5], (memory_slots, word_size))
        self.initial_memory = learned if memory_init == "learned" else None
        self.output_size = layers * hidden_size + reads

    @property
    def address_parts(self) -> list[int]:
        """Sizes of what each head gets to find its place: key, strength, gate, sharpness, shifts."""
        return [self.word_size, 1, 1, 1, 2 * self.shift_range + 1]

    @property
    def units(self) -> list[int]:
        """Sizes of the parts of the interface vector that belong to one head: read heads, then write heads."""
        address = sum(self.address_parts)
        return [address] * self.read_heads + [address + 2 * self.word_size] * self.write_heads

    def init_state(self) -> NTMState:
        if self.initial_memory is None:
            shape = (self.memory_slots, self.word_size)
            memory = jnp.full(shape, self.memory_value, self.initial_reads.dtype)
        else:
            memory = jnp.tanh(self.initial_memory)
        return NTMState(
            self.controller.init_state(),
            memory,
            jax.nn.softmax(self.initial_read_weights),
            jax.nn.softmax(self.initial_write_weights),
            jnp.tanh(self.initial_reads),
        )

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " drive"]:
        return self.controller.drive(x)

    def step(
        self, state: NTMState, drive: Float[Array, " drive"], *, key: Key = None
    ) -> tuple[NTMState, Float[Array, " output"]]:
        controller = self.controller(state.controller, drive, state.reads)
        return self.access(state, controller, self.interface(controller.output))

    def access(
        self, state: NTMState, controller: ControllerState, interface: Float[Array, " interface"]
    ) -> tuple[NTMState, Float[Array, " output"]]:
        """Write to the memory and read from it as the interface vector says."""
        if self.bound is not None:
            interface = jnp.clip(interface, -self.bound, self.bound)
        reading, writing = jnp.split(interface, [sum(self.units[: self.read_heads])])
        reading, writing = reading.reshape(self.read_heads, -1), writing.reshape(self.write_heads, -1)
        address = sum(self.address_parts)
        writing, erase, add = jnp.split(writing, [address, address + self.word_size], axis=-1)
        add = jnp.tanh(add) if self.tanh_words else add

        write_weights = self._address(writing, state.memory, state.write_weights)
        memory = erase_and_add(state.memory, write_weights, jax.nn.sigmoid(erase), add)
        seen = state.memory if self.read_before_write else memory
        read_weights = self._address(reading, seen, state.read_weights)
        reads = read_weights @ seen
        after = NTMState(controller, memory, read_weights, write_weights, reads)
        return after, jnp.concatenate([controller.output, reads.ravel()])

    def _address(
        self,
        orders: Float[Array, "heads orders"],
        memory: Float[Array, "slots word"],
        previous: Float[Array, "heads slots"],
    ) -> Float[Array, "heads slots"]:
        """Content, interpolation with the last place, shift, sharpening."""
        keys, strengths, gates, sharpness, shifts = parts(orders, self.address_parts)
        keys = jnp.tanh(keys) if self.tanh_words else keys
        content = content_weights(keys, jax.nn.softplus(strengths), memory)
        mixed = interpolate(jax.nn.sigmoid(gates), content, previous)
        moved = circular_shift(mixed, jax.nn.softmax(shifts))
        return sharpen(moved, oneplus(sharpness))
