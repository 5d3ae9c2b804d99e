"""The benchmark: its distributions, its entries, its command."""

import json

import equinox as eqx
import jax
import pytest

from mnemon import cells, cli
from mnemon.lifelong import DISTRIBUTIONS, ENTRIES, EWC, GEM, METHODS, AverageGEM, LifelongConfig, distribution
from mnemon.training import Supervised

SIZES = {"copy": (8, 7), "associative-recall": (10, 8), "stroke-mnist": (15, 11)}


@eqx.filter_jit
def _perfect(task, key):
    """Some episodes, and what the oracle scores on them."""
    episodes = task.batch(key, 0, 3)
    return episodes, task.score(jax.vmap(task.oracle)(episodes), episodes)[1]


@pytest.mark.parametrize("name", list(DISTRIBUTIONS))
def test_levels_of_a_distribution(name, synthetic_data):
    found = distribution(name)
    lengths = [found.length(level) for level in range(1, 21)]
    assert lengths == (list(range(1, 21)) if name == "stroke-mnist" else list(range(5, 63, 3)))
    for level in (1, 3):
        task = found.task(level)
        assert (task.input_size, task.output_size) == SIZES[name]
        episodes, perfect = _perfect(task, jax.random.key(level))
        assert episodes.mask.shape[1] == task.horizon
        assert found.accuracy(task, {n: float(v) for n, v in perfect.items()}) == pytest.approx(1.0)
    if name != "stroke-mnist":
        assert found.accuracy(task, task.chance) == pytest.approx(0.5)


def test_copy_is_that_of_the_thesis():
    task = distribution("copy").task(1)
    episode = task.sample(jax.random.key(0))
    assert episode.inputs.shape == (11, 8)  # 5 rows, the flag, 5 silent steps
    assert episode.inputs[:, 7].tolist() == [0.0] * 5 + [1.0] + [0.0] * 5
    assert int(episode.mask.sum()) == 5


@pytest.mark.parametrize("name", list(ENTRIES))
def test_every_entry_builds(name):
    config = LifelongConfig.enter("copy", name)
    model = eqx.filter_eval_shape(config.make_model)
    assert model.cell.output_size == (128 if name.startswith("small") else 256)
    assert model.cell.peepholes is None
    assert isinstance(config.make_objective(), GEM if "gem" in name else Supervised)
    assert config.sizes == ((256,) if "net2net" in name else ())
    assert (config.updates, config.window, config.batch, config.levels) == (10_000, 100, 10, 20)


def test_any_cell_and_any_method_can_be_entered():
    for cell in cells.CELLS:
        assert LifelongConfig.enter("copy", cell, method="gem").cell == cell
    kinds = {method: type(LifelongConfig.enter("copy", "gru", method=method).make_objective()) for method in METHODS}
    assert kinds == {"none": Supervised, "gem": GEM, "a-gem": AverageGEM, "ewc": EWC}


def test_the_command_runs_says_and_keeps_what_it_found(tmp_path, capsys):
    words = ["lifelong", "copy", "gru", "--hidden-size", "4", "--levels", "2", "--updates", "10", "--window", "10"]
    words += ["--episodes", "5", "--out", str(tmp_path), "--method", "gem", "--json"]
    cli.main(words)
    *levels, result = map(json.loads, capsys.readouterr().out.splitlines())
    assert [level["level"] for level in levels] == [1]  # ten updates do not pass
    assert result["cleared"] == 0
    assert result["future_by_level"] == [result["matrix"][0][1]]
    assert result["previous"] is None
    assert result["current"] == [levels[0]["attempts"][-1]["accuracy"]]
    stored = json.loads((tmp_path / "lifelong.json").read_text())
    assert stored["provenance"]["commit"]
    assert stored["config"]["cell_options"] == {"hidden_size": 4}
    cli.main([*words, "--resume"])
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert all(again[name] == result[name] for name in ("config", "current", "matrix", "untrained"))
    with pytest.raises(SystemExit):
        cli.main(words)
    assert "holds a run already" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*words, "--resume", "--lr", "0.1"])
    assert "holds another run (lr 0.001 not 0.1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"levels": 21}, "levels=21 cannot work: wanted 1 to 20 levels of copy"),
        ({"levels": 0}, "levels=0 cannot work"),
        ({"capacity": 4, "levels": 5}, "capacity=4 cannot work: wanted at least one example for each of 5 tasks"),
        ({"slots": 0}, "slots=0 cannot work"),
        ({"episodes": 0}, "episodes=0 cannot work"),
    ],
)
def test_bad_values(change, match):
    with pytest.raises(ValueError, match=match):
        LifelongConfig.enter("copy", "small-lstm-gem", **change)


def test_unknown_names():
    with pytest.raises(KeyError, match="unknown distribution 'copying': did you mean 'copy'"):
        LifelongConfig.enter("copying", "gru")
    with pytest.raises(KeyError, match="unknown entry 'small-lstm-gm'"):
        LifelongConfig.enter("copy", "small-lstm-gm")
    with pytest.raises(KeyError, match="unknown method 'gems'"):
        LifelongConfig.enter("copy", "gru", method="gems")
    with pytest.raises(ValueError, match="level=21 cannot work: wanted one of the 20 levels of copy"):
        distribution("copy").task(21)
