"""Every cell by name. A new cell is one file and one entry here."""

import dataclasses
import functools
import inspect
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray, PyTree

from .._elsewhere import is_elsewhere, load_class
from .._errors import BadValue, require, unknown
from ._contract import AbstractCell
from ._fixed import trained
from ._rotations import POWERS_OF_TWO
from .associative import AssociativeMemory
from .bn_lstm import BNLSTM
from .dnc import DNC
from .dntm import DNTM
from .eurnn import EURNN
from .fast_weights import FastWeights
from .ff_fast_weights import FeedForwardFastWeights
from .full_urnn import FullURNN
from .gated_fast_weights import GatedFastWeights
from .goru import GORU
from .gru import GRU
from .hyper_lstm import HyperLSTM
from .janet import JANET
from .lstm import LSTM
from .nru import NRU, OVERFLOW
from .ntm import NTM
from .nutm import NUTM
from .recurrent_fast_weights import RecurrentFastWeights
from .rnn import RNN
from .sam import SAM
from .sdnc import SDNC
from .spectral_rnn import SpectralRNN
from .sru import SRU
from .tardis import TARDIS
from .urnn import URNN


@dataclasses.dataclass(frozen=True)
class CellEntry:
    """A cell under a name, or a preset of one (a cell with some options set)."""

    name: str
    cell: type[Any]  # a class of cells
    family: str
    paper: str
    # Options of the constructor that this name stands for. The sizes are those of the thesis's copying
    # experiment, or make about as many parameters (23.5k) with 10 inputs and 9 outputs.
    options: Mapping[str, Any]
    # The option that takes the longest dependency of the task (chrono initialisation, statistics by step).
    horizon_option: str | None = None
    # What a parameter budget changes, and the values it can take.
    size_option: str = "hidden_size"
    sizes: Sequence[int] = range(1, 1 << 16)
    # What a run minimises unless it is told otherwise, by its name in `mnemon.training.runs`.
    objective: str = "supervised"


CELLS: dict[str, CellEntry] = {
    entry.name: entry
    for entry in [
        CellEntry("rnn", RNN, "plain", "Elman 1990", {"hidden_size": 144}),
        CellEntry(
            "rnn-orth",
            RNN,
            "plain",
            "Saxe et al. 2014",
            {"hidden_size": 143, "activation": "relu", "init": "orthogonal", "layer_norm": True},
        ),
        CellEntry(
            "rnn-id",
            RNN,
            "plain",
            "Le et al. 2015",
            {"hidden_size": 143, "activation": "relu", "init": "identity", "layer_norm": True},
        ),
        CellEntry("lstm", LSTM, "gated", "Hochreiter & Schmidhuber 1997", {"hidden_size": 70, "peepholes": True}),
        CellEntry(
            "lstm-chrono",
            LSTM,
            "gated",
            "Tallec & Ollivier 2018",
            {"hidden_size": 70, "peepholes": True},
            horizon_option="chrono",
        ),
        CellEntry("ln-lstm", LSTM, "gated", "Ba et al. 2016", {"hidden_size": 68, "layer_norm": True}),
        CellEntry(
            "bn-lstm",
            BNLSTM,
            "gated",
            "Cooijmans et al. 2016",
            {"hidden_size": 69},
            horizon_option="max_steps",
        ),
        CellEntry("gru", GRU, "gated", "Cho et al. 2014", {"hidden_size": 82}),
        CellEntry(
            "janet",
            JANET,
            "gated",
            "van der Westhuizen & Lasenby 2018",
            {"hidden_size": 101, "beta": 0.0},
            horizon_option="chrono",
        ),
        CellEntry(
            "nru",
            NRU,
            "additive",
            "Chandar et al. 2019",
            {
                "hidden_size": 80,
                "memory_size": 64,
                "heads": 4,
                "heads_see_input": False,
                "average_heads": True,
                "longest_direction": OVERFLOW,
            },
        ),
        CellEntry("dntm", DNTM, "external memory", "Gulcehre et al. 2016", {"hidden_size": 59}),
        CellEntry(
            "dntm-discrete",
            DNTM,
            "external memory",
            "Gulcehre et al. 2016",
            {"hidden_size": 59, "addressing": "discrete"},
            objective="reinforce",
        ),
        CellEntry(
            "tardis",
            TARDIS,
            "external memory",
            "Gulcehre et al. 2017",
            {"hidden_size": 42},
            sizes=range(33, 1 << 16),
        ),
        CellEntry(
            "tardis-reinforce",
            TARDIS,
            "external memory",
            "Gulcehre et al. 2017",
            {"hidden_size": 42, "estimator": "reinforce"},
            sizes=range(33, 1 << 16),
            objective="reinforce-auxiliary",
        ),
        CellEntry(
            "sru",
            SRU,
            "additive",
            "Oliva et al. 2017",
            {
                "hidden_size": 60,
                "statistics_size": 55,
                "recurrent_size": 16,
                "alphas": (0.0, 0.5, 0.9, 0.99, 0.999),
            },
        ),
        CellEntry("spectral-rnn", SpectralRNN, "orthogonal", "Vorontsov et al. 2017", {"hidden_size": 143}),
        CellEntry("urnn", URNN, "unitary", "Arjovsky et al. 2016", {"hidden_size": 470}),
        CellEntry("full-urnn", FullURNN, "unitary", "Wisdom et al. 2016", {"hidden_size": 128}),
        CellEntry("eurnn", EURNN, "unitary", "Jing et al. 2017b", {"hidden_size": 1024}, sizes=POWERS_OF_TWO),
        CellEntry("goru", GORU, "unitary", "Jing et al. 2017a", {"hidden_size": 64}, sizes=POWERS_OF_TWO),
        # The linear memories have few parameters for the size of their state: 23.5k would be 362k numbers an example.
        CellEntry("associative", AssociativeMemory, "fast weights", "Kohonen 1972, Anderson 1972", {"hidden_size": 64}),
        CellEntry(
            "associative-delta",
            AssociativeMemory,
            "fast weights",
            "Widrow & Hoff 1960",
            {"hidden_size": 64, "rule": "delta"},
        ),
        CellEntry("fast-weights", FastWeights, "fast weights", "Ba et al. 2016", {"hidden_size": 143}),
        CellEntry("ff-fast-weights", FeedForwardFastWeights, "fast weights", "Schmidhuber 1992", {"hidden_size": 1169}),
        CellEntry(
            "recurrent-fast-weights", RecurrentFastWeights, "fast weights", "Schmidhuber 1993", {"hidden_size": 85}
        ),
        CellEntry(
            "gated-fast-weights",
            GatedFastWeights,
            "fast weights",
            "Schlag & Schmidhuber 2017",
            {"hidden_size": 28, "slow_layer_size": 72},
        ),
        CellEntry(
            "hyper-lstm",
            HyperLSTM,
            "fast weights",
            "Ha et al. 2017",
            {"hidden_size": 53, "hyper_size": 16, "hyper_embedding_size": 4},
        ),
        CellEntry(
            "ntm",
            NTM,
            "external memory",
            "Graves et al. 2014",
            {"hidden_size": 53, "memory_slots": 128, "word_size": 20},
        ),
        CellEntry(
            "dnc",
            DNC,
            "external memory",
            "Graves et al. 2016",
            {"hidden_size": 49, "memory_slots": 32, "word_size": 16, "read_heads": 2},
        ),
        CellEntry(
            "nutm",
            NUTM,
            "external memory",
            "Le et al. 2020",
            {"hidden_size": 45, "programs": 2, "memory_slots": 128, "word_size": 20},
        ),
        CellEntry("sam", SAM, "external memory", "Rae et al. 2016", {"hidden_size": 38, "word_size": 16}),
        CellEntry("sdnc", SDNC, "external memory", "Rae et al. 2016", {"hidden_size": 40, "word_size": 16}),
    ]
}


def is_cell(name: str) -> bool:
    """Whether a name is that of a registered cell, or says where another one is."""
    return name in CELLS or is_elsewhere(name)


@functools.cache
def _own_entry(name: str) -> CellEntry:
    """The entry of a cell that is not registered: like all names it can do without options, if it has but one size."""
    cell = load_class(name, AbstractCell)
    parameters = inspect.signature(cell).parameters
    wanted = "a class with __init__(self, input_size, hidden_size, ..., *, key)"
    require({"input_size", "key"} <= parameters.keys(), "cell", name, wanted, "mnemon.cells:GRU")
    size = parameters.get("hidden_size")
    options = {"hidden_size": 64} if size is not None and size.default is size.empty else {}
    return CellEntry(name, cell, "of your own", "", options)


def cell_entry(name: str) -> CellEntry:
    """The entry of a name; of a cell that is not registered, its class with the defaults of its constructor.

    >>> cell_entry("janett")
    Traceback (most recent call last):
    mnemon._errors.UnknownName: unknown cell 'janett': did you mean 'janet' or 'ntm' or 'nutm'?
    """
    if is_elsewhere(name):
        return _own_entry(name)
    if name not in CELLS:
        raise unknown("cell", name, CELLS)
    return CELLS[name]


def cell_options(entry: CellEntry) -> dict[str, inspect.Parameter]:
    """The options of an entry: those of the constructor, with the defaults that the entry stands for."""
    parameters = dict(inspect.signature(entry.cell).parameters)
    del parameters["input_size"], parameters["key"]
    return {
        name: parameter.replace(default=entry.options.get(name, parameter.default))
        for name, parameter in parameters.items()
    }


def make_cell(
    name: str, input_size: int, *, key: PRNGKeyArray, horizon: int | None = None, **options: Any
) -> AbstractCell:
    """A cell by name.

    **Arguments:**

    - `name`: a registered name, see `mnemon cells`, or where a cell of your own is: `my_cell.py:MyCell`.
    - `input_size`: size of its input.
    - `key`: for its initial parameters.
    - `horizon`: longest dependency of the task, for the names that stand for chrono initialisation.
    - `options`: options of the constructor, on top of those that the name stands for.

    >>> import jax
    >>> make_cell("nru", 10, hidden_size=20, key=jax.random.key(0)).output_size
    20
    """
    entry = cell_entry(name)
    known = cell_options(entry)
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    filled = dict(entry.options)
    if entry.horizon_option is not None and horizon is not None:
        filled[entry.horizon_option] = horizon
    filled.update(options)
    for option, parameter in known.items():
        if option not in filled and parameter.default is parameter.empty:
            raise BadValue(f"{name} wants a value for {option}, e.g. {option}=32")
    return entry.cell(input_size, **filled, key=key)


def count_parameters(tree: PyTree) -> int:
    """Number of trained numbers."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(tree, trained(tree))))


def time_varying(cell: AbstractCell) -> int:
    """Number of time-varying variables: how many numbers the state of one example holds.

    >>> import jax
    >>> time_varying(make_cell("lstm", 10, hidden_size=70, key=jax.random.key(0)))
    140
    """
    state = eqx.filter_eval_shape(lambda c: c.init_state(), cell)
    return sum(leaf.size for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.floating))


def fit_size(name: str, budget: int, input_size: int, output_size: int, **options: Any) -> dict[str, Any]:
    """The options that bring a cell with a linear readout closest to `budget` parameters.

    >>> fit_size("lstm", 23_500, input_size=10, output_size=9)["hidden_size"]
    70
    """
    entry = cell_entry(name)

    def count(size: int) -> int:
        cell = eqx.filter_eval_shape(
            lambda key: make_cell(name, input_size, key=key, **{**options, entry.size_option: size}),
            jax.random.key(0),
        )
        return count_parameters(cell) + (cell.output_size + 1) * output_size

    smallest = count(entry.sizes[0])
    require(budget >= smallest, "budget", budget, f"at least {smallest}, the smallest {name}", "budget=23500")
    above = bisect_left(entry.sizes, budget, key=count)
    near = entry.sizes[max(above - 1, 0) : above + 1]
    return {**options, entry.size_option: min(near, key=lambda size: abs(count(size) - budget))}
