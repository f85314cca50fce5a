"""What has changed in memory and is not known to be saved yet, and what of it is saved. Pure.

Two kinds of changes are told apart. A *decision* is somebody's wish: until it is saved nobody is told of it, and
nothing is done by it. What the *clock* does follows from what is saved: it is acted on at once, and saved when that can
be.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Unsaved(Generic[K, V]):
    """The unsaved changes of one kind of things, which have names; None is a thing that is not there.

    Changes are handed over in numbered parts, which are saved in the order of their numbers or not at all.
    """

    def __init__(self) -> None:
        self._fresh: dict[K, V | None] = {}  # not handed over yet
        self._before: dict[K, V | None] = {}  # the same, as it was before
        self._saved: dict[K, V | None] = {}  # what is saved of that which has changed since
        self._last: dict[K, int] = {}  # the part with the last change
        self._decided: dict[K, int] = {}  # the part with the last decision

    def put(self, name: K, before: V | None, after: V | None) -> None:
        """Note a change."""
        self._saved.setdefault(name, before)
        self._before.setdefault(name, before)
        self._fresh[name] = after

    def __bool__(self) -> bool:
        """Return whether something has changed that was not handed over."""
        return bool(self._fresh)

    def before(self) -> dict[K, V | None]:
        """Return, of all that would be handed over now, what was handed over (or was there) before it."""
        return {name: self._before[name] for name in self._fresh}

    def handed_over(self, number: int, *, decided: bool) -> dict[K, V | None]:
        """Return, once, what has changed since the last call."""
        part, self._fresh, self._before = self._fresh, {}, {}
        self._last.update(dict.fromkeys(part, number))
        if decided:
            self._decided.update(dict.fromkeys(part, number))
        return part

    def saved(self, number: int, part: Mapping[K, V | None]) -> list[V]:
        """Note that a part is saved; return what was decided of it, as it was saved before and as it is now."""
        news: list[V] = []
        for name, value in part.items():
            if name not in self._saved:  # it was withdrawn, by a failure that was heard of first
                continue
            if name in self._decided:
                news += (one for one in (self._saved[name], value) if one is not None)
            if self._decided.get(name) == number:
                del self._decided[name]
            if self._last[name] == number and name not in self._fresh:
                del self._saved[name], self._last[name]
            else:
                self._saved[name] = value
        return news

    def __contains__(self, name: object) -> bool:
        """Return whether something of this name is not saved as it is now."""
        return name in self._saved

    def drop(self, name: K) -> None:
        """Forget that something has changed."""
        for known in (self._fresh, self._before, self._saved, self._last, self._decided):
            known.pop(name, None)

    def undecided(self) -> dict[K, V | None]:
        """Return, of all that has decisions which are not saved yet, what is saved."""
        return {name: self._saved[name] for name in self._decided}

    def withdrawn(self) -> dict[K, V | None]:
        """Forget the decisions that are not saved; return what is to be put in their place."""
        undecided, self._decided = self.undecided(), {}
        for name in undecided:
            del self._saved[name]
            self._last.pop(name, None)
            self._fresh.pop(name, None)
            self._before.pop(name, None)
        return undecided

    def of_clock(self) -> dict[K, V | None]:
        """Return, of all that only the clock has changed since, what is saved."""
        return {name: value for name, value in self._saved.items() if name not in self._decided}


def with_saved(now: Mapping[K, V], unsaved: Unsaved[K, V]) -> Mapping[K, V]:
    """Return what there is with all that has unsaved decisions as it is saved."""
    undecided = unsaved.undecided()
    if not undecided:
        return now
    shown = {**now, **undecided}  # in C: somebody holds the lock meanwhile
    for name in (name for name, known in undecided.items() if known is None):
        del shown[name]
    return cast("dict[K, V]", shown)
