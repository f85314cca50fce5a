"""Allocations whose connections were given back because of catastrophic loss, and of which none is left. Pure.

The kernel part ends a fallback when it looks at one of its connections, and the agent has it look at all that are open
at each look of its own. So where the time of the last account stays as it is from look to look, there is none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hostagent.kernel.layout import EntryCounters

LEAST_LOOKS = 2  # that found none; one may have missed what came or moved meanwhile


@dataclass(frozen=True, slots=True)
class Fallen:
    """One that has fallen back.

    Attributes:
        seen: its counters, at the last look.
        looks: at how many in a row none of its connections was there.
    """

    seen: EntryCounters
    looks: int = 0


def fallen_after(
    before: Mapping[str, Fallen], seen: Mapping[str, EntryCounters], *, is_leased: bool
) -> dict[str, Fallen]:
    """Return by name those that have fallen back at this look; while no lease runs no connection is looked at."""
    return {
        name: Fallen(one, before[name].looks + 1 if is_leased and _is_unmoved(before.get(name), one) else 0)
        for name, one in seen.items()
        if one.fallback_since_ns
    }


def deserted(fallen: Mapping[str, Fallen], now_ns: int, hold_ns: int) -> Iterator[str]:
    """Yield those that nobody is left to end: after the hold, which doubles as in ``judge`` of bpf/loss.h."""
    for name, one in fallen.items():
        held_ns = hold_ns << (one.seen.fallbacks - 1 & 7)
        if one.looks > LEAST_LOOKS and now_ns - one.seen.fallback_since_ns >= held_ns:
            yield name


def _is_unmoved(before: Fallen | None, now: EntryCounters) -> bool:
    return before is not None and before.seen.accounted_ns == now.accounted_ns
