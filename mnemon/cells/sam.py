"""Sparse access memory (Rae et al. 2016)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ..memory import least_recent, mark_accessed, wipe_and_add
from ._contract import Key
from ._controller import ControllerState
from ._sparse import AbstractSparse


class SAMState(NamedTuple):
    """What a SAM carries. Of all weightings only the non-zeros and their rows are kept."""

    controller: ControllerState
    memory: Float[Array, "slots word"]  # M_t
    last_access: Int[Array, " slots"]  # the step at which a row was last read or written, t - U_t
    reads: Float[Array, "heads word"]  # r_t
    read_rows: Int[Array, "heads top_k"]
    read_weights: Float[Array, "heads top_k"]  # w^R_t
    write_rows: Int[Array, "heads top_k+1"]  # the last one is the row that was wiped
    write_weights: Float[Array, "heads top_k+1"]  # w^W_t
    time: Int[Array, ""]  # t


class SAM(AbstractSparse[SAMState]):
    r"""SAM: an LSTM with a large memory of which each head reads K rows and writes K + 1 rows in a step.

    $$\begin{aligned}
    h_t &= \mathrm{LSTM}([x_t, r_{t-1}], h_{t-1}), \quad (q_t, a_t, \alpha_t, \gamma_t) = h_t W_p + b_p \\
    w^W_t &= \sigma(\alpha_t) (\sigma(\gamma_t) w^R_{t-1} + (1 - \sigma(\gamma_t)) 1_{l}),
        \quad l = \arg\max_i U_{t-1}[i] \\
    M_t &= (1 - 1_l 1^T) \odot M_{t-1} + w^W_t a_t^T \\
    w^R_t[i] &= e^{\cos(q_t, M_t[i])} / \sum_{j \in \mathrm{top\,K}} e^{\cos(q_t, M_t[j])}
        \text{ for the K rows nearest to } q_t \text{, else } 0 \\
    r_t &= M_t^T w^R_t, \quad y_t = [h_t, r_t] \\
    U_t[i] &= t - \max \{t' \le t : w^W_{t'}[i] + w^R_{t'}[i] > \delta\}
    \end{aligned}$$

    Only finding the nearest and the least recently accessed rows looks at the whole memory, and it has no gradient.
    All else, forwards and backwards, costs the same for any number of rows (see `mnemon.memory.sparse`).

    **Notes.** Each head has its own q, a, alpha, gamma; the n-th head wipes the n-th least recently accessed row, and
    U counts the weights of all heads together. The paper's output is linear in [h_t, r_t]: that is the readout's job.
    It names no strength of the softmax; `strengths=True` multiplies the cosines by a learned 1 + softplus. It
    takes the least recently accessed row as an arg min of U, which is right for its other definition of U.
    The nearest rows are found exactly, not with an approximate index.

    >>> import jax
    >>> cell = SAM(3, 5, memory_slots=32, word_size=4, heads=2, top_k=3, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape, state.write_rows.shape
    ((13,), (2, 4))
    """

    heads: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory_slots: int = 128,
        word_size: int = 32,
        heads: int = 4,
        top_k: int = 4,
        access_threshold: float = 0.005,
        strengths: bool = False,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `memory_slots`: number N of rows of the memory.
        - `word_size`: size of a row.
        - `heads`: number of heads; each reads and writes.
        - `top_k`: number K of rows that a head reads.
        - `access_threshold`: the weight delta above which a row counts as accessed.
        - `strengths`: sharpen the softmax over the K rows by a learned strength.
        - `key`: for the initial parameters.
        """
        require(heads >= 1, "heads", heads, "1 or more", "heads=4")
        rows = max(top_k, heads)
        wanted = f"at least top_k={top_k} rows to read and heads={heads} rows to wipe"
        require(memory_slots >= rows, "memory_slots", memory_slots, wanted, f"memory_slots={32 * rows}")
        super().__init__(
            input_size,
            hidden_size,
            heads=heads,
            interface_size=heads * (2 * word_size + 2 + strengths),
            memory_slots=memory_slots,
            word_size=word_size,
            top_k=top_k,
            access_threshold=access_threshold,
            strengths=strengths,
            key=key,
        )
        self.heads = heads

    def init_state(self) -> SAMState:
        dtype, heads, read = self.controller.bias.dtype, self.heads, (self.heads, self.top_k)
        written = (heads, self.top_k + 1)
        return SAMState(
            self.controller.init_state(),
            memory=jnp.zeros((self.memory_slots, self.word_size), dtype),
            last_access=jnp.zeros((self.memory_slots,), jnp.int32),
            reads=jnp.zeros((heads, self.word_size), dtype),
            read_rows=jnp.zeros(read, jnp.int32),
            read_weights=jnp.zeros(read, dtype),
            write_rows=jnp.zeros(written, jnp.int32),
            write_weights=jnp.zeros(written, dtype),
            time=jnp.zeros((), jnp.int32),
        )

    def step(
        self, state: SAMState, drive: Float[Array, " drive"], *, key: Key = None
    ) -> tuple[SAMState, Float[Array, " output"]]:
        controller = self.controller(state.controller, drive, state.reads)
        interface = self.interface(controller.output).reshape(self.heads, -1)
        keys, words, scalars = jnp.split(interface, [self.word_size, 2 * self.word_size], axis=1)
        alpha, gamma = jax.nn.sigmoid(scalars[:, :2]).T

        time = state.time + 1
        wiped = least_recent(state.last_access, time, self.heads)
        write_rows = jnp.concatenate([state.read_rows, wiped[:, None]], axis=1)
        mixture = jnp.concatenate([gamma[:, None] * state.read_weights, 1.0 - gamma[:, None]], axis=1)
        write_weights = alpha[:, None] * mixture
        memory = wipe_and_add(state.memory, write_rows, write_weights, words)

        rows, weights, found, memory = self.nearest_rows(keys, scalars, memory)
        reads = jnp.einsum("hk,hkw->hw", weights, found)

        accessed = jnp.concatenate([write_rows, rows], axis=1).ravel()
        accessed_weights = jnp.concatenate([write_weights, weights], axis=1).ravel()
        last_access = mark_accessed(state.last_access, accessed, accessed_weights, time, self.access_threshold)
        after = SAMState(controller, memory, last_access, reads, rows, weights, write_rows, write_weights, time)
        return after, jnp.concatenate([controller.output, reads.ravel()])
