"""Full-capacity unitary recurrent network (thesis 2.7)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._complex import real_form
from ._contract import Key
from ._exponential import Unitary
from ._unitary import AbstractUnitary, ComplexState


class FullURNN(AbstractUnitary):
    r"""Full-capacity uRNN: the recurrent matrix is any unitary matrix.

    $$z_t = h_{t-1} W + x_t V, \qquad h_t = \frac{z_t}{|z_t|} \mathrm{ReLU}(|z_t| + b), \qquad W^* W = I$$

    for row vectors in C^n (Wisdom et al. 2016). The output is [Re h_t | Im h_t], so twice as large as n. h_0
    is trained.

    **Notes.** The authors update W by Cayley steps with a learning rate of their own. Here W = Q expm(S) with
    Q a fixed random unitary matrix and S = -S^* trained, n^2 real parameters, so that W is unitary under every
    optimiser. 1e-5 keeps the division by |z| finite. The exponential costs as in
    [`SpectralRNN`][mnemon.cells.SpectralRNN]: it is computed once, so that it weighs on short sequences.
    An operation takes about 6 times as long as one of LSTM: a complex product is four real ones, and XLA has no fast
    code for it on CPUs.

    >>> import jax
    >>> cell = FullURNN(3, 5, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.imaginary.shape, y.shape
    ((5,), (10,))
    """

    unitary: Unitary  # W
    matrix: Float[Array, "two_hidden two_hidden"] | None  # W as a real matrix, once prepared

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: number n of complex units; the output is twice as large.
        - `key`: for the initial parameters.
        """
        input_key, unitary_key, bias_key, initial_key = jax.random.split(key, 4)
        super().__init__(input_size, hidden_size, input_key=input_key, bias_key=bias_key, initial_key=initial_key)
        self.unitary = Unitary(hidden_size, key=unitary_key)
        self.matrix = None

    def prepare(self) -> "FullURNN":
        (matrix,) = self.recurrent_matrices()
        return eqx.tree_at(lambda cell: cell.matrix, self, matrix, is_leaf=lambda x: x is None)

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return (real_form(self.unitary.matrix()),)

    def step(
        self, state: ComplexState, drive: Float[Array, " two_hidden"], *, key: Key = None
    ) -> tuple[ComplexState, Float[Array, " two_hidden"]]:
        matrix = self.recurrent_matrices()[0] if self.matrix is None else self.matrix
        z = drive + jnp.concatenate(state) @ matrix
        return self.activated(jax.lax.complex(*jnp.split(z, 2)))
