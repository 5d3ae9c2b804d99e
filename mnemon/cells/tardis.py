"""TARDIS: an LSTM with wormhole connections (thesis chapter 3)."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ..memory import choose, erase_and_add, gumbel_sigmoid, oneplus
from ._contract import AbstractCell, Key, split_key
from ._fixed import Fixed
from ._init import chrono_bias, glorot_normal, orthogonal, sparse_rows

_USAGE_EPSILON = 1e-5  # added to the variance of the read counts


class TARDISState(NamedTuple):
    """What TARDIS carries."""

    hidden: Float[Array, " hidden"]  # h_t
    cell: Float[Array, " hidden"]  # c_t
    content: Float[Array, "slots word"]  # C_t: micro-states
    filled: Int[Array, ""]  # how many slots have been written
    read: Float[Array, " address_and_word"]  # r_t
    read_weights: Float[Array, " slots"]  # w^r_t, one-hot
    write_weights: Float[Array, " slots"]  # w^w_t, one-hot
    read_counts: Float[Array, " slots"]  # how often each slot has been read
    reset_gates: Float[Array, "2"]  # alpha_t, beta_t
    log_probability: Float[Array, ""]  # of the slot that was read
    entropy: Float[Array, ""]  # of the distribution it was drawn from


class TARDIS(AbstractCell[TARDISState, Array]):
    r"""TARDIS: reads one slot of a memory of its own past states, and writes where it has read.

    $$\begin{aligned}
    M &= [A; C_{t-1}], \quad u_t = \mathrm{norm}(\textstyle\sum_{i<t} w^r_i) \\
    \pi_t[i] &= a^T \tanh(W_h^\gamma h_{t-1} + W_x^\gamma x_t + W_m^\gamma M[i] + W_u^\gamma u_t)
        - 100\, w^r_{t-1}[i] \\
    w^r_t &\sim \mathrm{softmax}(\pi_t), \quad r_t = M^T w^r_t \\
    f_t, i_t, o_t &= \sigma(W_h h_{t-1} + W_x x_t + W_r r_t) \\
    \alpha_t, \beta_t &= \text{gumbel-sigmoid}(w_h h_{t-1} + w_x x_t + w_r r_t) \\
    c_t &= f_t c_{t-1} + i_t \tanh(\alpha_t W'_h h_{t-1} + W'_x x_t + \beta_t W'_r r_t) \\
    h_t &= o_t \tanh(c_t), \quad y_t = \tanh(W_g [h_t, r_t] + b_g) \\
    C_t[j] &= W_m h_t, \quad j = t \text{ if } t \leq k, \text{ else } \arg\max w^r_t
    \end{aligned}$$

    (3.1-3.11; the readout after y is W^o.) The addresses A are random, sparse and `Fixed`. With a key the slot
    is sampled: `estimator="gumbel"` gives it the straight-through gradient of the Gumbel-softmax with inverse
    temperature \(1 + \mathrm{softplus}(w^\tau h_{t-1} + b^\tau)\) (3.18-3.19), `"reinforce"` none: an objective
    finds the log-probability in the state. Without a key the most likely slot is read, and gates have no noise.

    **Notes.** Algorithm 1 reads before it updates h, so h and M in 3.4 and h in 3.18 are those of step t - 1.
    Left open in the thesis: which parts have biases (here gates, addressing, output), `addressing_size`, the tanh
    of the output, the sparsity of A (3 entries), that no gradient goes through u. The sample of a Gumbel-softmax
    is its argmax, so it is one of softmax(pi). The authors' code has no addresses (`address_size=0`), a softmax
    of counts as usage (`usage="softmax"`), `last_read_penalty=0`, `temperature=1`, output h (`output="hidden"`),
    and gradients that reach the choice through the write (`write_gradient=True`). Not offered: its linear
    addressing, its matrices from c to the gates, its single Gumbel variable in the gates.

    >>> import jax
    >>> cell = TARDIS(3, 6, memory_slots=8, address_size=2, word_size=4, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape, state.write_weights.argmax()
    ((6,), Array(0, dtype=int32))
    """

    addresses: Fixed  # A
    input_weights: Float[Array, "input drive"]  # x rows of f | i | o | candidate | alpha, beta | W^gamma
    hidden_weights: Float[Array, "hidden drive"]  # h rows of the same
    read_weights: Float[Array, "address_and_word gates"]  # r rows of f | i | o | candidate | alpha, beta
    bias: Float[Array, " drive"]
    memory_weights: Float[Array, "address_and_word addressing"]  # W_m^gamma
    usage_weights: Float[Array, "slots addressing"]  # W_u^gamma
    score_weights: Float[Array, " addressing"]  # a
    temperature_weights: Float[Array, " hidden"] | None  # w^tau
    temperature_bias: Float[Array, ""] | None  # b^tau
    micro_weights: Float[Array, "hidden word"]  # W_m
    output_weights: Float[Array, "hidden_and_read output"] | None  # W_g
    output_bias: Float[Array, " output"] | None  # b_g
    temperature: Fixed | None  # of the Gumbel-softmax, if it is given
    gate_temperature: Fixed
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    estimator: Literal["gumbel", "reinforce"] = eqx.field(static=True)
    reset_gates: bool = eqx.field(static=True)
    usage: Literal["normalised", "softmax"] = eqx.field(static=True)
    last_read_penalty: float = eqx.field(static=True)
    write_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory_slots: int = 16,
        address_size: int = 4,
        word_size: int = 32,
        addressing_size: int = 32,
        estimator: Literal["gumbel", "reinforce"] = "gumbel",
        temperature: float | None = None,
        reset_gates: bool = True,
        gate_temperature: float = 0.3,
        usage: Literal["normalised", "softmax"] = "normalised",
        last_read_penalty: float = 100.0,
        write_gradient: bool = False,
        output: Literal["fusion", "hidden"] = "fusion",
        chrono: int | None = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h and c.
        - `memory_slots`: number k of slots.
        - `address_size`: size of the fixed address of a slot (the authors' code: 0).
        - `word_size`: size of a micro-state, less than `hidden_size`.
        - `addressing_size`: hidden size of the network that chooses a slot.
        - `estimator`: how the choice of a slot is learned.
        - `temperature`: of the Gumbel-softmax, instead of a learned one (the authors' code: 1); a schedule can set it.
        - `reset_gates`: the gates alpha and beta; without them both are 1.
        - `gate_temperature`: temperature of these gates; a schedule can set it.
        - `usage`: how read counts are normalised (the authors' code: softmax).
        - `last_read_penalty`: taken off the logit of the slot read last (the authors' code: 0).
        - `write_gradient`: gradients reach the choice through the write too (the authors' code: True).
        - `output`: a layer that sees h and r, or h itself (the authors' code: hidden).
        - `chrono`: longest dependency T_max for chrono initialisation; without it b_f begins at 1.
        - `key`: for the initial parameters.
        """
        require(memory_slots >= 2, "memory_slots", memory_slots, "two slots or more", "memory_slots=16")
        require(address_size >= 0, "address_size", address_size, "0 or more", "address_size=4")
        require(addressing_size >= 1, "addressing_size", addressing_size, "1 or more", "addressing_size=32")
        narrow = 1 <= word_size < hidden_size
        wanted = f"1 or more, and less than hidden_size={hidden_size}"
        require(narrow, "word_size", word_size, wanted, "word_size=32 with hidden_size=120")
        for name, value in [("temperature", temperature), ("gate_temperature", gate_temperature)]:
            require(value is None or value > 0, name, value, "a positive number", f"{name}=0.3")
        require(last_read_penalty >= 0, "last_read_penalty", last_read_penalty, "0 or more", "100")
        keys = jax.random.split(key, 11)
        gates, read_size = 4 * hidden_size + 2, address_size + word_size
        self.addresses = Fixed(sparse_rows(keys[0], memory_slots, address_size))
        self.input_weights = glorot_normal(keys[1], input_size, gates + addressing_size)
        rest = glorot_normal(keys[2], hidden_size, 2 + addressing_size)
        self.hidden_weights = jnp.concatenate([orthogonal(keys[3], hidden_size, blocks=4), rest], axis=1)
        self.read_weights = glorot_normal(keys[4], read_size, gates)
        forget = jnp.ones((hidden_size,)) if chrono is None else chrono_bias(keys[10], hidden_size, chrono)
        write = jnp.zeros((hidden_size,)) if chrono is None else -forget
        self.bias = jnp.pad(jnp.concatenate([forget, write]), (0, gates + addressing_size - 2 * hidden_size))
        self.memory_weights = glorot_normal(keys[5], read_size, addressing_size)
        self.usage_weights = glorot_normal(keys[6], memory_slots, addressing_size)
        self.score_weights = glorot_normal(keys[7], addressing_size, 1)[:, 0]
        learned = estimator == "gumbel" and temperature is None
        self.temperature_weights = jnp.zeros((hidden_size,)) if learned else None
        self.temperature_bias = jnp.zeros(()) if learned else None
        self.micro_weights = glorot_normal(keys[8], hidden_size, word_size)
        fusion, both = output == "fusion", hidden_size + read_size
        self.output_weights = glorot_normal(keys[9], both, hidden_size) if fusion else None
        self.output_bias = jnp.zeros((hidden_size,)) if fusion else None
        given = estimator == "gumbel" and temperature is not None
        self.temperature = Fixed(jnp.asarray(temperature, float), "temperature") if given else None
        self.gate_temperature = Fixed(jnp.asarray(gate_temperature, float), "gate_temperature")
        self.input_size, self.output_size = input_size, hidden_size
        self.estimator, self.write_gradient, self.reset_gates = estimator, write_gradient, reset_gates
        self.usage, self.last_read_penalty = usage, last_read_penalty

    def init_state(self) -> TARDISState:
        slots, word, dtype = len(self.usage_weights), self.micro_weights.shape[1], self.bias.dtype
        hidden, read = (jnp.zeros((size,), dtype) for size in (self.output_size, len(self.memory_weights)))
        content, zeros = jnp.zeros((slots, word), dtype), jnp.zeros((slots,), dtype)
        filled, gates = jnp.zeros((), jnp.int32), jnp.ones((2,), dtype)
        zero = jnp.zeros((), dtype)
        return TARDISState(hidden, hidden, content, filled, read, zeros, zeros, zeros, gates, zero, zero)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " drive"]:
        return x @ self.input_weights + self.bias

    def step(
        self, state: TARDISState, drive: Float[Array, " drive"], *, key: Key = None
    ) -> tuple[TARDISState, Float[Array, " output"]]:
        read_key, gate_key = split_key(key, 2)
        slots, gates = len(state.content), self.read_weights.shape[1]
        last_read = jax.lax.stop_gradient(state.read_weights)
        memory = jnp.concatenate([self.addresses.value, state.content], axis=1)
        from_hidden = state.hidden @ self.hidden_weights

        shared = drive[gates:] + from_hidden[gates:] + self._usage(state) @ self.usage_weights
        logits = jnp.tanh(memory @ self.memory_weights + shared[None]) @ self.score_weights
        logits = logits - self.last_read_penalty * last_read
        choice = choose(read_key, logits, self._inverse_temperature(state.hidden))
        read = choice.weights @ memory

        hidden, cell, reset = self._control(state, drive[:gates], from_hidden[:gates], read, gate_key)
        fill = jax.nn.one_hot(state.filled, slots, dtype=logits.dtype)
        write = jnp.where(state.filled < slots, fill, choice.weights)
        addressed = write if self.write_gradient else jax.lax.stop_gradient(write)
        micro = hidden @ self.micro_weights
        after = TARDISState(
            hidden=hidden,
            cell=cell,
            content=erase_and_add(state.content, addressed[None], jnp.ones_like(micro)[None], micro[None]),
            filled=jnp.minimum(state.filled + 1, slots),
            read=read,
            read_weights=choice.weights,
            write_weights=write,
            read_counts=state.read_counts + jax.lax.stop_gradient(choice.weights),
            reset_gates=reset,
            log_probability=choice.log_probability,
            entropy=choice.entropy,
        )
        if self.output_weights is None or self.output_bias is None:
            return after, hidden
        return after, jnp.tanh(jnp.concatenate([hidden, read]) @ self.output_weights + self.output_bias)

    def _usage(self, state: TARDISState) -> Float[Array, " slots"]:
        if self.usage == "softmax":
            return jax.nn.softmax(state.read_counts)
        centred = state.read_counts - jnp.mean(state.read_counts)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2) + _USAGE_EPSILON)

    def _inverse_temperature(self, hidden: Float[Array, " hidden"]) -> Float[Array, ""] | None:
        if self.temperature_weights is not None and self.temperature_bias is not None:
            return oneplus(hidden @ self.temperature_weights + self.temperature_bias)
        return None if self.temperature is None else 1.0 / self.temperature.value

    def _control(
        self,
        state: TARDISState,
        from_input: Float[Array, " gates"],
        from_hidden: Float[Array, " gates"],
        read: Float[Array, " address_and_word"],
        key: Key,
    ) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"], Float[Array, "2"]]:
        """The LSTM: h_t, c_t and the RESET gates."""
        from_read = read @ self.read_weights
        total = from_input + from_hidden + from_read
        n = self.output_size
        f, i, o = jnp.split(jax.nn.sigmoid(total[: 3 * n]), 3)
        reset = jnp.ones_like(total[-2:])
        if self.reset_gates:
            reset = gumbel_sigmoid(key, total[-2:], self.gate_temperature.value)
        past, new, memory = (part[3 * n : 4 * n] for part in (from_hidden, from_input, from_read))
        cell = f * state.cell + i * jnp.tanh(reset[0] * past + new + reset[1] * memory)
        return o * jnp.tanh(cell), cell, reset
