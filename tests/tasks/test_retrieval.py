"""The retrieval tasks of the fast-weight papers mean what their papers say."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.tasks import AssociativeRetrieval, Seq2SeqRetrieval, make_task


@pytest.mark.parametrize("seed", range(4))
def test_retrieval_layout(seed):
    task = AssociativeRetrieval(pairs=5)
    inputs, answer = (line[5:] for line in task.show(task.sample(jax.random.key(seed))).splitlines())
    pairs = re.fullmatch(r"((?:[a-z][0-9]){5})\?\?([a-z])", inputs)
    assert pairs is not None
    known = dict(zip(pairs[1][::2], pairs[1][1::2], strict=True))
    assert len(known) == 5
    assert answer == known[pairs[2]].rjust(len(inputs))


def test_retrieval_scores_the_last_step_alone():
    episodes = AssociativeRetrieval().batch(jax.random.key(0), 0, 3)
    np.testing.assert_array_equal(np.asarray(episodes.mask).sum(axis=0), [0] * 10 + [3])


def test_digits_repeat_but_letters_do_not():
    inputs = np.asarray(AssociativeRetrieval(pairs=8).batch(jax.random.key(0), 0, 50).inputs)
    distinct = [(len(set(row[0:16:2])), len(set(row[1:16:2]))) for row in inputs]
    assert all(letters == 8 for letters, _ in distinct)
    assert any(digits < 8 for _, digits in distinct)


def test_digits_can_be_made_to_differ():
    episodes = AssociativeRetrieval(pairs=8, distinct_digits=True).batch(jax.random.key(0), 0, 50)
    assert all(len(set(row[1:16:2])) == 8 for row in np.asarray(episodes.inputs))
    assert len(set(np.asarray(episodes.targets)[:, -1])) == 10
    with pytest.raises(ValueError, match="pairs=11 cannot work"):
        AssociativeRetrieval(pairs=11, distinct_digits=True)


@pytest.mark.parametrize(("split", "examples"), [("train", 100_000), ("valid", 10_000), ("test", 20_000)])
def test_fixed_sets_are_fixed(split, examples):
    task = AssociativeRetrieval(split=split)
    assert task.epoch(128) == -(-examples // 128)
    first, again = (task.batch(jax.random.key(seed), 0, 4).inputs for seed in (0, 1))
    if split == "train":
        assert np.any(np.asarray(first) != np.asarray(again))
    else:
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(task.batch(jax.random.key(0), examples // 4, 4).inputs, first)
        assert np.any(np.asarray(task.batch(jax.random.key(0), 1, 4).inputs) != np.asarray(first))


def test_fixed_sets_differ():
    train, test = (AssociativeRetrieval(split=split).example(0).inputs for split in ("train", "test"))
    assert np.any(np.asarray(train) != np.asarray(test))


@pytest.mark.parametrize(("split", "queries", "stated"), [("train", 100_000, 5.75e6), ("test", 5_000, 287_500)])
def test_dialogue_has_the_stated_statistics(split, queries, stated):
    """The paper says roughly 5.7 million and 288,000 characters, 15 different ones."""
    task = Seq2SeqRetrieval(split=split)
    text, answers = np.asarray(task.text), np.asarray(task.answers)
    assert abs(len(text) / stated - 1.0) < 0.02
    assert set(np.unique(text)) == set(range(15))
    assert (answers > 0).sum() == queries
    assert np.bincount(answers, minlength=15)[9:].sum() == 0
    assert np.bincount(answers)[1:].min() > 0.11 * queries


def test_every_answer_is_the_latest_value_of_its_key():
    task = Seq2SeqRetrieval(split="valid", segment=1)
    names = " abcdefghSQ(),."
    text = "".join(names[s] for s in np.asarray(task.text))
    answers = np.asarray(task.answers)
    blocks = list(re.finditer(r"((?:S\([a-h]{2,4},[a-h]\),){1,10})Q\(([a-h]{2,4})\) \.", text))
    assert len(blocks) == 5_000
    assert sum(len(block[0]) for block in blocks) == len(text)
    overwritten = 0
    for block in blocks:
        stored = re.findall(r"\((\w+),(\w)\)", block[1])
        overwritten += len({value for key, value in stored if key == block[2]}) > 1
        assert names[answers[block.end() - 2]] == dict(stored)[block[2]]
    assert overwritten > 0
    counts = np.bincount([block[1].count("S") for block in blocks])[1:]
    assert counts.min() > 400


def test_batches_are_contiguous_segments_of_parallel_streams():
    task = Seq2SeqRetrieval(split="test")
    rows, segments = task.text.shape[0] // 256, task.epoch(256)
    assert segments is not None
    columns = np.asarray(task.text)[: 256 * rows].reshape(256, rows)
    for update in (0, 1, segments - 1, segments):
        episodes = task.batch(jax.random.key(update), update, 256)
        start = 32 * (update % segments)
        length = min(32, rows - start)
        np.testing.assert_array_equal(episodes.length, length)
        np.testing.assert_array_equal(episodes.inputs[:, :length], columns[:, start : start + 32])
        np.testing.assert_array_equal(episodes.reset, [update % segments == 0] * 256)
    assert task.carries_state


def test_partial_scores_weigh_answers_alike():
    """Two answers in one segment and one in the other: a third is wrong."""
    task = Seq2SeqRetrieval(split="test")
    two, one = task.read("S(ab,c),Q(ab) .S(de,f),Q(de) ."), task.read("S(abcd,e),S(efgh,h),Q(abcd) .")
    whole = jax.tree.map(lambda *leaves: jnp.stack([leaf[:29] if leaf.ndim else leaf for leaf in leaves]), two, one)
    outputs = jax.vmap(task.oracle)(whole).at[0, 28].multiply(-1.0)
    _, metrics = task.score(outputs, whole)
    np.testing.assert_allclose(float(metrics["partial_accuracy"]), 2 / 3, rtol=1e-6)
    np.testing.assert_allclose(float(metrics["accuracy"]), 0.5 * (28 / 29 + 1.0), rtol=1e-6)


def test_chance_guesses_letters_where_answers_are():
    task = Seq2SeqRetrieval(split="test", segment=2000)
    episodes = task.batch(jax.random.key(0), 0, 20)
    slot = np.asarray(episodes.inputs == 0)[..., None]
    letters = np.where((np.arange(15) >= 1) & (np.arange(15) <= 8), 0.0, -100.0)
    space = np.where(np.arange(15) == 0, 100.0, 0.0)
    outputs = jnp.asarray(np.where(slot, letters, space), "float32")
    _, metrics = task.score(outputs, episodes)
    for name in ("loss", "bits", "partial_bits"):
        np.testing.assert_allclose(float(metrics[name]), task.chance[name], rtol=0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S(ab,c),Q(ba) .", "the key 'ba' was not stored since the last query, which stored ab"),
        ("Q(ab) .", "which stored nothing"),
        ("S(ab,c),Q(ab) .Q(ab) .", "'ab' was not stored"),
        ("S(ab,c),", "cannot read 'S\\(ab,c\\),': wanted storages and a query"),
        ("", "cannot read ''"),
        ("S(ab,c),Q(ab) .S(x,c),Q(x) .", "cannot read"),
    ],
)
def test_texts_that_cannot_be_answered(text, message):
    with pytest.raises(ValueError, match=message):
        Seq2SeqRetrieval(split="test").read(text)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("associative-retrieval", {"pairs": 27}, "pairs=27 cannot work: wanted 1 to 26 pairs"),
        ("associative-retrieval", {"pairs": 0}, "pairs=0"),
        ("seq2seq-retrieval", {"segment": 0}, "segment=0"),
    ],
)
def test_bad_sizes(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_task(name, **options)
