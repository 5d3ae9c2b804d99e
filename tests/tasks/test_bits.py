"""The tasks of bits mean what their papers say."""

import jax
import numpy as np
import pytest

from mnemon.tasks import AssociativeRecall, DynamicNGrams, NTMCopy, PrioritySort, RepeatCopy, make_task


def sampled(task, seed=0):
    """One episode as NumPy arrays, cut to its real steps."""
    episode = task.sample(jax.random.key(seed))
    length = int(episode.length)
    return [np.asarray(field)[:length] for field in (episode.inputs, episode.targets, episode.mask)]


@pytest.mark.parametrize("seed", range(4))
def test_copy_layout(seed):
    inputs, targets, mask = sampled(NTMCopy(max_length=5, min_length=2, bits=3), seed)
    rows = (len(inputs) - 1) // 2
    assert 2 <= rows <= 5
    np.testing.assert_array_equal(inputs[:, 3], np.arange(2 * rows + 1) == rows)
    np.testing.assert_array_equal(inputs[rows:, :3], 0.0)
    np.testing.assert_array_equal(targets[rows + 1 :], inputs[:rows, :3])
    np.testing.assert_array_equal(np.flatnonzero(mask), np.arange(rows + 1, 2 * rows + 1))


@pytest.mark.parametrize("seed", range(4))
def test_recall_layout(seed):
    task = AssociativeRecall(max_items=4, item_length=3, bits=6)
    inputs, targets, mask = sampled(task, seed)
    items = len(inputs) // 4 - 2
    assert 2 <= items <= 4
    assert len(inputs) == (3 + 1) * (items + 1) + 1 + 3
    np.testing.assert_array_equal(np.flatnonzero(inputs[:, 6]), 4 * np.arange(items))
    np.testing.assert_array_equal(np.flatnonzero(inputs[:, 7]), [4 * items, 4 * items + 4])
    shown = [inputs[4 * n + 1 : 4 * n + 4, :6] for n in range(items + 1)]
    (asked,) = [n for n in range(items - 1) if np.array_equal(shown[n], shown[items])]
    np.testing.assert_array_equal(targets[-3:], shown[asked + 1])
    np.testing.assert_array_equal(np.flatnonzero(mask), len(inputs) - 3 + np.arange(3))
    np.testing.assert_array_equal(inputs[-3:], 0.0)


def test_every_item_but_the_last_is_asked_for():
    task = AssociativeRecall(max_items=3, min_items=3, item_length=1, bits=16)
    episodes = task.batch(jax.random.key(0), 0, 300)
    rows = np.asarray(episodes.inputs)[:, 1::2, :16]  # three items, the query, the answer's silence
    asked = [np.flatnonzero((row[:3] == row[3]).all(axis=1))[0] for row in rows]
    counts = np.bincount(asked, minlength=3)
    assert counts[2] == 0
    assert counts[:2].min() > 100


@pytest.mark.parametrize("seed", range(4))
def test_repeat_copy_layout(seed):
    inputs, targets, mask = sampled(RepeatCopy(max_length=3, max_repeats=4, counted=7, bits=5), seed)
    rows = int(np.argmax(inputs[:, 5]))
    repeats = round(float(inputs[rows + 1, 6]) * 2.0 + 4.0)  # 1 to 7 has mean 4 and variance 4
    assert 1 <= rows <= 3
    assert 1 <= repeats <= 4
    assert len(inputs) == rows + 2 + rows * repeats + 1
    np.testing.assert_array_equal(targets[rows + 2 : -1, :5], np.tile(inputs[:rows, :5], (repeats, 1)))
    np.testing.assert_array_equal(np.flatnonzero(targets[:, 5]), [len(inputs) - 1])
    np.testing.assert_array_equal(np.flatnonzero(mask), np.arange(rows + 2, len(inputs)))


def test_a_count_looks_the_same_beyond_training():
    trained, tested = RepeatCopy(max_repeats=10), RepeatCopy(min_repeats=10, max_repeats=20)
    counts = {float(c) for c in np.asarray(trained.batch(jax.random.key(0), 0, 200).inputs)[..., 9].max(axis=1)}
    beyond = np.asarray(tested.batch(jax.random.key(0), 0, 200).inputs)[..., 9].max(axis=1)
    assert np.isclose(max(counts), beyond.min())


def test_priority_sort_layout():
    inputs, targets, mask = sampled(PrioritySort(items=6, answers=4, bits=9))
    order = np.argsort(-inputs[:6, 9])
    np.testing.assert_array_equal(targets[7:], inputs[order[:4], :9])
    np.testing.assert_array_equal(np.flatnonzero(inputs[:, 10]), [6])
    np.testing.assert_array_equal(np.flatnonzero(mask), np.arange(7, 11))
    assert np.abs(inputs[:6, 9]).max() <= 1.0


@pytest.mark.parametrize(
    "task", [NTMCopy(max_length=4), AssociativeRecall(), PrioritySort(), RepeatCopy(max_length=3, max_repeats=4)]
)
def test_chance_is_what_a_network_without_memory_scores(task):
    """Half for every bit; for a channel that marks the end, how often it does."""
    episodes = jax.jit(lambda key: task.batch(key, 0, 2000))(jax.random.key(0))
    logits = np.zeros(episodes.targets.shape, np.float32)
    if isinstance(task, RepeatCopy):
        often = float(np.mean(1.0 / np.asarray(episodes.mask).sum(axis=1)))
        logits[..., -1] = np.log(often / (1.0 - often))
    _, metrics = jax.jit(task.score)(logits, episodes)
    np.testing.assert_allclose(float(metrics["loss"]), task.chance["loss"], rtol=0.01)
    np.testing.assert_allclose(float(metrics["bit_error"]), task.chance["bit_error"], rtol=0.05)
    assert float(metrics["success"]) == 0.0


def test_bit_error_counts_wrong_bits():
    task = NTMCopy(max_length=4, min_length=4, bits=3)
    episode = task.sample(jax.random.key(0))
    outputs = task.oracle(episode).at[6, 1].multiply(-1.0).at[7, 2].multiply(-1.0).at[0, 0].multiply(-1.0)
    metrics = task.metrics(outputs, episode)
    assert float(metrics["bit_error"]) == 2.0
    assert float(metrics["success"]) == 0.0
    np.testing.assert_allclose(task.loss(outputs, episode), 2 * 100 / 12, rtol=1e-6)
    np.testing.assert_allclose(task.step_losses(outputs, episode)[5:], [0, 100 / 3, 100 / 3, 0], rtol=1e-6)


def test_ngram_oracle_counts_what_came_before():
    task = DynamicNGrams(length=40, context=2)
    episode = task.sample(jax.random.key(3))
    bits = np.append(np.asarray(episode.inputs)[:, 0], float(episode.targets[-1, 0])).astype(int)
    seen: dict[tuple[int, ...], list[int]] = {}
    for step in range(1, 39):
        before = seen.setdefault(tuple(bits[step - 1 : step + 1]), [])
        expected = (sum(before) + 0.5) / (len(before) + 1)
        np.testing.assert_allclose(jax.nn.sigmoid(task.oracle(episode)[step, 0]), expected, rtol=1e-5)
        before.append(bits[step + 1])
    np.testing.assert_array_equal(np.flatnonzero(episode.mask), np.arange(1, 39))


def test_ngram_source_depends_on_the_context_alone():
    task = DynamicNGrams(length=3000, context=1)
    bits = np.asarray(task.sample(jax.random.key(5)).inputs)[:, 0].astype(int)
    after_zero, after_one = bits[1:][bits[:-1] == 0], bits[1:][bits[:-1] == 1]
    assert abs(after_zero.mean() - after_one.mean()) > 0.05
    after_01, after_11 = (bits[2:][(bits[:-2] == first) & (bits[1:-1] == 1)] for first in (0, 1))
    assert abs(after_01.mean() - after_11.mean()) < 0.1


def test_ngram_optimum_is_the_published_one():
    """The paper's curves show about 133 bits; they count the five bits that nobody can predict."""
    perfect = DynamicNGrams().perfect
    assert 132.5 < perfect["bits"] + 5 < 134.0
    assert DynamicNGrams().chance["loss"] < np.log(2.0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ntm-copy", {"max_length": 3, "min_length": 4}, "max_length=3 cannot work: wanted at least min_length=4"),
        ("ntm-copy", {"bits": 0}, "bits=0"),
        ("associative-recall", {"min_items": 1}, "min_items=1 cannot work: wanted at least two items"),
        ("associative-recall", {"item_length": 0}, "item_length=0"),
        ("repeat-copy", {"min_repeats": 0}, "min_repeats=0"),
        ("repeat-copy", {"counted": 1}, "counted=1"),
        ("priority-sort", {"items": 5}, "items=5 cannot work: wanted at least answers=16"),
        ("dynamic-ngrams", {"length": 5}, "length=5"),
        ("dynamic-ngrams", {"context": 0}, "context=0"),
    ],
)
def test_bad_sizes(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_task(name, **options)
