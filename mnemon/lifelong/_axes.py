"""Trees whose arrays say what their axes are, see `AbstractCell.axes`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from ..model import Model


def walk(node: Any, axes: Any, visit: Callable[[Any, str], Any]) -> Any:
    """The same tree with `visit(value, word)` in place of each described value."""
    if node is None:
        return None
    if isinstance(axes, dict):
        return _with_fields(node, {name: walk(getattr(node, name), part, visit) for name, part in axes.items()})
    if isinstance(axes, tuple):
        return tuple(walk(part, word, visit) for part, word in zip(node, axes, strict=True))
    return jax.tree.map(lambda leaf: visit(leaf, axes), node)


def _with_fields(module: Any, values: dict[str, Any]) -> Any:
    """The same module with other fields, static ones included."""
    copy = object.__new__(type(module))
    for field in dataclasses.fields(module):
        object.__setattr__(copy, field.name, values.get(field.name, getattr(module, field.name)))
    return copy


def sizes_of(model: Model) -> dict[str, int]:
    """The size of each letter, from the static sizes that are described."""
    found: dict[str, int] = {}

    def visit(leaf: Any, word: str) -> Any:
        if isinstance(leaf, int):
            found[word] = leaf
        return leaf

    walk(model, model.axes(), visit)
    return found


def words_of(model: Model) -> dict[str, str]:
    """The description of each described array of the model, by its path."""
    words: list[str] = []

    def number(leaf: Any, word: str) -> Any:
        if isinstance(leaf, int):
            return leaf
        words.append(word)
        return len(words) - 1

    numbered = walk(model, model.axes(), number)
    leaves = jax.tree_util.tree_leaves_with_path(numbered)
    return {jax.tree_util.keystr(path): words[leaf] for path, leaf in leaves if isinstance(leaf, int)}
