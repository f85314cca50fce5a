"""A step function of integers over integer time, fast at any size."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

BLOCK = 96  # breakpoints a block holds at most; measured: 64 to 128 are alike from 300 to 300,000 reservations
ALWAYS = -(2**63)  # before all times


class _Block:
    """Neighbouring breakpoints; ``values[i] + offset`` holds from ``times[i]`` on. ``least``, ``most``: bounds.

    ``owner``: of the function that may change it; others that have it copy it first.
    """

    __slots__ = ("least", "most", "offset", "owner", "times", "values")

    def __init__(self, owner: object, times: list[int], values: list[int]) -> None:
        self.owner = owner
        self.times = times
        self.values = values
        self.offset = 0
        self.least = min(values)
        self.most = max(values)

    def raise_by(self, amount: int, first: int, last: int) -> None:
        """Add to the breakpoints ``first <= i < last``."""
        if first == 0 and last == len(self.values):
            self.offset += amount
            self.least += amount
            self.most += amount
        elif first < last:
            self.values[first:last] = [value + amount for value in self.values[first:last]]
            self.measure()

    def copied(self, owner: object) -> "_Block":
        """Return one with the same breakpoints that goes its own way."""
        new = _Block.__new__(_Block)
        new.owner = owner
        new.times, new.values, new.offset = self.times.copy(), self.values.copy(), self.offset
        new.least, new.most = self.least, self.most
        return new

    def measure(self) -> None:
        """Work out ``least`` and ``most`` again."""
        self.least = min(self.values) + self.offset
        self.most = max(self.values) + self.offset


class Steps:
    """A function of time that is constant between breakpoints; intervals are half-open, ``[start, end)``.

    Breakpoints lie in blocks that know their least and greatest value and take an addition to all of them at once. A
    query or a change costs O(log n) to find its place, O(BLOCK) there, and O(1) for each whole block in between: a
    window of hours costs the same at any size, a year costs n / BLOCK. Equal functions have equal breakpoints.
    A copy has the same blocks, until one of the two changes one: to copy costs n / BLOCK in C.

    >>> free = Steps(10)
    >>> free.add(3, 7, -4)
    >>> free.least(0, 3), free.least(0, 4), free.least(7, 9)
    (10, 6, 10)
    >>> list(free.pieces(2, 9))
    [(2, 3, 10), (3, 7, 6), (7, 9, 10)]
    """

    __slots__ = ("_blocks", "_heads", "_owner")

    def __init__(self, value: int = 0) -> None:
        """Start with one value at all times."""
        self._owner = object()
        self._blocks = [_Block(self._owner, [ALWAYS], [value])]
        self._heads = [ALWAYS]  # the first time of each block

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same value at every time."""
        return isinstance(other, Steps) and list(self.breakpoints()) == list(other.breakpoints())

    __hash__ = None  # type: ignore[assignment]  # it changes

    def copied(self) -> "Steps":
        """Return the same function, which goes its own way from then on."""
        new = Steps()
        new._blocks, new._heads = self._blocks.copy(), self._heads.copy()
        self._owner = object()  # neither is the owner of what both have
        return new

    def _own(self, b: int) -> _Block:
        """Return a block that is to be changed: a copy of it in its place, if others may have it too."""
        block = self._blocks[b]
        if block.owner is not self._owner:
            block = self._blocks[b] = block.copied(self._owner)
        return block

    def add(self, start: int, end: int, amount: int) -> None:
        """Add ``amount`` over ``[start, end)``.

        Raises:
            ValueError: the interval is empty.
        """
        _check(start, end)
        if not amount:
            return
        self._split(start)
        self._split(end)
        (b, i), (last, j) = self._place(start), self._place(end)
        while b < last:
            block = self._own(b)
            block.raise_by(amount, i, len(block.times))
            b, i = b + 1, 0
        if i < j:
            self._own(last).raise_by(amount, i, j)
        self._join(end)
        self._join(start)

    def value(self, at: int) -> int:
        """Return the value at an instant."""
        b, i = self._holding(at)
        return self._blocks[b].values[i] + self._blocks[b].offset

    def least(self, start: int, end: int) -> int:
        """Return the least value in ``[start, end)``."""
        _check(start, end)
        return min(block.least if whole else min(values) for block, whole, values in self._spans(start, end))

    def most(self, start: int, end: int) -> int:
        """Return the greatest value in ``[start, end)``."""
        _check(start, end)
        return max(block.most if whole else max(values) for block, whole, values in self._spans(start, end))

    def first_below(self, level: int, start: int, end: int) -> int | None:
        """Return the first instant of ``[start, end)`` with a value below ``level``; None if there is none."""
        return self._first(start, end, lambda block: block.least < level, lambda value: value < level)

    def first_reaching(self, level: int, start: int, end: int) -> int | None:
        """Return the first instant of ``[start, end)`` with a value of at least ``level``; None if there is none."""
        return self._first(start, end, lambda block: block.most >= level, lambda value: value >= level)

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield (from, until, value) for each constant piece of ``[start, end)``."""
        _check(start, end)
        (b, i), begin = self._holding(start), start
        while begin < end:
            block = self._blocks[b]
            value = block.values[i] + block.offset
            b, i = (b, i + 1) if i + 1 < len(block.times) else (b + 1, 0)
            until = min(end, self._blocks[b].times[i]) if b < len(self._blocks) else end
            yield begin, until, value
            begin = until

    def breakpoints(self) -> Iterator[tuple[int, int]]:
        """Yield (time, value from then on); the first time is :data:`ALWAYS`."""
        for block in self._blocks:
            yield from ((t, v + block.offset) for t, v in zip(block.times, block.values, strict=True))

    def _holding(self, at: int) -> tuple[int, int]:
        """Return block and index of the breakpoint whose value holds at an instant."""
        b = bisect_right(self._heads, at) - 1
        return b, bisect_right(self._blocks[b].times, at) - 1

    def _place(self, at: int) -> tuple[int, int]:
        """Return block and index of a breakpoint that is there."""
        b = bisect_right(self._heads, at) - 1
        return b, bisect_left(self._blocks[b].times, at)

    def _spans(self, start: int, end: int) -> Iterator[tuple[_Block, bool, list[int]]]:
        """Yield for each block that ``[start, end)`` touches: itself, whether all of it is inside, else its values."""
        (b, i), (last, j) = self._holding(start), self._holding(end - 1)
        for k in range(b, last + 1):
            block = self._blocks[k]
            low, high = (i if k == b else 0), (j + 1 if k == last else len(block.times))
            whole = low == 0 and high == len(block.times)
            yield block, whole, [] if whole else [v + block.offset for v in block.values[low:high]]

    def _first(self, start: int, end: int, may: Callable[[_Block], bool], holds: Callable[[int], bool]) -> int | None:
        _check(start, end)
        b, i = self._holding(start)
        while b < len(self._blocks) and self._heads[b] < end:
            block = self._blocks[b]
            if may(block):
                for k in range(i, len(block.times)):
                    if holds(block.values[k] + block.offset):
                        at = max(start, block.times[k])
                        return at if at < end else None
            b, i = b + 1, 0
        return None

    def _split(self, at: int) -> None:
        """Make ``at`` a breakpoint."""
        b, i = self._holding(at)
        block = self._blocks[b]
        if block.times[i] == at:
            return
        block = self._own(b)
        block.times.insert(i + 1, at)
        block.values.insert(i + 1, block.values[i])
        if len(block.times) > BLOCK:
            half = len(block.times) // 2
            right = _Block(self._owner, block.times[half:], [v + block.offset for v in block.values[half:]])
            del block.times[half:], block.values[half:]
            block.measure()
            self._blocks.insert(b + 1, right)
            self._heads.insert(b + 1, right.times[0])

    def _join(self, at: int) -> None:
        """Drop the breakpoint at ``at`` if nothing changes there."""
        b, i = self._place(at)
        block = self._blocks[b]
        if i:
            before = block.values[i - 1] + block.offset
        else:
            before = self._blocks[b - 1].values[-1] + self._blocks[b - 1].offset
        if block.values[i] + block.offset != before:
            return
        block = self._own(b)
        del block.times[i], block.values[i]
        if not block.times:
            del self._blocks[b], self._heads[b]
            return
        self._heads[b] = block.times[0]
        if i == 0:  # inside a block the neighbour has the same value, so least and most stay
            block.measure()


def _check(start: int, end: int) -> None:
    if not start < end:
        raise ValueError(f"the interval [{start}, {end}) is empty")
