"""Orthogonal and unitary matrices as products of plane rotations (Jing et al. 2017); no matrix is built."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, PRNGKeyArray

from .._errors import require
from ._init import uniform

POWERS_OF_TWO: Sequence[int] = [2**n for n in range(1, 16)]

Coefficient = Float[Array, "layers size"] | Complex[Array, "layers size"]
Vector = Float[Array, " size"] | Complex[Array, " size"]


Block = Float[Array, "high low mixed mixed"] | Complex[Array, "high low mixed mixed"]

# So many layers of the FFT style are one product with small blocks, which processors do faster than the layers
# one after another. It is a constant: with n entries the cost stays O(n log n).
_LAYERS_OF_A_BLOCK = 5


class Layers(NamedTuple):
    """Layer l takes h to `own[l] * h + other[l] * partner(h)`; `partner` swaps the entries of each pair."""

    own: Coefficient
    other: Coefficient


class Turn(NamedTuple):
    """What a product of rotations does to a vector, computed once from its angles."""

    layers: Layers | None  # with a capacity
    blocks: tuple[Block, ...]  # without
    diagonal: Complex[Array, " size"] | None


class Rotations(eqx.Module):
    r"""A product of layers of rotations, each layer turning disjoint pairs of entries.

    $$\begin{pmatrix} h_a' \\ h_b' \end{pmatrix} =
    \begin{pmatrix} \cos\theta & -e^{i\phi} \sin\theta \\ \sin\theta & e^{i\phi} \cos\theta \end{pmatrix}
    \begin{pmatrix} h_a \\ h_b \end{pmatrix}$$

    With `capacity=None` the layers are those of a fast Fourier transform: layer l pairs entries that are
    size / 2^(l+1) apart, so log2(size) layers mix all entries. With a capacity there are so many layers, which
    pair neighbours (0, 1), (2, 3), ... and (1, 2), (3, 4), ... in turn; capacity = size reaches every rotation.
    Real layers have phi = 0; complex ones end with a diagonal of phases.
    """

    angles: Float[Array, "rows pairs"]  # theta
    phases: Float[Array, "rows pairs"] | None  # phi
    diagonal: Float[Array, " size"] | None  # omega
    size: int = eqx.field(static=True)
    capacity: int | None = eqx.field(static=True)

    def __init__(self, size: int, *, capacity: int | None = None, complex_valued: bool, key: PRNGKeyArray):
        if capacity is None:
            below = max(2 ** (max(size, 1).bit_length() - 1), 2)
            require(
                size == below,
                "hidden_size",
                size,
                "a power of two for FFT-style rotations, or a `capacity`",
                f"hidden_size={below} or hidden_size={2 * below}",
            )
            shape = (size.bit_length() - 1, size // 2)
        else:
            near = max(size // 2 * 2, 2)
            require(
                size >= 2 and size % 2 == 0,
                "hidden_size",
                size,
                "an even size, whose entries can be paired",
                f"hidden_size={near} or hidden_size={near + 2}",
            )
            require(
                capacity % 2 == 0 and 2 <= capacity <= size,
                "capacity",
                capacity,
                f"an even number of layers from 2 to the size, {size}",
                "capacity=2",
            )
            # A row of angles is for a layer of size / 2 pairs and one of size / 2 - 1 pairs.
            shape = (capacity // 2, size - 1)
        angle_key, phase_key, diagonal_key = jax.random.split(key, 3)
        self.angles = uniform(angle_key, shape, math.pi)
        self.phases = uniform(phase_key, shape, math.pi) if complex_valued else None
        self.diagonal = uniform(diagonal_key, (size,), math.pi) if complex_valued else None
        self.size, self.capacity = size, capacity

    def turn(self) -> Turn:
        """What does not depend on the vector."""
        diagonal = None if self.diagonal is None else jnp.exp(1j * self.diagonal)
        layers = self._layers()
        if self.capacity is None:
            return Turn(None, tuple(_blocks(layers)), diagonal)
        return Turn(layers, (), diagonal)

    def _layers(self) -> Layers:
        phase = jnp.ones_like(self.angles) if self.phases is None else jnp.exp(1j * self.phases)
        cos, sin = jnp.cos(self.angles).astype(phase.dtype), jnp.sin(self.angles).astype(phase.dtype)
        # What the first and the second entry of each pair take of themselves, and of each other.
        blocks = jnp.stack([jnp.stack([cos, phase * cos]), jnp.stack([-phase * sin, sin])])
        if self.capacity is None:
            layers = [blocks[:, :, row].reshape(2, 2, 2**row, -1) for row in range(len(self.angles))]
            own, other = jnp.stack([jnp.swapaxes(layer, 1, 2).reshape(2, -1) for layer in layers], 1)
        else:
            even, odd = jnp.split(jnp.moveaxis(blocks, 1, 3), [self.size // 2], axis=2)
            even, odd = even.reshape(2, -1, self.size), odd.reshape(2, -1, self.size - 2)
            # The first and the last entry stay as they are in the second layer: they take 1 of themselves.
            ends = jnp.broadcast_to(jnp.array([[[1.0]], [[0.0]]], odd.dtype), (2, len(self.angles), 1))
            odd = jnp.concatenate([ends, odd, ends], axis=2)
            own, other = jnp.stack([even, odd], 2).reshape(2, -1, self.size)
        return Layers(own, other)

    def __call__(self, turn: Turn, vector: Vector) -> Vector:
        """The product with a vector."""
        for block in turn.blocks:
            high, low, mixed, _ = block.shape
            vector = jnp.einsum("hkl,hlkm->hml", vector.reshape(high, mixed, low), block).reshape(-1)
        if turn.layers is not None:
            pairs = jax.tree.map(lambda leaf: leaf.reshape(-1, 2, self.size), turn.layers)
            vector, _ = jax.lax.scan(_two_layers, vector, pairs)
        return vector if turn.diagonal is None else turn.diagonal * vector

    def matrix(self) -> Float[Array, "size size"] | Complex[Array, "size size"]:
        """The matrix that this product stands for, for row vectors."""
        turn = self.turn()
        dtype = self.angles.dtype if turn.diagonal is None else turn.diagonal.dtype
        return jax.vmap(lambda row: self(turn, row))(jnp.eye(self.size, dtype=dtype))


def _blocks(layers: Layers) -> Iterator[Block]:
    """Groups of FFT-style layers as small dense matrices: a group mixes only the entries whose indices differ in
    the bits that its layers pair, one matrix for each value of the higher and the lower bits.
    """
    count, size = layers.own.shape
    groups = math.ceil(count / _LAYERS_OF_A_BLOCK)
    ends = [count * (group + 1) // groups for group in range(groups)]
    for start, end in zip([0, *ends], ends, strict=False):
        high, mixed, low = 2**start, 2 ** (end - start), size // 2**end
        rows = jnp.eye(mixed, dtype=layers.own.dtype)[:, None, :, None]
        rows = jnp.broadcast_to(rows, (mixed, high, mixed, low)).reshape(mixed, size)
        for layer in range(start, end):
            swapped = jax.vmap(partial(_swap, blocks=2**layer))(rows)
            rows = layers.own[layer][None] * rows + layers.other[layer][None] * swapped
        yield rows.reshape(mixed, high, mixed, low).transpose(1, 3, 0, 2)


def _two_layers(vector: Vector, pair: Layers) -> tuple[Vector, None]:
    """One layer on the pairs (0, 1), (2, 3), ..., then one on (1, 2), (3, 4), ..."""
    own, other = pair
    vector = own[0] * vector + other[0] * _swap(vector, vector.size // 2)
    shifted = jnp.roll(_swap(jnp.roll(vector, -1), vector.size // 2), 1)
    return own[1] * vector + other[1] * shifted, None


def _swap(vector: Vector, blocks: int) -> Vector:
    """Cut a vector in blocks and swap the halves of each."""
    return jnp.flip(vector.reshape(blocks, 2, -1), axis=1).reshape(-1)
