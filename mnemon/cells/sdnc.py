"""Sparse differentiable neural computer (Rae et al. 2016, supplement)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ..memory import least_recent, mark_accessed, read_rows, sparse_links, wipe_and_add
from ..memory.sparse_links import SparseLinks, SparseVector
from ._contract import Key
from ._controller import ControllerState
from ._sparse import AbstractSparse


class SDNCState(NamedTuple):
    """What an SDNC carries. Of all weightings only the non-zeros and their rows are kept."""

    controller: ControllerState
    memory: Float[Array, "slots word"]  # M_t
    last_access: Int[Array, " slots"]  # the step at which a row was last read or written, t - U_t
    links: SparseLinks  # N_t
    precedence: SparseVector  # p_t
    reads: Float[Array, "heads word"]  # r_t
    read: SparseVector  # w^r_t, for each head
    written: SparseVector  # w^w_t; the last row is the one that was wiped
    modes: Float[Array, "heads 3"]  # how much of each read goes backwards, by content, forwards
    time: Int[Array, ""]  # t


class SDNC(AbstractSparse[SDNCState]):
    r"""SDNC: the writes and the content reads of a SAM with the temporal links of a DNC, all of them sparse.

    $$\begin{aligned}
    h_t &= \mathrm{LSTM}([x_t, r_{t-1}], h_{t-1}), \quad (a_t, \alpha_t, \gamma_t, q_t^n, \pi_t^n) = h_t W_p + b_p \\
    w^w_t &= \sigma(\alpha_t) (\sigma(\gamma_t) \tfrac{1}{R} \textstyle\sum_n w^{r,n}_{t-1}
        + (1 - \sigma(\gamma_t)) 1_{l}), \quad l = \arg\max_i U_{t-1}[i] \\
    M_t &= (1 - 1_l 1^T) \odot M_{t-1} + w^w_t a_t^T \\
    N_t[i, j] &= (1 - w^w_t[i]) N_{t-1}[i, j] + w^w_t[i] p_{t-1}[j],
        \quad p_t = (1 - \textstyle\sum_i w^w_t[i]) p_{t-1} + w^w_t \\
    b^n_t &= N_t^T w^{r,n}_{t-1}, \quad f^n_t = N_t w^{r,n}_{t-1},
        \quad c^n_t = \text{softmax of } \cos(q^n_t, M_t[i]) \text{ over the K rows nearest to } q^n_t \\
    w^{r,n}_t &= \mathrm{top\,K}(\mathrm{softmax}(\pi^n_t) \cdot (b^n_t, c^n_t, f^n_t)),
        \quad r^n_t = M_t^T w^{r,n}_t, \quad y_t = [h_t, r_t]
    \end{aligned}$$

    Each row and each column of N, and p, keep their `links` largest entries. U is that of [`SAM`][mnemon.cells.SAM].

    **Notes.** The paper keeps N and its transpose P as two matrices, each with sparse rows. Here P is an index of the
    columns of N, so that a link has one weight; both follow the same equations. As in the paper no gradient goes
    through N and p; with `link_gradients=True` it does. The paper leaves open how heads share the links (here one head
    writes, as in the DNC, to where the reading heads were on average), how many rows a read keeps (here K, not
    renormalised), and whether a row is linked with itself (here, as in the DNC, it is not).

    >>> import jax
    >>> cell = SDNC(3, 5, memory_slots=32, word_size=4, read_heads=2, top_k=3, links=6, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape, state.read.rows.shape, state.links.before.shape
    ((13,), (2, 3), (32, 6))
    """

    read_heads: int = eqx.field(static=True)  # R
    links: int = eqx.field(static=True)  # K_L
    link_gradients: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory_slots: int = 128,
        word_size: int = 32,
        read_heads: int = 4,
        top_k: int = 4,
        links: int = 8,
        access_threshold: float = 0.005,
        strengths: bool = False,
        link_gradients: bool = False,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `memory_slots`: number of rows of the memory.
        - `word_size`: size of a row.
        - `read_heads`: number R of reading heads.
        - `top_k`: number K of rows that a head reads.
        - `links`: number of links kept for each row.
        - `access_threshold`: the weight delta above which a row counts as accessed.
        - `strengths`: sharpen the softmax over the K rows by a learned strength.
        - `link_gradients`: let gradients through the links (the paper: False).
        - `key`: for the initial parameters.
        """
        require(read_heads >= 1, "read_heads", read_heads, "1 or more", "read_heads=4")
        require(links >= 1, "links", links, "1 or more", "links=4")
        super().__init__(
            input_size,
            hidden_size,
            heads=read_heads,
            interface_size=word_size + 2 + read_heads * (word_size + 3 + strengths),
            memory_slots=memory_slots,
            word_size=word_size,
            top_k=top_k,
            access_threshold=access_threshold,
            strengths=strengths,
            key=key,
        )
        self.read_heads, self.links, self.link_gradients = read_heads, links, link_gradients

    def init_state(self) -> SDNCState:
        dtype, heads = self.controller.bias.dtype, self.read_heads

        def nothing(*shape: int) -> SparseVector:
            return SparseVector(jnp.zeros(shape, jnp.int32), jnp.zeros(shape, dtype))

        return SDNCState(
            self.controller.init_state(),
            memory=jnp.zeros((self.memory_slots, self.word_size), dtype),
            last_access=jnp.zeros((self.memory_slots,), jnp.int32),
            links=sparse_links.no_links(self.memory_slots, self.links, dtype),
            precedence=nothing(self.links),
            reads=jnp.zeros((heads, self.word_size), dtype),
            read=nothing(heads, self.top_k),
            written=nothing(heads * self.top_k + 1),
            modes=jnp.full((heads, 3), 1 / 3, dtype),
            time=jnp.zeros((), jnp.int32),
        )

    def step(
        self, state: SDNCState, drive: Float[Array, " drive"], *, key: Key = None
    ) -> tuple[SDNCState, Float[Array, " output"]]:
        controller = self.controller(state.controller, drive, state.reads)
        interface = self.interface(controller.output)
        word, write_gates, heads = jnp.split(interface, [self.word_size, self.word_size + 2])
        keys, scalars = jnp.split(heads.reshape(self.read_heads, -1), [self.word_size], axis=1)
        alpha, gamma = jax.nn.sigmoid(write_gates)
        modes = jax.nn.softmax(scalars[:, :3], axis=1)

        time = state.time + 1
        wiped = least_recent(state.last_access, time, 1)
        mixture = jnp.append(gamma * state.read.weights.ravel() / self.read_heads, 1.0 - gamma)
        written = SparseVector(jnp.append(state.read.rows.ravel(), wiped), alpha * mixture)
        memory = wipe_and_add(state.memory, written.rows[None], written.weights[None], word[None])

        linked = written if self.link_gradients else jax.lax.stop_gradient(written)
        links = sparse_links.update_links(state.links, state.precedence, linked)
        precedence = sparse_links.update_precedence(state.precedence, linked)
        forward, backward, links = sparse_links.follow(links, state.read)

        rows, content, _, memory = self.nearest_rows(keys, scalars, memory)
        candidates = SparseVector(
            jnp.concatenate([backward.rows, rows, forward.rows], axis=1),
            jnp.concatenate(
                [modes[:, :1] * backward.weights, modes[:, 1:2] * content, modes[:, 2:] * forward.weights],
                axis=1,
            ),
        )
        read = jax.vmap(lambda vector: sparse_links.strongest(vector, self.top_k))(candidates)
        found, memory = read_rows(memory, read.rows)
        reads = jnp.einsum("hk,hkw->hw", read.weights, found)

        accessed = jnp.append(written.rows, read.rows.ravel())
        accessed_weights = jnp.append(written.weights, read.weights.ravel())
        last_access = mark_accessed(state.last_access, accessed, accessed_weights, time, self.access_threshold)
        after = SDNCState(controller, memory, last_access, links, precedence, reads, read, written, modes, time)
        return after, jnp.concatenate([controller.output, reads.ravel()])
