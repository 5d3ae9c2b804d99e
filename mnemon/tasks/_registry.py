"""Every task by name. A new task is one file and one entry here."""

import inspect
from typing import Any

from .._elsewhere import is_elsewhere, load_class
from .._errors import unknown
from ._contract import AbstractTask
from .associative_recall import AssociativeRecall
from .associative_retrieval import AssociativeRetrieval
from .babi import BAbI
from .char_lm import CharLM
from .copying import Copying
from .denoising import Denoising
from .dynamic_ngrams import DynamicNGrams
from .entailment import Entailment
from .inference import Inference
from .ntm_copy import NTMCopy
from .priority_sort import PrioritySort
from .psmnist import PermutedMNIST
from .repeat_copy import RepeatCopy
from .seq2seq_retrieval import Seq2SeqRetrieval
from .shortest_path import ShortestPath
from .stroke_mnist import StrokeMNIST
from .traversal import Traversal
from .variable_copying import VariableCopying

TASKS: dict[str, type[AbstractTask]] = {
    "copying": Copying,
    "variable-copying": VariableCopying,
    "denoising": Denoising,
    "psmnist": PermutedMNIST,
    "stroke-mnist": StrokeMNIST,
    "char-lm": CharLM,
    "entailment": Entailment,
    "babi": BAbI,
    "traversal": Traversal,
    "shortest-path": ShortestPath,
    "inference": Inference,
    "ntm-copy": NTMCopy,
    "repeat-copy": RepeatCopy,
    "associative-recall": AssociativeRecall,
    "dynamic-ngrams": DynamicNGrams,
    "priority-sort": PrioritySort,
    "associative-retrieval": AssociativeRetrieval,
    "seq2seq-retrieval": Seq2SeqRetrieval,
}


def task_class(name: str) -> type[AbstractTask]:
    """The class of a registered task, or of one that a name says where it is: `my_task.py:MyTask`."""
    if is_elsewhere(name):
        return load_class(name, AbstractTask)
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def task_options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a task: the parameters of its constructor."""
    return dict(inspect.signature(task_class(name)).parameters)


def make_task(name: str, **options: Any) -> AbstractTask:
    """A task by name.

    >>> round(make_task("copying", delay=30).chance["loss"], 4)  # k ln n / (T + 2k)
    0.4159
    """
    known = task_options(name)
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return task_class(name)(**options)
