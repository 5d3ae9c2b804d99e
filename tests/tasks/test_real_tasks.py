"""What the tasks read of the real data, against published counts. Penn Treebank is counted, never quoted."""

import csv
from collections import defaultdict

import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.tasks import BAbI, CharLM, Entailment, PermutedMNIST, StrokeMNIST
from mnemon.tasks._worlds import london
from mnemon.tasks.babi import read_stories
from tests import realdata

HERE = str(realdata.FOLDER)


def test_mnist():
    train, test = (PermutedMNIST(split=split, data=HERE) for split in ("train", "test"))
    assert (train.examples, test.examples) == (50_000, 10_000)
    assert train.order[:5].tolist() == [46, 466, 537, 44, 515]
    assert test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    np.testing.assert_allclose(train.chance["loss"], 2.3011, atol=1e-3)
    np.testing.assert_allclose(train.chance["accuracy"], 0.113, atol=1e-3)


def test_strokes():
    parts = {split: StrokeMNIST(split=split, data=HERE) for split in ("train", "valid", "test")}
    means = {split: float(task.lengths.mean()) for split, task in parts.items()}
    np.testing.assert_allclose([means["train"], means["valid"], means["test"]], [39.89, 40.21, 39.41], atol=0.01)
    assert int(parts["train"].lengths.max()) == 117
    # the authors' longest sequences of 5, 10 and 15 digits fit
    assert [StrokeMNIST(n, data=HERE).horizon >= steps for n, steps in ((5, 335), (10, 560), (15, 802))] == [True] * 3


@pytest.mark.parametrize(
    ("split", "characters", "lines"),
    [("train", 5_017_482, 42_068), ("valid", 393_042, 3_370), ("test", 442_423, 3_761)],
)
def test_penn_treebank_counts(split, characters, lines):
    task = CharLM("ptb", split=split, data=HERE)
    assert task.stream.shape == (characters,)
    assert len(task.symbols) == 50
    assert int((task.stream == task.symbols.index("\n")).sum()) == lines
    assert len(task.decode(task.stream[:100])) == 100


def test_penn_treebank_epoch():
    assert CharLM("ptb", data=HERE).epoch(128) == 262


@pytest.mark.parametrize(("text", "characters", "symbols"), [("shakespeare", 1_115_394, 65), ("kjv", 4_298_238, 73)])
def test_other_texts(text, characters, symbols):
    parts = [CharLM(text, split=split, data=HERE) for split in ("train", "valid", "test")]
    assert sum(part.stream.shape[0] for part in parts) == characters
    assert {len(part.symbols) for part in parts} == {symbols}


@pytest.mark.parametrize(("corpus", "counts"), [("sick", (4_500, 500, 4_927)), ("snli-subset", (21_605, 9_842, 9_824))])
def test_entailment_counts(corpus, counts):
    splits = [Entailment(corpus, split=split, data=HERE) for split in ("train", "valid", "test")]
    assert tuple(task.examples for task in splits) == counts
    assert len({task.symbols for task in splits}) == 1


def test_babi_counts():
    symbols, stories = read_stories(realdata.FOLDER / "babi/tasks_1-20_v1-2_en_en-10k.tar.xz", "en-10k")
    assert len(symbols) == 159
    count, longest = defaultdict(int), defaultdict(int)
    for story in stories:
        count[story.task, story.part] += 1
        longest[story.task, story.part] = max(longest[story.task, story.part], len(story.words))
    assert (3, "train") not in count
    for task, train, test in ((1, 2000, 200), (4, 10000, 1000), (15, 2500, 250), (18, 1978, 199), (20, 933, 93)):
        assert (count[task, "train"], count[task, "test"]) == (train, test)
    assert [longest[task, "test"] for task in (1, 2, 3, 5, 8)] == [90, 582, 1393, 617, 388]
    test = BAbI(number=19, split="test", data=HERE)
    assert int(test.example(jnp.asarray(0)).mask.sum()) == 2


def test_london_is_what_the_open_data_say():
    """Zone-1 stations where two of seven lines meet, with the stops between them left out."""
    rows = {
        name: list(csv.DictReader((realdata.FOLDER / f"london_underground/london.{name}.csv").read_text().splitlines()))
        for name in ("stations", "connections", "lines")
    }
    # the file misspells one station
    names = {
        row["id"]: row["name"].replace("Picadilly", "Piccadilly") for row in rows["stations"] if float(row["zone"]) < 2
    }
    lines = {row["line"]: row["name"].removesuffix(" Line") for row in rows["lines"]}
    wanted = {"Bakerloo", "Central", "Circle", "Jubilee", "Northern", "Piccadilly", "Victoria"}
    near = defaultdict(set)
    for row in rows["connections"]:
        line, a, b = lines[row["line"]], row["station1"], row["station2"]
        if line in wanted and a in names and b in names:
            near[line, a].add(b)
            near[line, b].add(a)
    served = defaultdict(set)
    for line, station in near:
        served[station].add(line)
    interchanges = {station for station, at in served.items() if len(at) >= 2}
    derived = set()
    for (line, start), neighbours in near.items():
        for station in neighbours if start in interchanges else ():
            before, here = start, station
            while here not in interchanges and len(near[line, here]) == 2:
                (after,) = near[line, here] - {before}
                before, here = here, after
            if here in interchanges:
                derived.add((names[start], line, names[here]))
    ours = {(a, edge.split()[0], b) for a, edge, b in london()}
    assert ours == derived
    assert len(london()) == 102
    assert len({a for a, _, _ in london()}) == 25
