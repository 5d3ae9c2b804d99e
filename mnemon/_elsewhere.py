"""Classes that are not in the package, by a name that says where they are: `FILE.py:CLASS` or `MODULE:CLASS`."""

import functools
import importlib
import inspect
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from ._errors import MnemonError

_FORM = "a class of your own is named FILE.py:CLASS or MODULE:CLASS, as my_cell.py:MyCell"


def is_elsewhere(name: str) -> bool:
    """Whether a name says where a class is, rather than being a registered one.

    >>> is_elsewhere("my_cell.py:MyCell"), is_elsewhere("lstm")
    (True, False)
    """
    return ":" in name


def plain_name(name: str) -> str:
    """A name without where it comes from, for titles and file names.

    >>> plain_name("models/my_cell.py:MyCell")
    'MyCell'
    """
    return name.rpartition(":")[2]


def load_class(name: str, kind: type) -> type:
    """The class of a name, a subclass of `kind` that can be made."""
    place, _, attribute = name.rpartition(":")
    module = _load_file(Path(place).absolute()) if place.endswith(".py") else _load_module(place)
    known = [
        found
        for found, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, kind) and not inspect.isabstract(value)
    ]
    if attribute not in known:
        has = f"; it has {', '.join(sorted(known))}" if known else ""
        value = getattr(module, attribute, None)
        left = ", ".join(sorted(getattr(value, "__abstractmethods__", ())))
        why = f"{attribute} has no {left}" if left else f"there is no {kind.__name__} {attribute!r} in {place}"
        raise MnemonError(f"{name}: {why}{has}")
    return getattr(module, attribute)


def source_of(name: str, kind: type) -> str:
    """The text of the file that a class is in."""
    return inspect.getsource(sys.modules[load_class(name, kind).__module__])


@functools.cache
def _load_file(path: Path) -> ModuleType:
    """A file as a module, once, so that its classes are the same each time they are asked for."""
    if not path.is_file():
        raise MnemonError(f"{path}: there is no such file; {_FORM}")
    loader = SourceFileLoader(str(path), str(path))
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    sys.modules[loader.name] = module  # where dataclasses and type hints look for it
    try:
        loader.exec_module(module)
    except Exception as error:
        del sys.modules[loader.name]
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        raise MnemonError(f"{path} cannot be imported: line {line}: {type(error).__name__}: {error}") from error
    return module


def _load_module(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ImportError as error:
        raise MnemonError(f"{place} cannot be imported: {error}; {_FORM}") from error
