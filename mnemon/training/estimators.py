"""Learning discrete choices: REINFORCE with a running baseline, the auxiliary reward.

A cell that makes discrete choices has their log-probability and entropy in its state
(`unroll(..., observe=lambda state: (state.log_probability, state.read))`). With the reward of each step, such
as the log-likelihood of its prediction, that is all these functions need.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .._errors import require
from ..cells._init import glorot_normal


class Baseline(NamedTuple):
    """Running statistics over updates, which centre and scale the learning signal."""

    reward: Float[Array, ""]  # b, mean reward of a step
    variance: Float[Array, ""]  # of the learning signal

    @classmethod
    def start(cls) -> "Baseline":
        """Before the first update."""
        return cls(jnp.zeros(()), jnp.zeros(()))


def discounted_returns(rewards: Float[Array, "batch time"], discount: float) -> Float[Array, "batch time"]:
    r"""\(\sum_{j \geq t} \gamma^{j-t} R_j\) for each step.

    >>> discounted_returns(jnp.array([[1.0, 0.0, 4.0]]), 0.5)
    Array([[2., 2., 4.]], dtype=float32)
    """
    require(0.0 <= discount <= 1.0, "discount", discount, "a number from 0 to 1", "discount=0.95")

    def step(later, reward):
        total = reward + discount * later
        return total, total

    _, returns = jax.lax.scan(step, jnp.zeros_like(rewards[:, 0]), rewards.T, reverse=True)
    return returns.T


def reinforce(
    log_probabilities: Float[Array, "batch time"],
    rewards: Float[Array, "batch time"],
    baseline: Baseline,
    *,
    discount: float = 1.0,
    decay: float = 0.9,
    rewarded: Bool[Array, "batch time"] | None = None,
) -> tuple[Float[Array, ""], Baseline]:
    r"""The REINFORCE loss of a batch, and the baseline for the next one.

    $$ L = -\frac{1}{N} \sum_{i,t} \hat R_t^{(i)} \log p(w_t^{(i)}), \qquad
    \hat R_t = \frac{1}{\max(1, \sigma)} \sum_{j \geq t} \gamma^{j-t} (R_j - b) $$

    (thesis 3.16, with the variance normalisation of Mnih & Gregor 2014). No gradient goes through the rewards.
    b and \(\sigma^2\) are running averages over the batches before this one, so that the estimate has no bias
    but the scale \(1 / \max(1, \sigma)\).

    **Arguments:**

    - `log_probabilities`: of the choices made in each step.
    - `rewards`: of each step.
    - `baseline`: `Baseline.start()`, then what the last call returned.
    - `discount`: \(\gamma\).
    - `decay`: of the running averages.
    - `rewarded`: the steps whose rewards count, by default all. Choices after the last of them are not
      learned, so padding needs no mask of its own.
    """
    require(0.0 <= decay < 1.0, "decay", decay, "0 or more, below 1", "decay=0.9")
    rewarded = jnp.ones(rewards.shape, bool) if rewarded is None else rewarded
    rewards = jax.lax.stop_gradient(rewards)
    signal = discounted_returns(jnp.where(rewarded, rewards - baseline.reward, 0.0), discount)
    reward = jnp.sum(jnp.where(rewarded, rewards, 0.0)) / jnp.maximum(jnp.sum(rewarded), 1)
    learned = discounted_returns(rewarded.astype(rewards.dtype), discount) > 0  # a reward can still come
    variance = jnp.sum(signal**2) / jnp.maximum(jnp.sum(learned), 1)
    scaled = signal / jnp.maximum(1.0, jnp.sqrt(baseline.variance))
    loss = -jnp.mean(jnp.sum(scaled * log_probabilities, axis=1))
    return loss, Baseline(
        decay * baseline.reward + (1.0 - decay) * reward, decay * baseline.variance + (1.0 - decay) * variance
    )


class AuxiliaryReadout(eqx.Module):
    r"""A prediction from what was read and the input alone (thesis 3.17): \(W_r^o r_t + W_x^o x_t\).

    Its log-likelihood is a reward that the controller cannot earn without its memory. Minimising its loss
    trains only its own two matrices, as no gradient goes to r and x. It also shows how much of an answer is
    in the memory (thesis 3.6).

    >>> import jax
    >>> readout = AuxiliaryReadout(6, 3, 2, key=jax.random.key(0))
    >>> readout(jnp.ones((4, 9, 6)), jnp.ones((4, 9, 3))).shape
    (4, 9, 2)
    """

    read_weights: Float[Array, "read output"]  # W_r^o
    input_weights: Float[Array, "input output"]  # W_x^o

    def __init__(self, read_size: int, input_size: int, output_size: int, *, key: PRNGKeyArray):
        """**Arguments:**

        - `read_size`: size of r, the `read` of the state of a memory cell.
        - `input_size`: size of x.
        - `output_size`: size of the prediction, as that of the readout of the model.
        - `key`: for the initial parameters.
        """
        read_key, input_key = jax.random.split(key)
        self.read_weights = glorot_normal(read_key, read_size, output_size)
        self.input_weights = glorot_normal(input_key, input_size, output_size)

    def __call__(
        self, read: Float[Array, "*batch read"], x: Float[Array, "*batch input"]
    ) -> Float[Array, "*batch output"]:
        """Predictions, as those of the readout of the model."""
        read, x = jax.lax.stop_gradient((read, x))
        return read @ self.read_weights + x @ self.input_weights
