"""The keys of a network's file, taken one by one: what is wrong with each, and what nobody has taken, is a problem."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from topology import file_values as value
from topology.problems import Problems

T = TypeVar("T")


class FileKeys:
    """The keys of a mapping, taken one by one; what is wrong with each goes to the problems."""

    def __init__(self, values: object, problems: Problems) -> None:
        self._is_mapping = isinstance(values, Mapping)
        self._left: dict[object, object] = dict(values) if isinstance(values, Mapping) else {}
        self._names: list[str] = []
        self._problems = problems
        self.is_whole = self._is_mapping
        if not self._is_mapping:
            problems.add("must be `key: value` pairs")

    def take(self, key: str, parse: Callable[[object], T], default: T | None = None) -> T | None:
        """Return what a key says; the default if it is not there, None if it is wrong."""
        self._names.append(key)
        if key not in self._left:
            return default
        try:
            return parse(self._left.pop(key))
        except ValueError as error:
            self._problems.at(key).add(error)
            self.is_whole = False
            return None

    def need(self, key: str, parse: Callable[[object], T], example: str) -> T | None:
        """Return what a key says that must be there; None, and a problem, if it is wrong or missing."""
        if key not in self._left and self._is_mapping:
            self._problems.add(f"`{key}` is missing, such as `{key}: {example}`")
            self.is_whole = False
        return self.take(key, parse)

    def within(self, key: str, example: str) -> "FileKeys | None":
        """Return the keys of the mapping at a key that must be there; None, and a problem, if it is not."""
        found = self.need(key, _Boxed, example)
        return None if found is None else FileKeys(found.values, self._problems.at(key))

    def below(self, key: str) -> dict[str, object]:
        """Return the named things in the mapping at a key; what has no usable name is a problem."""
        found = self.take(key, _Boxed, _Boxed({}))
        problems = self._problems.at(key)
        values = found.values if found is not None else {}
        if not isinstance(values, Mapping):
            problems.add("must be `name: ...` pairs")
            return {}
        named = {}
        for each, inside in values.items():
            try:
                named[value.name(each)] = inside
            except ValueError as error:
                problems.at(str(each)).add(error)
                self.is_whole = False
        return named

    def close(self) -> None:
        """Add a problem for each key that nobody has taken."""
        for key in self._left:
            self._problems.at(str(key)).add(f"there is no such key; there are {', '.join(self._names)}")


@dataclass(frozen=True, slots=True)
class _Boxed:
    """What stands at a key, not looked at yet."""

    values: object
