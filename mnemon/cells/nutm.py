"""Neural universal Turing machine: a memory of programs (Le, Tran & Venkatesh 2020)."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ..memory import content_weights, cosine_similarity
from ._contract import AbstractCell, Key
from ._controller import Interface
from ._init import uniform
from .dnc import DNC, DNCState
from .ntm import NTM, NTMState


class NUTMState(NamedTuple):
    """What a NUTM carries."""

    core: NTMState | DNCState  # of the machine that runs the programs
    program_weights: Float[Array, "heads programs"]  # w^p_t


class NUTM(AbstractCell[NUTMState, Array]):
    r"""NUTM: an NTM or a DNC whose interface network is put together at each step from stored programs.

    A program p is a key κ_p and the weights V_p (and bias) of an interface network. Every head has its own P programs,
    all learned, all constant in time. From the controller's output h_t a linear layer makes for each head a query q
    and a strength β (softplus); the weights of the head's interface network are the mean of its programs,

    $$\begin{aligned}
    w^p_t &= e^{\beta_t D(q_t, \kappa_p)} / \textstyle\sum_{p'} e^{\beta_t D(q_t, \kappa_{p'})} \\
    \xi_t &= h_t W_t, \quad W_t = \textstyle\sum_p w^p_t V_p
    \end{aligned}$$

    D being the cosine, and ξ_t is what the head does next, as in [`NTM`][mnemon.cells.NTM] or
    [`DNC`][mnemon.cells.DNC]. The output is that of the core, [h_t, r_t]. With one program it is the core.

    **Notes.** W_t is never built: ξ_t = Σ_p w^p_t (h_t V_p), and all h_t V_p are one product. Programs start like the
    interface network of the core (the authors' code: Glorot over keys and values together). Their code takes
    tanh of queries and keys (`tanh_keys`), and for bAbI one set of programs for all read heads of a DNC. Their
    regulariser, weighted 0.1 and fading, is [`key_similarity`][].

    >>> import jax
    >>> cell = NUTM(3, 7, programs=2, memory_slots=6, word_size=4, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.program_weights.shape, y.shape
    ((2, 2), (11,))
    """

    core: Any  # an NTM or a DNC without its interface network
    query: Interface  # q and β of every head
    keys: Float[Array, "heads programs key"]  # κ
    values: Interface  # V, program after program
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    tanh_keys: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        core: Literal["ntm", "dnc"] = "ntm",
        programs: int = 2,
        key_size: int | None = None,
        layers: int = 1,
        memory_slots: int = 128,
        word_size: int = 20,
        read_heads: int = 1,
        write_heads: int = 1,
        tanh_keys: bool = False,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of each layer of the LSTM controller.
        - `core`: the machine that runs the programs.
        - `programs`: number P of programs of each head.
        - `key_size`: size of a program's key; by default as many as programs.
        - `layers`: number of layers of the controller.
        - `memory_slots`: number N of words in the memory.
        - `word_size`: size of a word.
        - `read_heads`: number of read heads.
        - `write_heads`: number of write heads; a DNC has one.
        - `tanh_keys`: tanh of queries and keys (the authors' code: True).
        - `key`: for the initial parameters.
        """
        require(programs >= 1, "programs", programs, "at least one program", "programs=2")
        require(key_size is None or key_size >= 1, "key_size", key_size, "at least one entry", "key_size=2")
        require(
            core == "ntm" or write_heads == 1,
            "write_heads",
            write_heads,
            "the one write head of a DNC",
            "write_heads=1",
        )
        core_key, query_key, keys_key, values_key = jax.random.split(key, 4)
        sizes: dict[str, Any] = {
            "layers": layers,
            "memory_slots": memory_slots,
            "word_size": word_size,
            "read_heads": read_heads,
        }
        machine: Any
        if core == "ntm":
            machine = NTM(input_size, hidden_size, write_heads=write_heads, **sizes, key=core_key)
        else:
            machine = DNC(input_size, hidden_size, **sizes, key=core_key)
        key_size = key_size or programs
        heads, interface_size, bias = (
            len(machine.units),
            sum(machine.units),
            machine.interface.bias is not None,
        )
        controller_size = layers * hidden_size
        self.core = eqx.tree_at(lambda cell: cell.interface, machine, None)
        self.query = Interface(controller_size, heads * (key_size + 1), bias=True, key=query_key)
        self.keys = uniform(keys_key, (heads, programs, key_size), key_size**-0.5)
        self.values = Interface(controller_size, programs * interface_size, bias=bias, key=values_key)
        self.input_size, self.output_size, self.tanh_keys = input_size, machine.output_size, tanh_keys

    def init_state(self) -> NUTMState:
        return NUTMState(self.core.init_state(), jnp.zeros(self.keys.shape[:2], self.keys.dtype))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " drive"]:
        return self.core.drive(x)

    def step(
        self, state: NUTMState, drive: Float[Array, " drive"], *, key: Key = None
    ) -> tuple[NUTMState, Float[Array, " output"]]:
        controller = self.core.controller(state.core.controller, drive, state.core.reads)
        weights = self._program_weights(controller.output)
        # What each program would do, and which head each of its orders is for.
        orders = self.values(controller.output).reshape(weights.shape[1], -1)
        shares = [jnp.broadcast_to(w, (size, w.size)) for w, size in zip(weights, self.core.units, strict=True)]
        interface = jnp.sum(jnp.concatenate(shares).T * orders, axis=0)
        core, output = self.core.access(state.core, controller, interface)
        return NUTMState(core, weights), output

    def _program_weights(self, controller: Float[Array, " controller"]) -> Float[Array, "heads programs"]:
        queries = self.query(controller).reshape(len(self.keys), -1)
        queries, strengths, keys = queries[:, :-1], jax.nn.softplus(queries[:, -1]), self.keys
        if self.tanh_keys:
            queries, keys = jnp.tanh(queries), jnp.tanh(keys)
        return jax.vmap(lambda q, b, k: content_weights(q[None], b[None], k)[0])(queries, strengths, keys)

    def key_similarity(self) -> Float[Array, ""]:
        """Mean cosine between the keys of the programs of a head: the authors' regulariser, to be made small."""
        programs = self.keys.shape[1]
        pairs = np.triu(np.ones((programs, programs)), 1)
        similarity = jax.vmap(cosine_similarity)(self.keys, self.keys)
        return jnp.sum(pairs[None] * similarity) / (len(self.keys) * max(pairs.sum(), 1.0))
