"""Discrete choices: of a slot to access, or of a gate to open.

A choice can be learned in two ways. A score-function estimator (REINFORCE) needs its log-probability; the
choice itself has no gradient. A straight-through estimator gives it the gradient of a relaxed, soft choice.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require


def most_likely(logits: Float[Array, " slots"]) -> Float[Array, " slots"]:
    """The mode, one-hot; the first one where several are equal. No gradient."""
    return jax.nn.one_hot(jnp.argmax(logits), logits.size, dtype=logits.dtype)


def sample(key: PRNGKeyArray, logits: Float[Array, " slots"]) -> Float[Array, " slots"]:
    """One-hot, drawn from softmax(logits). No gradient."""
    return most_likely(logits + jax.random.gumbel(key, logits.shape, logits.dtype))


def log_probability(logits: Float[Array, " slots"], choice: Float[Array, " slots"]) -> Float[Array, ""]:
    """Logarithm of the probability of a one-hot choice under softmax(logits); no gradient in the choice."""
    return jax.lax.stop_gradient(choice) @ jax.nn.log_softmax(logits)


def entropy(logits: Float[Array, " slots"]) -> Float[Array, ""]:
    """Entropy of softmax(logits), in nats.

    >>> entropy(jnp.zeros(2)).round(4)
    Array(0.6931, dtype=float32)
    """
    return -jax.nn.softmax(logits) @ jax.nn.log_softmax(logits)


def straight_through(hard: Float[Array, "*shape"], soft: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The value of `hard`, exactly, with the gradient of `soft`."""
    return jax.lax.stop_gradient(hard) + (soft - jax.lax.stop_gradient(soft))


def gumbel_softmax(
    key: PRNGKeyArray, logits: Float[Array, " slots"], inverse_temperature: float | Float[Array, ""] = 1.0
) -> Float[Array, " slots"]:
    r"""One-hot, drawn from softmax(logits), with the gradient of the relaxed sample (straight-through).

    $$ \bar w = \mathrm{softmax}((\pi + \xi)\, \tau), \quad \xi_i \sim \mathrm{Gumbel}(0, 1), \quad
    w = \mathrm{onehot}(\arg\max \bar w) $$

    (thesis 3.19). The inverse temperature \(\tau\) may be an output of the network, see `oneplus` (3.18).
    """
    _require_positive("inverse_temperature", inverse_temperature)
    noisy = logits + jax.random.gumbel(key, logits.shape, logits.dtype)
    return straight_through(most_likely(noisy), jax.nn.softmax(noisy * inverse_temperature))


def gumbel_sigmoid(
    key: PRNGKeyArray | None, logits: Float[Array, "*shape"], temperature: float | Float[Array, ""] = 1.0
) -> Float[Array, "*shape"]:
    r"""A gate near 0 or 1: the relaxed sample of a Bernoulli variable with log-odds `logits`.

    $$ \sigma((\ell + \xi_1 - \xi_0) / T), \quad \xi_0, \xi_1 \sim \mathrm{Gumbel}(0, 1) $$

    The difference of two Gumbel variables is logistic. Without a key the noise is at its mean, zero.

    >>> gumbel_sigmoid(None, jnp.zeros(2), temperature=-1.0)
    Traceback (most recent call last):
    mnemon._errors.BadValue: temperature=-1.0 cannot work: wanted a positive number, e.g. temperature=0.3
    """
    _require_positive("temperature", temperature)
    if key is not None:
        logits = logits + jax.random.logistic(key, logits.shape, logits.dtype)
    return jax.nn.sigmoid(logits / temperature)


def _require_positive(name: str, value: float | Array) -> None:
    """Refuse what can be refused: a value that is being traced is positive by construction or not at all."""
    known = not isinstance(value, Tracer)
    require(not known or bool(value > 0), name, value, "a positive number", f"{name}=0.3")


class Choice(NamedTuple):
    """A weighting, and what an objective needs to learn it as a random choice."""

    weights: Float[Array, " slots"]
    log_probability: Float[Array, ""]  # of the choice; 0 if none was made
    entropy: Float[Array, ""]  # of the distribution


def choose(
    key: PRNGKeyArray | None,
    logits: Float[Array, " slots"],
    inverse_temperature: float | Float[Array, ""] | None = None,
) -> Choice:
    """A sampled slot, or without a key the most likely one.

    With an inverse temperature a sample has the gradient of its relaxation (`gumbel_softmax`), else none.
    """
    if key is None:
        weights = most_likely(logits)
    elif inverse_temperature is None:
        weights = sample(key, logits)
    else:
        weights = gumbel_softmax(key, logits, inverse_temperature)
    return Choice(weights, log_probability(logits, weights), entropy(logits))


def attend(logits: Float[Array, " slots"]) -> Choice:
    """All slots at once, by softmax: no choice is made."""
    return Choice(jax.nn.softmax(logits), jnp.zeros_like(logits[0]), entropy(logits))
