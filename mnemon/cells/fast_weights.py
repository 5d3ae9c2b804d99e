"""Fast weights as attention to the recent past (Ba et al. 2016)."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._apart import apart
from .._errors import require
from ._contract import AbstractCell, Key
from ._init import LayerNorm, uniform
from .rnn import ACTIVATIONS


class MatrixState(NamedTuple):
    """What the matrix form carries."""

    hidden: Float[Array, " hidden"]  # h_t
    fast: Float[Array, "hidden hidden"]  # A_t, symmetric


class AttentionState(NamedTuple):
    """What the attention form carries."""

    past: Float[Array, "max_steps hidden"]  # h_t, h_{t-1}, ..., zero before the first step

    @property
    def hidden(self) -> Float[Array, " hidden"]:
        """h_t."""
        return self.past[0]


class FastWeights(AbstractCell[MatrixState | AttentionState, Array]):
    r"""An RNN that, at each step, settles for S inner steps under a matrix of its own recent states.

    $$\begin{aligned}
    z_t &= x_t C + h_{t-1} W + b, \qquad h_t^0 = f(z_t) \\
    h_t^{s+1} &= f(\mathrm{LN}(z_t + A_{t-1} h_t^s)), \qquad h_t = h_t^S \\
    A_t &= \lambda A_{t-1} + \eta\, h_t h_t^T
    \end{aligned}$$

    The matrix need not exist (`form="attention"`): its product with a vector is attention to the past states,

    $$A_{t-1} h = \eta \sum_{\tau < t} \lambda^{t-1-\tau} h_\tau (h_\tau^T h).$$

    **Notes.** The paper normalises the whole sum, at each inner step (`layer_norm="sum"`). The report prints
    $h_t^{s+1} = f(\mathrm{LN}(z_t) + A_{t-1} h_t^s)$, with $h_t^0 = f(\mathrm{LN}(z_t))$ (`"slow"`); nothing then
    bounds a state that A amplifies. The paper leaves open whether $h_t^0$ is normalised: not here, unless
    `normalise_start` (as in public code, with a gain and a shift of its own). With S = 0 the cell is a plain RNN.

    The attention form keeps the last `max_steps` states. Up to `max_steps` steps from the start it is exact; later
    the states older than that are forgotten, where A would weigh them with $\lambda^{max_steps}$ or less.
    `form="auto"` takes it when `max_steps` is given and less than the hidden size, where it is the cheaper one in
    time and in memory.

    >>> import jax
    >>> cell = FastWeights(3, 50, max_steps=11, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> cell.form, state.past.shape
    ('attention', (11, 50))
    """

    input_weights: Float[Array, "input hidden"]  # C
    recurrent_weights: Float[Array, "hidden hidden"]  # W
    bias: Float[Array, " hidden"]  # b
    norm: LayerNorm | None
    start_norm: LayerNorm | None
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    inner_steps: int = eqx.field(static=True)
    decay: float = eqx.field(static=True)
    rate: float = eqx.field(static=True)
    layer_norm: Literal["sum", "slow", "none"] = eqx.field(static=True)
    activation: Literal["tanh", "relu"] = eqx.field(static=True)
    form: Literal["matrix", "attention"] = eqx.field(static=True)
    max_steps: int | None = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        inner_steps: int = 1,
        decay: float = 0.95,
        rate: float = 0.5,
        layer_norm: Literal["sum", "slow", "none"] = "sum",
        normalise_start: bool = False,
        activation: Literal["tanh", "relu"] = "relu",
        recurrent_scale: float = 0.05,
        form: Literal["auto", "matrix", "attention"] = "auto",
        max_steps: int | None = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `inner_steps`: S.
        - `decay`: lambda (the paper: 0.95, and 0.9 for associative retrieval).
        - `rate`: eta.
        - `layer_norm`: normalise the whole sum, only the slow part, or nothing.
        - `normalise_start`: normalise also z for the first inner state.
        - `activation`: f.
        - `recurrent_scale`: W starts as this times the identity.
        - `form`: build the matrix A, or attend to the stored states.
        - `max_steps`: number of steps of the longest sequence; how many states the attention form keeps.
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=50")
        require(inner_steps >= 0, "inner_steps", inner_steps, "no or some inner steps", "inner_steps=1")
        require(0 <= decay <= 1, "decay", decay, "a fraction to keep, from 0 to 1", "decay=0.95")
        require(rate >= 0, "rate", rate, "a rate of 0 or more", "rate=0.5")
        norms = ("sum", "slow", "none")
        require(layer_norm in norms, "layer_norm", layer_norm, f"one of {', '.join(norms)}", "layer_norm='sum'")
        require(activation in ACTIVATIONS, "activation", activation, "tanh or relu", "activation='relu'")
        forms = ("auto", "matrix", "attention")
        require(form in forms, "form", form, f"one of {', '.join(forms)}", "form='auto'")
        require(
            max_steps is None or max_steps >= 1, "max_steps", max_steps, "a positive number of steps", "max_steps=11"
        )
        require(
            form != "attention" or max_steps is not None,
            "max_steps",
            max_steps,
            "the number of steps of the longest sequence, which the attention form has to keep",
            "max_steps=11",
        )
        self.input_weights = uniform(key, (input_size, hidden_size), hidden_size**-0.5)
        self.recurrent_weights = recurrent_scale * jnp.eye(hidden_size)
        self.bias = jnp.zeros((hidden_size,))
        self.norm = None if layer_norm == "none" else LayerNorm(hidden_size)
        self.start_norm = LayerNorm(hidden_size) if normalise_start else None
        self.input_size, self.output_size = input_size, hidden_size
        self.inner_steps, self.decay, self.rate = inner_steps, decay, rate
        self.layer_norm, self.activation = layer_norm, activation
        attend = max_steps is not None and max_steps < hidden_size
        self.form = ("attention" if attend else "matrix") if form == "auto" else form
        self.max_steps = max_steps

    def init_state(self) -> MatrixState | AttentionState:
        if self.form == "attention":
            return AttentionState(jnp.zeros((self.max_steps, self.output_size), self.bias.dtype))
        return MatrixState(jnp.zeros_like(self.bias), jnp.zeros_like(self.recurrent_weights))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " hidden"]:
        return x @ self.input_weights + self.bias

    def step(
        self, state: MatrixState | AttentionState, drive: Float[Array, " hidden"], *, key: Key = None
    ) -> tuple[MatrixState | AttentionState, Float[Array, " hidden"]]:
        activate = ACTIVATIONS[self.activation]
        slow = drive + state.hidden @ self.recurrent_weights
        if self.norm is not None and self.layer_norm == "slow":
            slow = self.norm(slow)
        hidden = activate(slow if self.start_norm is None else self.start_norm(slow))
        for _ in range(self.inner_steps):
            total = slow + self._recall(state, hidden)
            if self.norm is not None and self.layer_norm == "sum":
                total = self.norm(total)
            hidden = activate(total)
        return self._store(state, hidden), hidden

    def _recall(self, state: MatrixState | AttentionState, hidden: Float[Array, " hidden"]) -> Float[Array, " hidden"]:
        """A h."""
        if isinstance(state, MatrixState):
            return hidden @ state.fast
        ages = jnp.arange(self.max_steps, dtype=hidden.dtype)
        return (self.rate * self.decay**ages * (state.past @ hidden)) @ state.past

    def _store(
        self, state: MatrixState | AttentionState, hidden: Float[Array, " hidden"]
    ) -> MatrixState | AttentionState:
        if isinstance(state, MatrixState):
            return MatrixState(hidden, self.decay * state.fast + self.rate * jnp.outer(hidden, apart(hidden)))
        return AttentionState(jnp.concatenate([hidden[None], state.past[:-1]]))
