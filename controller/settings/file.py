"""The file of the configuration: YAML read into plain values, and these into sections; every problem at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from controller.errors import ConfigError
from topology.problems import Problems, placed
from topology.yaml_text import NotYaml, YamlText, read

T = TypeVar("T", bound=BaseModel)


def read_file(path: Path) -> YamlText:
    """Return what the YAML in a file says.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), (f"cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), (f"is not UTF-8 text: {error.reason} at byte {error.start}",)) from error
    except NotYaml as error:
        raise ConfigError(str(path), (str(error),)) from error
    except ValueError as error:  # a name that no file can have
        raise ConfigError(repr(str(path)), (f"cannot be read: {error}",)) from error


def part_of(path: Path, shape: type[T]) -> tuple[T, Problems]:
    """Return the sections of a file that a command needs; nothing else in it need be right.

    Args:
        path: the file.
        shape: what these sections are; each has a default.

    Returns:
        the sections, and the problems of the file, to which may be added what does not fit together.

    Raises:
        ConfigError: the file cannot be read, or these sections are not well-formed.
    """
    values = read_file(path).values
    problems = Problems(values=values)
    said = values if isinstance(values, Mapping) else {}
    part, _ = sections_of({key: said[key] for key in shape.model_fields if key in said}, shape, problems.found)
    if part is None or problems.found:
        raise ConfigError(str(path), tuple(problems.found))
    return part, problems


def sections_of(data: object, shape: type[T], found: list[str]) -> tuple[T | None, frozenset[str]]:
    """Return the sections in what YAML has read; those with problems are as if they were not there.

    Args:
        data: that.
        shape: what sections there may be.
        found: takes every key and value that is not well-formed, with its place.

    Returns:
        the sections, None if there are none at all; and the names of those with problems.
    """
    try:
        return shape.model_validate(data), frozenset()
    except ValidationError as error:
        problems = error.errors()
    found += [_shown(problem, data) for problem in problems]
    wrong = frozenset(str(problem["loc"][0]) for problem in problems if problem["loc"])
    if not isinstance(data, Mapping):
        return None, wrong
    try:
        return shape.model_validate({key: value for key, value in data.items() if str(key) not in wrong}), wrong
    except ValidationError:  # what must be there is not
        return None, wrong


def checked_section(data: object, shape: type[T], folder: Path, problems: Problems) -> T | None:
    """Return one section in what YAML has read; None if it has problems, which go to ``problems``.

    Args:
        data: that.
        shape: what the section is.
        folder: where each ``FilePath`` in it begins that is relative.
        problems: of the section.
    """
    try:
        return shape.model_validate(data, context={"folder": folder})
    except ValidationError as error:
        for problem in error.errors():
            problems.at(*problem["loc"]).add(_message(problem))
    return None


def _shown(problem: Any, data: object) -> str:
    """Return one of pydantic's problems as ``line 7: flows[2].class: what is wrong``."""
    steps = tuple(problem["loc"])
    return placed(data, steps[:-1] if steps[-1:] == ("[key]",) else steps, _message(problem))


_PLAIN = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "dict_type": "must be `key: value` pairs",
    "model_type": "must be `key: value` pairs",
    "dataclass_type": "must be `key: value` pairs",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "bool_parsing": "is neither yes nor no",
    "bool_type": "is neither yes nor no",
    "int_parsing": "is not a whole number",
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "string_type": "must be text: put it in quotes",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}
"""What pydantic finds, by its name for that, as an operator is told it."""


def _message(problem: Any) -> str:
    if problem["type"] in _PLAIN:
        return _PLAIN[problem["type"]]
    if problem["type"] in {"enum", "literal_error"}:
        return f'"{str(problem["input"])[:80]}" is none of {problem["ctx"]["expected"]}'
    return str(problem["msg"]).removeprefix("Value error, ")
