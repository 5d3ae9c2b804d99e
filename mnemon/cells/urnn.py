"""Unitary evolution recurrent network (thesis 2.7)."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, Int, PRNGKeyArray

from ._complex import real_form
from ._contract import Key
from ._init import uniform
from ._unitary import AbstractUnitary, ComplexState


class Factors(NamedTuple):
    """The factors of the unitary matrix, computed once for a sequence."""

    phases: Complex[Array, "3 hidden"]  # the diagonals of D_1, D_2, D_3
    mirrors: Complex[Array, "2 hidden"]  # of R_1 and R_2, of length 1


class URNN(AbstractUnitary):
    r"""uRNN: the recurrent matrix is a product of simple unitary factors.

    $$\begin{aligned}
    W &= D_3 R_2 F^{-1} D_2 \Pi R_1 F D_1 \\
    z_t &= W h_{t-1} + V x_t \\
    h_t &= \frac{z_t}{|z_t|} \mathrm{ReLU}(|z_t| + b)
    \end{aligned}$$

    for column vectors in C^n (Arjovsky et al. 2016): D diagonal with entries of modulus 1,
    R = I - 2 v v^* / |v|^2 a reflection, F the unitary Fourier transform, Pi a fixed random permutation. The
    output is [Re h_t | Im h_t], so twice as large as n. h_0 is trained.

    **Notes.** 1e-5 is added to |z|, so that the division is finite; the authors' code adds it in the divisor
    only, which is the same with b smaller by 1e-5. All parameters are real. A step is two Fourier
    transforms and a few products of vectors: few operations, but each passes over the whole state, so that the
    cell is slower than its operations suggest.

    >>> import jax
    >>> cell = URNN(3, 5, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.imaginary.shape, y.shape
    ((5,), (10,))
    """

    angles: Float[Array, "3 hidden"]  # of the entries of D_1, D_2, D_3
    reflections: Float[Array, "2 2 hidden"]  # Re v, Im v of R_1 and R_2
    permutation: Int[Array, " hidden"]  # Pi
    factors: Factors | None  # once prepared

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: number n of complex units; the output is twice as large.
        - `key`: for the initial parameters.
        """
        keys = jax.random.split(key, 6)
        super().__init__(input_size, hidden_size, input_key=keys[0], bias_key=keys[4], initial_key=keys[5])
        self.angles = uniform(keys[1], (3, hidden_size), math.pi)
        self.reflections = uniform(keys[2], (2, 2, hidden_size), (6.0 / (2 + 2 * hidden_size)) ** 0.5)
        self.permutation = jax.random.permutation(keys[3], hidden_size)
        self.factors = None

    def prepare(self) -> "URNN":
        return eqx.tree_at(lambda cell: cell.factors, self, self._factors(), is_leaf=lambda x: x is None)

    def _factors(self) -> Factors:
        square = jnp.sum(self.reflections**2, axis=(1, 2), keepdims=True)
        # A vector of zeros reflects nothing.
        unit = self.reflections * jax.lax.rsqrt(jnp.where(square > 0, square, 1.0))
        return Factors(jnp.exp(1j * self.angles), jax.lax.complex(unit[:, 0], unit[:, 1]))

    def _transition(self, factors: Factors, h: Complex[Array, " hidden"]) -> Complex[Array, " hidden"]:
        """W h."""
        z = jnp.fft.fft(factors.phases[0] * h, norm="ortho")
        z = factors.phases[1] * _reflect(factors.mirrors[0], z)[self.permutation]
        z = jnp.fft.ifft(z, norm="ortho")
        return factors.phases[2] * _reflect(factors.mirrors[1], z)

    def recurrent_matrices(self) -> tuple[Array, ...]:
        factors = self._factors()
        rows = jax.vmap(lambda h: self._transition(factors, h))(jnp.eye(self.bias.size, dtype=factors.phases.dtype))
        return (real_form(rows),)

    def step(
        self, state: ComplexState, drive: Float[Array, " two_hidden"], *, key: Key = None
    ) -> tuple[ComplexState, Float[Array, " two_hidden"]]:
        factors = self._factors() if self.factors is None else self.factors
        turned = self._transition(factors, jax.lax.complex(*state))
        return self.activated(turned + jax.lax.complex(*jnp.split(drive, 2)))


def _reflect(mirror: Complex[Array, " hidden"], z: Complex[Array, " hidden"]) -> Complex[Array, " hidden"]:
    return z - 2 * jnp.vdot(mirror, z) * mirror
