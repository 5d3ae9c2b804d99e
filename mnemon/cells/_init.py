"""Initialisers and small parts shared by the cells. Matrices are stored as [inputs, outputs]: `x @ W`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require


def glorot_normal(key: PRNGKeyArray, inputs: int, outputs: int, gain: float = 1.0) -> Float[Array, "i o"]:
    """Normal with standard deviation gain * sqrt(2 / (inputs + outputs))."""
    return gain * jnp.sqrt(2.0 / (inputs + outputs)) * jax.random.normal(key, (inputs, outputs))


def glorot_uniform(key: PRNGKeyArray, inputs: int, outputs: int, gain: float = 1.0) -> Float[Array, "i o"]:
    """Uniform in +-gain * sqrt(6 / (inputs + outputs))."""
    return uniform(key, (inputs, outputs), gain * (6.0 / (inputs + outputs)) ** 0.5)


def orthogonal(key: PRNGKeyArray, size: int, blocks: int = 1) -> Float[Array, "size columns"]:
    """`blocks` square orthogonal matrices side by side (one for each gate)."""
    matrices = jax.random.orthogonal(key, size, (blocks,))
    return jnp.concatenate(list(matrices), axis=-1)


def uniform(key: PRNGKeyArray, shape: tuple[int, ...], bound: float) -> Array:
    """Uniform in [-bound, bound]."""
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def chrono_bias(key: PRNGKeyArray, size: int, horizon: int) -> Float[Array, " size"]:
    """Forget-gate biases log U[1, horizon - 1] (thesis eq. 2.28): time constants up to `horizon`."""
    require(horizon >= 2, "chrono", horizon, "a longest dependency of 2 or more", "chrono=120")
    return jnp.log(jax.random.uniform(key, (size,), minval=1.0, maxval=float(horizon - 1)))


def sparse_rows(
    key: PRNGKeyArray, rows: int, columns: int, *, std: float = 1.0, nonzero: int = 3
) -> Float[Array, "rows columns"]:
    """Random vectors, each with `nonzero` entries from a normal distribution (all, if it has no more) and zeros."""
    place_key, value_key = jax.random.split(key)
    places = jax.vmap(lambda k: jax.random.permutation(k, columns))(jax.random.split(place_key, rows))
    return jnp.where(places < nonzero, std * jax.random.normal(value_key, (rows, columns)), 0.0)


class Feedforward(eqx.Module):
    """A controller without a state, which stands where a recurrent cell can: h_t = tanh(x_t W + b)."""

    input_weights: Float[Array, "input hidden"]
    bias: Float[Array, " hidden"]

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        self.input_weights = glorot_normal(key, input_size, hidden_size)
        self.bias = jnp.zeros((hidden_size,))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " hidden"]:
        return x @ self.input_weights + self.bias

    def step(self, state: Any, drive: Float[Array, " hidden"]) -> tuple[Any, Float[Array, " hidden"]]:
        return state, jnp.tanh(drive)


def dropout(values: Float[Array, " size"], rate: float, key: PRNGKeyArray | None) -> Float[Array, " size"]:
    """With a key, each value zero with probability `rate`, the others larger by as much as keeps the mean."""
    if key is None or rate == 0:
        return values
    return jnp.where(jax.random.bernoulli(key, rate, values.shape), 0.0, values / (1 - rate))


def require_dropout(rate: float) -> None:
    """Refuse rates of recurrent dropout that are no probabilities below 1."""
    require(0 <= rate < 1, "recurrent_dropout", rate, "a probability below 1", "recurrent_dropout=0.1")


def standardise(x: Float[Array, " size"], eps: float = 1e-5) -> Float[Array, " size"]:
    """Layer normalisation without gain and shift: mean 0, variance 1; a constant vector gives zero."""
    centred = x - jnp.mean(x)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2) + eps)


class LayerNorm(eqx.Module):
    """Layer normalisation over a vector: gain * (x - mean) / sqrt(var + eps) + shift (thesis 2.75-2.77)."""

    gain: Float[Array, " size"]
    shift: Float[Array, " size"]
    eps: float = eqx.field(static=True)

    def __init__(self, size: int, *, gain: float = 1.0, eps: float = 1e-5):
        self.gain = jnp.full((size,), gain)
        self.shift = jnp.zeros((size,))
        self.eps = eps

    def __call__(self, x: Float[Array, " size"]) -> Float[Array, " size"]:
        return self.gain * standardise(x, self.eps) + self.shift
