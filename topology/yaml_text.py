"""YAML as people write it, read into plain values that know their lines; whatever PyYAML stumbles over is one error."""

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_MOST_DIGITS = 100
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)")  # YAML 1.1 has 010 as 8 and 1:30 as 90, too


class NotYaml(ValueError):
    """A text that is not YAML, or not with values that there are."""


class Lined(dict[Any, Any]):
    """A mapping that knows the lines on which it and its keys stand, from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[Hashable, int] = {}


@dataclass(frozen=True, slots=True)
class YamlText:
    """What a text says.

    Attributes:
        values: in plain values; mappings know their lines.
        repeated: keys that stand twice in one mapping, as problems for people; the last one is in the values.
    """

    values: object
    repeated: tuple[str, ...]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader, of libyaml where there is one, with lines, and with an eye on keys that stand twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []

    def lined(self, node: yaml.MappingNode) -> Iterator[Lined]:
        """Yield a mapping, empty at first, so that it may hold itself."""
        values = Lined(node.start_mark.line + 1)
        yield values
        written = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        values.update(self.construct_mapping(node))
        for key_node in written:
            key, line = self.construct_object(key_node), key_node.start_mark.line + 1
            if key in values.lines:
                self.repeated.append(
                    f'line {line}: the key "{key}" stands on line {values.lines[key]} already: take one of them out'
                )
            values.lines[key] = line

    def whole(self, node: yaml.ScalarNode) -> int:
        """Return a whole number that people read as YAML does, and Python can show: it does no thousands of digits.

        Raises:
            NotYaml: it is written otherwise than in decimal or as 0x..., or has more digits than anything has.
        """
        line = node.start_mark.line + 1
        if len(node.value) > _MOST_DIGITS:
            raise NotYaml(f"line {line}: a number of {len(node.value):,} digits, which nothing has")
        if not _WHOLE.fullmatch(node.value):
            cure = "without a 0 before it or as 0x..., or in quotes if it is text"
            raise NotYaml(f'line {line}: "{node.value}" may be read as several numbers: write it {cure}')
        return int(self.construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.lined)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole)


def read(text: str) -> YamlText:
    r"""Return what a YAML text says, and which keys it says twice.

    >>> read("a: 1\na: 2").repeated
    ('line 2: the key "a" stands on line 1 already: take one of them out',)

    Raises:
        NotYaml: in one line, what is wrong. PyYAML's own errors are not all: a date in month 13 is a ValueError to it,
            ``!!int ''`` an IndexError, ``!!bool x`` a KeyError, ``!!timestamp x`` an AttributeError, and very deep
            nesting a RecursionError.
    """
    try:
        loader = _Loader(text)
        return YamlText(loader.get_single_data(), tuple(loader.repeated))
    except NotYaml:
        raise
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise NotYaml(f"is not YAML: {words}") from error


def values_of(text: str) -> object:
    """Return what a YAML text says, in plain values.

    >>> values_of("{a: [1, b]}")
    {'a': [1, 'b']}

    Raises:
        NotYaml: in one line, what is wrong; a key that stands twice is.
    """
    found = read(text)
    if found.repeated:
        raise NotYaml("; ".join(found.repeated))
    return found.values


def line_of(values: object, steps: tuple[str | int, ...]) -> int | None:
    r"""Return the line of what stands at the end of some steps, or of the last that is there; None if unknown.

    >>> line_of(read("a:\n  - b: 1\n    c: 2").values, ("a", 0, "c"))
    3
    """
    line = None
    for step in steps:
        if isinstance(values, Lined):
            line = values.lines.get(step, line)
        if isinstance(values, dict) and step in values:
            values = values[step]
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
            line = values.line if isinstance(values, Lined) else line
        else:
            return line
    return line
