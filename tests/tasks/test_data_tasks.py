"""Tasks on real data, here on small files in the same formats: what they read, and what they refuse."""

import hashlib
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import evaluate, fit, make_model
from mnemon._errors import BadValue
from mnemon.data import MissingData, _store
from mnemon.data._read import BadFile
from mnemon.sampling import require_language_model, sample_text
from mnemon.tasks import BAbI, CharLM, Copying, Entailment, PermutedMNIST, StrokeMNIST
from mnemon.tasks.char_lm import unspaced
from mnemon.tasks.psmnist import _orders
from mnemon.training import Interactive, Supervised
from tests import synthetic

pytestmark = pytest.mark.usefixtures("synthetic_data")


def _one(episodes, index=0):
    return jax.tree.map(lambda leaf: leaf[index], episodes)


def _replace(monkeypatch, folder: Path, name: str, path: str, content: bytes) -> None:
    """Another file in a data set, known to the catalogue."""
    monkeypatch.setenv("MNEMON_DATA", str(folder))
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)
    monkeypatch.setitem(_store.DATASETS, name, synthetic._catalogue(_store.DATASETS[name], folder))
    assert hashlib.sha256(content).hexdigest() in str(_store.DATASETS[name])


def test_published_order_of_the_pixels():
    assert _orders(50, 784)[1][:5].tolist() == [46, 466, 537, 44, 515]


def test_permuted_mnist_reads_every_pixel_once_then_asks():
    task = PermutedMNIST(split="test")
    episode = task.example(jnp.asarray(3))
    assert episode.inputs.shape == (785, 1)
    assert np.flatnonzero(episode.mask).tolist() == [784]
    assert float(episode.inputs[-1, 0]) == 0.0
    plain = PermutedMNIST(permuted=False, split="test").example(jnp.asarray(3))
    order = _orders(50, 784)[1]
    np.testing.assert_array_equal(episode.inputs[:-1, 0], plain.inputs[:-1, 0][order])
    assert int(episode.targets[-1]) == int(plain.targets[-1]) == 3


def test_pooled_mnist_is_the_mean_of_four_pixels():
    whole = PermutedMNIST(permuted=False, split="test").example(jnp.asarray(1)).inputs[:-1, 0].reshape(28, 28)
    pooled = PermutedMNIST(permuted=False, pooled=True, split="test").example(jnp.asarray(1))
    assert pooled.inputs.shape == (197, 1)
    means = whole.reshape(14, 2, 14, 2).mean(axis=(1, 3)).reshape(-1)
    np.testing.assert_allclose(pooled.inputs[:-1, 0], means, atol=1e-6)


def test_splits_do_not_overlap_and_other_splits_come_in_order():
    train, valid, test = (PermutedMNIST(split=split) for split in ("train", "valid", "test"))
    assert (train.examples, valid.examples, test.examples) == (50, 10, 20)
    rows = {bytes(np.asarray(row)) for task in (train, valid) for row in task.pixels}
    assert len(rows) == 60
    batches = [test.batch(jax.random.key(9), update, 8) for update in range(test.epoch(8))]
    labels = np.concatenate([batch.targets[:, -1] for batch in batches])
    assert labels.tolist() == [n % 20 % 10 for n in range(24)]


def test_strokes_start_at_zero_and_end_in_bos_and_digits():
    task = StrokeMNIST(digits=3)
    episode = task.sample(jax.random.key(2))
    inputs, targets, length = np.asarray(episode.inputs), np.asarray(episode.targets), int(episode.length)
    bos = int(np.flatnonzero(inputs[:, 4])[0])
    assert length == bos + 4
    ends = np.flatnonzero(inputs[:, 3] == 1.0)
    assert len(ends) == 3
    assert ends[-1] == bos - 1
    for start in (0, *(ends[:-1] + 1)):
        np.testing.assert_array_equal(inputs[start, :2], [0, 0])
    digits = targets[bos : bos + 3]
    assert targets[bos + 3] == 10
    np.testing.assert_array_equal(inputs[bos + 1 : bos + 4, 5:], np.eye(10)[digits])
    assert not inputs[: bos + 1, 5:].any()
    assert np.flatnonzero(np.asarray(episode.mask)).tolist() == list(range(bos, bos + 4))
    assert not np.asarray(StrokeMNIST(digits=3, feed_back=False).sample(jax.random.key(2)).inputs)[:, 5:].any()


def test_in_evaluation_the_networks_own_digits_come_back():
    """With untrained weights that see only what is fed back, own digits give other outputs than the right ones."""
    task = StrokeMNIST(digits=4)
    model = make_model(task, "rnn", hidden_size=8, key=jax.random.key(0))
    own = evaluate(model, task, episodes=20, batch=10)
    taught = evaluate(model, task, episodes=20, batch=10, objective=Supervised())
    assert own["loss"] != taught["loss"]
    deaf = StrokeMNIST(digits=4, feed_back=False)
    own = evaluate(model, deaf, episodes=20, batch=10)
    taught = evaluate(model, deaf, episodes=20, batch=10, objective=Supervised())
    np.testing.assert_allclose(own["loss"], taught["loss"], rtol=1e-5)


def test_stroke_chance_by_counting():
    """Frequencies of what is wanted after `<bos>` and after a digit, counted on episodes."""
    task = StrokeMNIST(digits=2)
    episodes = task.batch(jax.random.key(0), 0, 4000)
    wanted, bos = np.asarray(episodes.targets), np.asarray(episodes.inputs[..., 4]) == 1
    mask = np.asarray(episodes.mask)
    total = 0.0
    for steps in (mask & bos, mask & ~bos):
        shares = np.bincount(wanted[steps], minlength=11) / steps.sum()
        total -= steps.sum() * float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
    assert abs(total / mask.sum() - task.chance["loss"]) < 0.01


def test_fed_back_cells_need_a_task_that_feeds_back():
    task = Copying(delay=3, length=2)
    model = make_model(task, "rnn", hidden_size=3, key=jax.random.key(0))
    with pytest.raises(TypeError, match="Copying does not take"):
        fit(model, task, updates=1, objective=Interactive())


def test_mikolovs_form():
    assert unspaced(" a _ b \n c \n ") == "a b\nc\n"
    task = CharLM("ptb")
    assert task.decode(task.stream) == synthetic.TEXT
    assert len(task.symbols) == len(set(synthetic.TEXT))


def test_pieces_continue_each_other_in_every_column():
    task = CharLM("kjv", window=7)
    rows = task.stream.shape[0] // 3
    pieces = [task.batch(jax.random.key(0), update, 3) for update in range(task.epoch(3))]
    for column in range(3):
        lengths = [int(piece.length[column]) for piece in pieces]
        read = np.concatenate([piece.inputs[column, :n] for piece, n in zip(pieces, lengths, strict=True)])
        wanted = np.concatenate([piece.targets[column, :n] for piece, n in zip(pieces, lengths, strict=True)])
        own = np.asarray(task.stream)[column * rows : (column + 1) * rows]
        np.testing.assert_array_equal(read, own[:-1])
        np.testing.assert_array_equal(wanted, own[1:])
    assert [bool(np.any(piece.reset)) for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    again = task.batch(jax.random.key(5), task.epoch(3), 3)
    np.testing.assert_array_equal(again.inputs, pieces[0].inputs)


def test_bigrams_are_what_a_network_without_a_memory_can_know():
    task = CharLM("kjv")
    text = task.decode(task.stream)
    pairs = [text[n : n + 2] for n in range(len(text) - 1)]
    counts = {pair: pairs.count(pair) for pair in set(pairs)}
    firsts = {a: sum(count for pair, count in counts.items() if pair[0] == a) for a in set(text[:-1])}
    entropy = -sum(count * math.log(count / firsts[pair[0]]) for pair, count in counts.items()) / len(pairs)
    np.testing.assert_allclose(task.chance["loss"], entropy, rtol=1e-6)
    np.testing.assert_allclose(task.chance["bits"], entropy / math.log(2.0), rtol=1e-6)


def test_a_trained_model_writes_the_text_it_learnt(tmp_path):
    path = tmp_path / "abc.txt"
    path.write_text("abcd" * 100)
    task = CharLM(str(path), window=8)
    model = make_model(task, "gru", hidden_size=8, key=jax.random.key(0))
    result = fit(model, task, updates=150, batch=4, log_every=50)
    assert result.records[-1]["accuracy"] > 0.9
    assert sample_text(result.model, task, length=8, prompt="ab", temperature=0.0) == "cdabcdab"
    drawn = sample_text(result.model, task, length=30, prompt="a", temperature=1.0, seed=3)
    assert drawn == sample_text(result.model, task, length=30, prompt="a", temperature=1.0, seed=3)
    assert len(drawn) == 30
    with pytest.raises(BadValue, match="'x' is not among the 4 characters"):
        sample_text(result.model, task, prompt="x")
    with pytest.raises(BadValue, match="not one trained on Copying"):
        require_language_model(Copying())


def test_text_that_the_vocabulary_does_not_cover_names_file_and_line(tmp_path):
    known, other = tmp_path / "known.txt", tmp_path / "other.txt"
    known.write_text("ab\n" * 100)
    other.write_text("ab\nab\naz\n" + "ab\n" * 100)
    with pytest.raises(BadFile, match=r"other\.txt, line 3: 'z' is not among the 3 characters"):
        CharLM(str(other), window=5, vocabulary=str(known))
    assert CharLM(str(known), window=5, vocabulary=str(other)).input_size == 4


@pytest.mark.parametrize(("content", "words"), [("", "is empty"), ("ab", "its train part has 1 characters")])
def test_texts_that_are_refused(tmp_path, content, words):
    path = tmp_path / "short.txt"
    path.write_text(content)
    with pytest.raises(BadFile, match=words):
        CharLM(str(path))
    with pytest.raises(BadFile, match="no such file"):
        CharLM(str(tmp_path / "none.txt"))
    with pytest.raises(BadValue, match="known texts: ptb, shakespeare, kjv"):
        CharLM("shakespaere")


def test_entailment_reads_premise_then_hypothesis():
    task = Entailment()
    episode = task.example(jnp.asarray(1))
    assert task.show(episode) == "two dogs are running <sep> some animals are moving\nentailment"
    assert np.flatnonzero(episode.mask).tolist() == [int(episode.length) - 1]
    np.testing.assert_allclose(task.chance["loss"], math.log(3.0), rtol=1e-6)


def test_pretrained_vectors_start_the_embeddings(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dogs 1.0 2.0 3.0\nunheard 0 0 0\nman -1 -2 -3\n")
    task = Entailment(vectors=str(path))
    model = make_model(task, "gru", hidden_size=4, key=jax.random.key(0))
    assert model.embedding is not None
    np.testing.assert_array_equal(model.embedding[task.symbols.index("dogs")], [1.0, 2.0, 3.0])
    assert model.embedding.shape == (len(task.symbols), 3)
    with pytest.raises(BadValue, match="embedding_size=7"):
        make_model(task, "gru", hidden_size=4, embedding_size=7, key=jax.random.key(0))
    path.write_text("dogs 1.0 2.0\nman 1.0\n")
    with pytest.raises(BadFile, match=r"vectors\.txt, line 2: has 1 numbers"):
        Entailment(vectors=str(path))
    path.write_text("dogs 1.0 two\n")
    with pytest.raises(BadFile, match=r"vectors\.txt, line 1"):
        Entailment(vectors=str(path))
    path.write_text("unheard 1.0 2.0\n")
    with pytest.raises(BadFile, match="none of the words"):
        Entailment(vectors=str(path))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("9\tA man\tA dog\t1.0\tMAYBE", "line 3: label 'MAYBE'"),
        ("9\tA man", "line 3: has 2 columns"),
        ("9\tA man\t \t1.0\tNEUTRAL", "line 3: the hypothesis is empty"),
    ],
)
def test_tables_that_are_refused(tmp_path, monkeypatch, line, words):
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    table = f"{header}\n1\tA man\tA dog\t1.0\tNEUTRAL\n{line}\n"
    _replace(monkeypatch, tmp_path, "sick", "sick/SICK_train.txt", table.encode())
    with pytest.raises(BadFile, match=words):
        Entailment()
    _replace(monkeypatch, tmp_path, "sick", "sick/SICK_train.txt", b"a\tb\nc\td\n")
    with pytest.raises(BadFile, match="line 1: has columns a, b"):
        Entailment()


def test_babi_asks_for_each_word_of_an_answer():
    task = BAbI(number=8, split="test")
    text = task.show(task.example(jnp.asarray(0)))
    assert text == (
        "mary got the milk there . john moved to the bedroom . what is mary carrying ? - "
        "john took the apple . what is john carrying ? - -\nanswers: milk apple milk"
    )
    assert {"-", "?", ".", "mary"} <= set(task.symbols)


def test_a_babi_question_counts_only_if_all_its_words_are_right():
    task = BAbI(number=8, split="test")
    episode = task.example(jnp.asarray(0))
    outputs = task.oracle(episode)
    asked = np.flatnonzero(episode.mask)
    assert float(task.metrics(outputs, episode)["error"]) == 0.0
    for wrong, error in (([0], 0.5), ([1], 0.5), ([1, 2], 0.5), ([0, 2], 1.0)):
        broken = outputs.at[asked[wrong]].set(0.0)
        assert float(task.metrics(broken, episode)["error"]) == error


def test_babi_parts_and_splits():
    task = BAbI(split="test")
    assert list(task.parts) == ["task 1", "task 8"]
    assert task.examples == 40
    assert BAbI(split="train").examples + BAbI(split="valid").examples == 40
    assert BAbI(longest=12, split="train").examples == 16
    with pytest.raises(BadFile, match="no train stories of task 3"):
        BAbI(number=3)
    with pytest.raises(BadValue, match="number=21"):
        BAbI(number=21)


def test_babi_files_that_are_refused():
    from mnemon.tasks.babi import _parse

    with pytest.raises(BadFile, match="f, line 2: a question without an answer"):
        _parse("f", "1 Mary sat.\n2 Where is Mary?\n")
    with pytest.raises(BadFile, match="f, line 2: starts with 'Where'"):
        _parse("f", "1 Mary sat.\nWhere is Mary?\tthere\t1\n")
    with pytest.raises(BadFile, match="f, line 1: a story must start with line 1"):
        _parse("f", "2 Mary sat.\n")


def test_without_data_tasks_are_listed_and_refused(tmp_path, monkeypatch):
    from mnemon.report.listings import task_rows

    monkeypatch.setenv("MNEMON_DATA", str(tmp_path))
    rows = {row["name"]: row for row in task_rows()}
    assert rows["psmnist"]["chance"] == "needs data: mnemon data list mnist"
    assert "loss" in rows["traversal"]["chance"]
    with pytest.raises(MissingData, match="mnemon data get mnist"):
        PermutedMNIST()
