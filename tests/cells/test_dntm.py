"""What the parts of a D-NTM mean."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon._errors import BadValue
from mnemon.cells import DNTM, set_fixed

SLOTS, ADDRESS, WORD, HIDDEN = 6, 2, 4, 5
READ = ADDRESS + WORD
INPUTS = jax.random.normal(jax.random.key(3), (2, 8, 3))


def _cell(**options):
    sizes = {"memory_slots": SLOTS, "address_size": ADDRESS, "word_size": WORD}
    return DNTM(3, HIDDEN, **sizes, **options, key=jax.random.key(0))


def _pointing_at(row: int, **options):
    """A cell whose two heads want nothing but the address of `row`, erase all and ignore recent use."""
    cell = _cell(**options)
    addresses = jnp.tile(jnp.array([[-1.0, 0.0]]), (SLOTS + 1, 1)).at[row].set(jnp.array([1.0, 0.0]))
    wanted = jnp.zeros(READ).at[0].set(1.0)
    head = jnp.concatenate([wanted, jnp.array([1000.0, -1000.0])])  # key, strength, gate of recent use
    erase_all = jnp.concatenate([head, jnp.zeros(1), jnp.full(WORD, 1000.0), jnp.zeros(WORD)])
    gates = cell.controller.bias.size
    candidate_columns = jnp.arange(cell.input_weights.shape[1]) >= cell.input_weights.shape[1] - WORD
    kept = candidate_columns | (jnp.arange(cell.input_weights.shape[1]) < gates)
    written = jnp.arange(cell.write_head_weights.shape[1]) >= READ + 3 + WORD
    return eqx.tree_at(
        lambda c: (
            c.addresses,
            c.input_weights,
            c.read_head_weights,
            c.read_head_bias,
            c.write_head_weights,
            c.write_head_bias,
        ),
        cell,
        (
            addresses,
            cell.input_weights * kept[None],
            jnp.zeros_like(cell.read_head_weights),
            head,
            cell.write_head_weights * written[None],
            erase_all,
        ),
    )


@pytest.mark.parametrize("addressing", ["continuous", "discrete"])
def test_nop_leaves_everything_unchanged(addressing):
    cell = _pointing_at(0, addressing=addressing)
    content = jax.random.normal(jax.random.key(1), (2, SLOTS + 1, WORD)).at[:, 0].set(0.0)
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (2, *leaf.shape)), cell.init_state())
    result = unroll(cell, INPUTS, state=state._replace(content=0.1 * content))
    np.testing.assert_array_equal(result.state.content, 0.1 * content)
    np.testing.assert_array_equal(result.state.read, 0.0)
    np.testing.assert_array_equal(result.state.read_weights[:, 0], 1.0)
    np.testing.assert_array_equal(result.state.write_weights[:, 0], 1.0)


def test_a_word_goes_where_the_head_points_and_comes_back():
    cell = _pointing_at(4, order="write-read")
    result = unroll(cell, INPUTS, observe=lambda state: (state.content, state.read, state.hidden))
    content, read, hidden = result.observed
    others = np.delete(np.asarray(content), 4, axis=2)
    np.testing.assert_array_equal(others, 0.0)
    own = hidden @ cell.write_head_weights[:, -WORD:]
    from_input = 0.5 * INPUTS @ cell.input_weights[:, -WORD:]
    np.testing.assert_allclose(content[:, :, 4], jax.nn.relu(own + from_input), atol=1e-6)
    np.testing.assert_allclose(read[:, :, ADDRESS:], content[:, :, 4], atol=1e-6)
    np.testing.assert_allclose(read[:, :, :ADDRESS], np.broadcast_to(cell.addresses[4], (2, 8, ADDRESS)))


def test_the_address_part_is_trained_and_the_content_part_starts_at_zero():
    cell = _cell()
    gradient = eqx.filter_grad(lambda c: jnp.sum(unroll(c, INPUTS).outputs ** 2))(cell)
    assert np.all(np.any(np.asarray(gradient.addresses) != 0, axis=1)), "of every row, the NOP row among them"
    np.testing.assert_array_equal(cell.init_state().content, 0.0)


def test_recent_use_sends_a_head_elsewhere():
    """With an open gate and a key that never changes, the second discrete read is of another cell."""
    cell = _pointing_at(4, addressing="discrete")
    open_gate = cell.read_head_bias.at[-1].set(1000.0).at[-2].set(1.0)
    cell = eqx.tree_at(lambda c: c.read_head_bias, cell, open_gate)
    weights = unroll(cell, INPUTS[:1, :1], observe=lambda state: state.read_average).observed[0, 0]
    assert weights.argmax() == 4
    closed = unroll(_pointing_at(4, addressing="discrete"), INPUTS, observe=lambda s: s.read_weights).observed
    np.testing.assert_array_equal(np.asarray(closed).argmax(-1), 4)
    opened = unroll(cell, INPUTS, observe=lambda s: s.read_weights).observed
    assert len(np.unique(np.asarray(opened).argmax(-1))) > 1


def _observed(cell, key=None):
    def what(state):
        return state.read_weights, state.write_weights, state.log_probability, state.entropy

    return unroll(cell, INPUTS, key=key, observe=what)


def test_discrete_addressing_samples_with_a_key_and_takes_the_mode_without():
    cell = _cell(addressing="discrete")
    read, write, log_probability, entropy = _observed(cell, jax.random.key(1)).observed
    for weights in (read, write):
        assert set(np.unique(weights)) == {0.0, 1.0}
        np.testing.assert_array_equal(np.asarray(weights).sum(-1), 1.0)
    assert np.all(np.asarray(log_probability) < 0)
    most = 2 * np.log(SLOTS + 1)  # one read and one write
    assert np.all((np.asarray(entropy) > 0) & (np.asarray(entropy) < most))
    again = _observed(cell, jax.random.key(2)).observed[0]
    assert np.any(np.asarray(again) != np.asarray(read))
    np.testing.assert_array_equal(_observed(cell).observed[0], _observed(cell).observed[0])


def test_log_probability_is_of_all_choices_of_a_step():
    """In the first step every draw has the same distribution: frequencies are probabilities."""
    cell = _cell(addressing="discrete")
    draws = 4000
    x = jnp.broadcast_to(INPUTS[:1, :1], (draws, 1, 3))
    result = unroll(cell, x, key=jax.random.key(0))
    read = np.asarray(result.state.read_weights).argmax(-1)
    write = np.asarray(result.state.write_weights).argmax(-1)
    probability = np.exp(np.asarray(result.state.log_probability))
    for r, w in [(0, 0), (3, 5), (6, 2)]:
        chosen = (read == r) & (write == w)
        expected = probability[chosen].mean()
        np.testing.assert_allclose(chosen.mean(), expected, atol=4 * np.sqrt(expected / draws))


def test_curriculum_from_soft_to_discrete():
    key = jax.random.key(4)
    discrete = _cell(addressing="discrete")
    soft = set_fixed(discrete, soft_probability=1.0)
    np.testing.assert_allclose(_observed(soft, key).outputs, unroll(_cell(), INPUTS).outputs, atol=1e-6)
    np.testing.assert_array_equal(_observed(soft, key).observed[2], 0.0)
    half = set_fixed(discrete, soft_probability=0.5)
    x = jnp.zeros((400, 5, 3))
    read = unroll(half, x, key=key, observe=lambda state: state.read_weights).observed
    one_hot = (np.asarray(read).max(-1) == 1.0).mean()
    assert abs(one_hot - 0.5) < 4 * np.sqrt(0.25 / 2000)
    np.testing.assert_array_equal(_observed(soft).outputs, _observed(discrete).outputs)  # no key: the mode


def test_discrete_choices_pass_no_gradient_but_have_one_in_their_log_probability():
    cell = _cell(addressing="discrete", order="write-read")

    def of_outputs(cell):
        return jnp.sum(unroll(cell, INPUTS[:, :1], key=jax.random.key(0)).outputs)

    def of_log_probability(cell):
        return jnp.sum(unroll(cell, INPUTS[:, :1], key=jax.random.key(0)).state.log_probability)

    np.testing.assert_array_equal(eqx.filter_grad(of_outputs)(cell).read_head_weights, 0.0)
    assert np.any(np.asarray(eqx.filter_grad(of_log_probability)(cell).read_head_weights) != 0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("memory_slots", 0),
        ("word_size", 0),
        ("address_size", 0),
        ("hops", 0),
        ("soft_probability", 1.5),
        ("lru_decay", 1.0),
    ],
)
def test_bad_options_are_refused(option, value):
    with pytest.raises(BadValue, match=f"{option}={value} cannot work"):
        DNTM(3, 5, **{option: value}, key=jax.random.key(0))
