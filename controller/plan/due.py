"""What becomes due when. Pure."""

import heapq
from collections.abc import Callable, Iterator

_FEW = 64


class Due:
    """Names and their times, Unix time; a name may have several. What is dropped is not kept for long."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._there: set[tuple[int, str]] = set()  # what is in the heap
        self._dropped: set[str] = set()

    def __len__(self) -> int:
        """Return how many times there are, those of dropped names included while they are kept."""
        return len(self._heap)

    def add(self, at_us: int, name: str) -> None:
        """Note that something is to be looked at; a name that was dropped is named again."""
        self._dropped.discard(name)
        if (at_us, name) not in self._there:
            self._there.add((at_us, name))
            heapq.heappush(self._heap, (at_us, name))

    def drop(self, name: str) -> None:
        """Never name it again, unless it is added again."""
        self._dropped.add(name)
        if len(self._dropped) > max(_FEW, len(self._heap) // 8):  # so that each costs the same, however many there are
            self._heap = [entry for entry in self._heap if entry[1] not in self._dropped]
            heapq.heapify(self._heap)
            self._there = set(self._heap)
            self._dropped.clear()

    def next_us(self) -> int | None:
        """Return when something becomes due; None if nothing does."""
        while self._heap and self._heap[0][1] in self._dropped:
            self._pop()
        return self._heap[0][0] if self._heap else None

    def skip(self, now_us: int, needs_nothing: Callable[[str, int], bool]) -> None:
        """Pass over what is due by now, the earliest first, as long as nothing need be done then."""
        while (next_us := self.next_us()) is not None and next_us <= now_us and needs_nothing(self._heap[0][1], now_us):
            self._pop()

    def until(self, now_us: int) -> Iterator[str]:
        """Yield, once, what is due by now, the earliest first, and what is added meanwhile."""
        while True:
            next_us = self.next_us()
            if next_us is None or next_us > now_us:
                return
            yield self._pop()

    def _pop(self) -> str:
        earliest = heapq.heappop(self._heap)
        self._there.discard(earliest)
        return earliest[1]
