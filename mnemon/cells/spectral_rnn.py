"""Recurrent network with a spectral margin (thesis 2.6)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._exponential import Orthogonal
from ._init import glorot_normal
from .rnn import ACTIVATIONS, Activation, RNNState


class SpectralRNN(AbstractCell[RNNState, Array]):
    r"""RNN whose recurrent matrix keeps its singular values within a margin of 1.

    $$h_t = f(x_t W_x + h_{t-1} W + b), \qquad W = U S V^T, \qquad
    s_i = 2 m (\sigma(p_i) - \tfrac12) + 1$$

    with U and V orthogonal (thesis 2.41-2.42; Vorontsov et al. 2017). The singular values lie in
    [1 - m, 1 + m]; m = 0 is an orthogonal RNN. h_0 is trained.

    **Notes.** The authors keep U and V orthogonal by Cayley steps of a second, geodesic gradient descent. Here
    U = Q expm(A - A^T), V likewise, with Q fixed and A trained, so that they are orthogonal under every
    optimiser, momentum and clipping included, and need no optimiser of their own. The exponential is chosen
    because it reaches every rotation (the Cayley transform misses those with an eigenvalue -1) and is the
    identity to first order at the start; it is computed once for a sequence. With m = 0 V would be redundant
    and is left out. The authors divide the learning rate of p by 2m; Adam and RMSprop do that by themselves.
    With 128 units the exponentials and their gradients take several times as long as 100 steps of a batch of 32:
    in short sequences this cell is slow for its number of operations, in long ones it is not.

    >>> import jax
    >>> cell = SpectralRNN(3, 5, margin=0.1, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (5,)
    """

    input_weights: Float[Array, "input hidden"]  # W_x
    left: Orthogonal  # U
    right: Orthogonal | None  # V
    spectrum: Float[Array, " hidden"] | None  # p
    bias: Float[Array, " hidden"]  # b
    initial: Float[Array, " hidden"]  # h_0
    matrix: Float[Array, "hidden hidden"] | None  # W, once prepared
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    margin: float = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        margin: float = 0.1,
        activation: Activation = "tanh",
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `margin`: how far singular values may be from 1, between 0 and 1.
        - `activation`: f (the authors copy with the identity).
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require(0 <= margin <= 1, "margin", margin, "a margin between 0 and 1", "margin=0.1")
        require(activation in ACTIVATIONS, "activation", activation, "tanh, relu or identity", "activation='tanh'")
        input_key, left_key, right_key = jax.random.split(key, 3)
        self.input_weights = glorot_normal(input_key, input_size, hidden_size)
        self.left = Orthogonal(hidden_size, key=left_key)
        self.right = Orthogonal(hidden_size, key=right_key) if margin > 0 else None
        self.spectrum = jnp.zeros((hidden_size,)) if margin > 0 else None
        self.bias = jnp.zeros((hidden_size,))
        self.initial = jnp.zeros((hidden_size,))
        self.matrix = None
        self.input_size, self.output_size = input_size, hidden_size
        self.margin, self.activation = margin, activation

    def prepare(self) -> "SpectralRNN":
        (matrix,) = self.recurrent_matrices()
        return eqx.tree_at(lambda cell: cell.matrix, self, matrix, is_leaf=lambda x: x is None)

    def recurrent_matrices(self) -> tuple[Array, ...]:
        if self.right is None or self.spectrum is None:
            return (self.left.matrix(),)
        singular_values = 2 * self.margin * (jax.nn.sigmoid(self.spectrum) - 0.5) + 1
        return ((self.left.matrix() * singular_values[None]) @ self.right.matrix().T,)

    def init_state(self) -> RNNState:
        return RNNState(self.initial)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " hidden"]:
        return x @ self.input_weights + self.bias

    def step(
        self, state: RNNState, drive: Float[Array, " hidden"], *, key: Key = None
    ) -> tuple[RNNState, Float[Array, " hidden"]]:
        matrix = self.recurrent_matrices()[0] if self.matrix is None else self.matrix
        hidden = ACTIVATIONS[self.activation](drive + state.hidden @ matrix)
        return RNNState(hidden), hidden
