"""The file of the configuration: YAML read into plain values, and these into sections; every problem at once."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from controller.errors import ConfigError
from controller.settings.problems import path_of
from topology.yaml_text import NotYaml, values_of

T = TypeVar("T", bound=BaseModel)


def values_in(path: Path) -> object:
    """Return what the YAML in a file says.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return values_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), (f"cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), (f"is not UTF-8 text: {error.reason} at byte {error.start}",)) from error
    except NotYaml as error:
        raise ConfigError(str(path), (str(error),)) from error


def sections_of(data: object, shape: type[T], source: str) -> T:
    """Return the sections in what YAML has read.

    Args:
        data: that.
        shape: what sections there may be.
        source: what the file is called in problems.

    Raises:
        ConfigError: with every key and value that is not well-formed, and its path.
    """
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        raise ConfigError(source, tuple(_shown(problem) for problem in error.errors())) from error


def _shown(problem: Any) -> str:
    """Return one of pydantic's problems as ``flows[2].class: what is wrong``."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "there is no such key"
    return f"{path_of(*problem['loc']) or 'the file'}: {message}"
