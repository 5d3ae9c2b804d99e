"""Command-line options from constructors: names, types and defaults from the signature, help from the docstring."""

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Annotated, Any, get_type_hints

import tyro

Field = tuple[str, Any, Any]


def option_help(*docstrings: str | None) -> dict[str, str]:
    r"""The lines "- `name`: help" of docstrings.

    >>> option_help("**Options:**\n\n- `delay`: steps between\n  data and marker.\n- `symbols`: how many.")
    {'delay': 'steps between data and marker.', 'symbols': 'how many.'}
    """
    found: dict[str, str] = {}
    for docstring in docstrings:
        for name, text in re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)", inspect.cleandoc(docstring or ""), re.MULTILINE):
            found[name] = " ".join(text.split())
    return found


def option_fields(cls: type, parameters: Mapping[str, inspect.Parameter]) -> list[Field]:
    """Dataclass fields for the options of a constructor."""
    hints = get_type_hints(cls.__init__)
    texts = option_help(cls.__doc__, cls.__init__.__doc__)
    fields: list[Field] = []
    for name, parameter in parameters.items():
        help_text = texts.get(name, "")
        fields.append((name, Annotated[hints[name], tyro.conf.arg(help=help_text)], parameter.default))
    return fields


def parse_options(prog: str, description: str, base: type, fields: list[Field], arguments: list[str]) -> Any:
    """Parse `arguments` into `base` (a dataclass) extended by `fields`."""
    required = [field[:2] for field in fields if field[2] is inspect.Parameter.empty]
    optional = [
        (name, kind, dataclasses.field(default=value))
        for name, kind, value in fields
        if value is not inspect.Parameter.empty
    ]
    arguments_class = dataclasses.make_dataclass("Arguments", [*required, *optional], bases=(base,), kw_only=True)
    arguments_class.__doc__ = description
    return tyro.cli(arguments_class, prog=prog, description=description, args=arguments)


def changed_options(arguments: Any, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The options that differ from their defaults."""
    values = {name: getattr(arguments, name) for name in parameters}
    return {name: value for name, value in values.items() if value != parameters[name].default}
