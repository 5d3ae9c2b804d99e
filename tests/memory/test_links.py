"""Temporal links against loops over pairs of slots, and what they mean."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from mnemon.memory import follow_links, mix_read_modes, update_links, update_precedence

HEADS, SLOTS = 2, 5


def test_links_and_precedence_are_their_equations():
    rng = np.random.default_rng(0)
    links, precedence = np.zeros((SLOTS, SLOTS)), np.zeros(SLOTS)
    with jax.enable_x64(True):
        fast_links, fast_precedence = jnp.asarray(links), jnp.asarray(precedence)
        for _ in range(4):
            w = 0.8 * rng.dirichlet(np.ones(SLOTS))
            after = np.zeros_like(links)
            for i in range(SLOTS):
                for j in range(SLOTS):
                    if i != j:
                        after[i, j] = (1 - w[i] - w[j]) * links[i, j] + w[i] * precedence[j]
            links, precedence = after, (1 - w.sum()) * precedence + w
            fast_links = update_links(fast_links, fast_precedence, jnp.asarray(w))
            fast_precedence = update_precedence(fast_precedence, jnp.asarray(w))
        np.testing.assert_allclose(fast_links, links, rtol=1e-12)
        np.testing.assert_allclose(fast_precedence, precedence, rtol=1e-12)
        reads = rng.dirichlet(np.ones(SLOTS), HEADS)
        forward, backward = follow_links(fast_links, jnp.asarray(reads))
    for head in range(HEADS):
        np.testing.assert_allclose(forward[head], links @ reads[head], rtol=1e-12)
        np.testing.assert_allclose(backward[head], links.T @ reads[head], rtol=1e-12)


def test_links_lead_to_the_next_and_the_previous_write():
    order = [3, 0, 4, 1]
    links, precedence = jnp.zeros((SLOTS, SLOTS)), jnp.zeros(SLOTS)
    for slot in order:
        write = jax.nn.one_hot(slot, SLOTS)
        links, precedence = update_links(links, precedence, write), update_precedence(precedence, write)
    for earlier, later in pairwise(order):
        forward, backward = follow_links(links, jax.nn.one_hot(jnp.array([earlier, later]), SLOTS))
        assert forward[0].argmax() == later
        assert forward[0].max() == 1
        assert backward[1].argmax() == earlier
        assert backward[1].max() == 1
    np.testing.assert_array_equal(jnp.diag(links), 0)
    np.testing.assert_array_equal(precedence, jax.nn.one_hot(order[-1], SLOTS))


def test_writing_the_same_slot_again_makes_no_link_to_itself():
    write = jax.nn.one_hot(2, SLOTS)
    links = update_links(jnp.zeros((SLOTS, SLOTS)), write, write)
    np.testing.assert_array_equal(links, 0)


def test_read_modes_choose_backward_content_forward():
    ways = jnp.eye(3, SLOTS)
    mixed = mix_read_modes(jnp.array([[0.2, 0.5, 0.3]]), *(way[None] for way in ways))
    np.testing.assert_allclose(mixed, [[0.2, 0.5, 0.3, 0, 0]], rtol=1e-6)
