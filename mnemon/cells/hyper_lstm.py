"""HyperLSTM (Ha et al. 2016)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import LayerNorm, glorot_normal, orthogonal


class HyperLSTMState(NamedTuple):
    """What a HyperLSTM carries."""

    hidden: Float[Array, " hidden"]  # h_t
    cell: Float[Array, " hidden"]  # c_t
    hyper_hidden: Float[Array, " hyper"]
    hyper_cell: Float[Array, " hyper"]


class HyperLSTM(AbstractCell[HyperLSTMState, Array]):
    r"""An LSTM whose weight matrices are scaled, row by row and step by step, by a smaller LSTM.

    $$\begin{aligned}
    \hat h_t &= \mathrm{LSTM}(\hat h_{t-1}, [x_t, h_{t-1}]) \\
    z_h &= \hat h_t W_{\hat h h} + b_{\hat h h}, \quad z_x = \hat h_t W_{\hat h x} + b_{\hat h x}, \quad
        z_b = \hat h_t W_{\hat h b} \\
    y &= \mathrm{LN}(z_h W_{hz} \odot h_{t-1} W_h + z_x W_{xz} \odot x_t W_x + z_b W_{bz} + b_0),
        \qquad y \in \{i, f, o, g\} \\
    c_t &= \sigma(f + 1) \odot c_{t-1} + \sigma(i) \odot \mathrm{dropout}(\tanh(g)) \\
    h_t &= \sigma(o) \odot \tanh(\mathrm{LN}(c_t))
    \end{aligned}$$

    with weights of its own for each gate y. The small LSTM is normalised in the same way.

    **Notes.** The paper prints the embeddings z as functions of $\hat h_{t-1}$; the authors' code, which made its
    results, takes $\hat h_t$, and so does this cell unless `delayed`. The forget bias 1 is added after LN. Recurrent
    dropout acts only with a key. Initial values are the paper's, so that all scales start at 0.1.

    >>> import jax
    >>> cell = HyperLSTM(3, 5, hyper_size=4, hyper_embedding_size=2, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.hyper_hidden.shape, y.shape
    ((4,), (5,))
    """

    input_weights: Float[Array, "input hyper_and_main"]  # x to the hyper gates | W_x
    recurrent_weights: Float[Array, "hidden hyper_and_main"]  # h to the hyper gates | W_h
    hyper_weights: Float[Array, "hyper hyper_gates"]
    hyper_bias: Float[Array, " hyper_gates"]
    embedding_weights: Float[Array, "hyper embeddings"]  # W_hh, W_hx, W_hb, each for i, f, o, g
    embedding_bias: Float[Array, "2 4 embedding"]  # b_hh, b_hx
    scaling_weights: Float[Array, "3 4 embedding hidden"]  # W_hz, W_xz, W_bz
    bias: Float[Array, "4 hidden"]  # b_0
    gate_norms: LayerNorm | None  # one for each gate, stacked
    cell_norm: LayerNorm | None
    hyper_gate_norms: LayerNorm | None
    hyper_cell_norm: LayerNorm | None
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    hyper_size: int = eqx.field(static=True)
    hyper_embedding_size: int = eqx.field(static=True)
    recurrent_dropout: float = eqx.field(static=True)
    delayed: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        hyper_size: int = 128,
        hyper_embedding_size: int = 4,
        layer_norm: bool = True,
        recurrent_dropout: float = 0.0,
        delayed: bool = False,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h and c.
        - `hyper_size`: size of the small LSTM.
        - `hyper_embedding_size`: size N_z of the vectors z that it gives to each gate.
        - `layer_norm`: normalise gates and cells.
        - `recurrent_dropout`: fraction of the candidates tanh(g) to drop in training.
        - `delayed`: use the small LSTM's state of the step before (as the paper prints it).
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require(hyper_size >= 1, "hyper_size", hyper_size, "at least one unit", "hyper_size=128")
        require(
            hyper_embedding_size >= 1,
            "hyper_embedding_size",
            hyper_embedding_size,
            "at least one number",
            "hyper_embedding_size=4",
        )
        require(
            0 <= recurrent_dropout < 1,
            "recurrent_dropout",
            recurrent_dropout,
            "a fraction to drop, from 0 to less than 1",
            "recurrent_dropout=0.1",
        )
        keys = jax.random.split(key, 6)
        to_main = [glorot_normal(k, input_size, hidden_size) for k in jax.random.split(keys[0], 4)]
        self.input_weights = jnp.concatenate([glorot_normal(keys[1], input_size, 4 * hyper_size), *to_main], axis=1)
        self.recurrent_weights = jnp.concatenate(
            [glorot_normal(keys[2], hidden_size, 4 * hyper_size), orthogonal(keys[3], hidden_size, blocks=4)], axis=1
        )
        self.hyper_weights = orthogonal(keys[4], hyper_size, blocks=4)
        self.hyper_bias = jnp.zeros((4 * hyper_size,))
        to_shift = 0.01 * jax.random.normal(keys[5], (hyper_size, 4 * hyper_embedding_size))
        self.embedding_weights = jnp.concatenate([jnp.zeros((hyper_size, 8 * hyper_embedding_size)), to_shift], axis=1)
        self.embedding_bias = jnp.ones((2, 4, hyper_embedding_size))
        scales = jnp.full((2, 4, hyper_embedding_size, hidden_size), 0.1 / hyper_embedding_size)
        self.scaling_weights = jnp.concatenate([scales, jnp.zeros((1, 4, hyper_embedding_size, hidden_size))])
        self.bias = jnp.zeros((4, hidden_size))
        self.gate_norms = _gate_norms(hidden_size) if layer_norm else None
        self.cell_norm = LayerNorm(hidden_size, eps=_EPS) if layer_norm else None
        self.hyper_gate_norms = _gate_norms(hyper_size) if layer_norm else None
        self.hyper_cell_norm = LayerNorm(hyper_size, eps=_EPS) if layer_norm else None
        self.input_size, self.output_size = input_size, hidden_size
        self.hyper_size, self.hyper_embedding_size = hyper_size, hyper_embedding_size
        self.recurrent_dropout, self.delayed = recurrent_dropout, delayed

    def init_state(self) -> HyperLSTMState:
        zero, hyper_zero = (jnp.zeros((n,), self.bias.dtype) for n in (self.output_size, self.hyper_size))
        return HyperLSTMState(zero, zero, hyper_zero, hyper_zero)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " hyper_and_main"]:
        return x @ self.input_weights

    def step(
        self, state: HyperLSTMState, drive: Float[Array, " hyper_and_main"], *, key: Key = None
    ) -> tuple[HyperLSTMState, Float[Array, " hidden"]]:
        hyper_gates = 4 * self.hyper_size
        # Cut by `split`, whose gradient is one concatenation: that of slices is a sum of as many padded arrays.
        hyper_from_hidden, from_hidden = jnp.split(state.hidden @ self.recurrent_weights, [hyper_gates])
        hyper_drive, drive = jnp.split(drive, [hyper_gates])
        hyper = hyper_drive + hyper_from_hidden + state.hyper_hidden @ self.hyper_weights
        hyper_cell, hyper_hidden = _lstm(
            state.hyper_cell, hyper + self.hyper_bias, self.hyper_gate_norms, self.hyper_cell_norm
        )
        embeddings = (state.hyper_hidden if self.delayed else hyper_hidden) @ self.embedding_weights
        z = embeddings.reshape(3, 4, -1) + jnp.pad(self.embedding_bias, ((0, 1), (0, 0), (0, 0)))  # z_h, z_x, z_b
        # A product of N_z terms for each scale: too short for a matrix product to pay.
        hidden_scale, input_scale, shift = jnp.split(jnp.sum(z[..., None] * self.scaling_weights, axis=2).ravel(), 3)
        gates = hidden_scale * from_hidden + input_scale * drive + shift + self.bias.ravel()
        cell, hidden = _lstm(state.cell, gates, self.gate_norms, self.cell_norm, self.recurrent_dropout, key)
        return HyperLSTMState(hidden, cell, hyper_hidden, hyper_cell), hidden


_EPS = 1e-3  # the authors' code


def _gate_norms(size: int) -> LayerNorm:
    return eqx.filter_vmap(lambda _: LayerNorm(size, eps=_EPS))(jnp.arange(4))


def _lstm(
    cell: Float[Array, " size"],
    gates: Float[Array, " gates"],
    gate_norms: LayerNorm | None,
    cell_norm: LayerNorm | None,
    dropout: float = 0.0,
    key: Key = None,
) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
    """Next cell and hidden state from the pre-activations i, f, o, g."""
    if gate_norms is not None:
        gates = jax.vmap(lambda norm, gate: norm(gate))(gate_norms, gates.reshape(4, -1)).ravel()
    i, f, o, g = jnp.split(gates, 4)
    candidate = jnp.tanh(g)
    if dropout > 0 and key is not None:
        candidate = candidate * jax.random.bernoulli(key, 1 - dropout, g.shape) / (1 - dropout)
    cell = jax.nn.sigmoid(f + 1.0) * cell + jax.nn.sigmoid(i) * candidate
    return cell, jax.nn.sigmoid(o) * jnp.tanh(cell if cell_norm is None else cell_norm(cell))
