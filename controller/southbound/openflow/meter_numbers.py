"""The number of the meter that each lane has for itself, kept as long as the lane is planned."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from controller.southbound.errors import MetersExhausted
from controller.southbound.openflow.circuit_ports import FIRST_LANE_METER_ID
from controller.southbound.openflow.state import METER_IDS

LANE_METER_IDS = range(FIRST_LANE_METER_ID, METER_IDS.stop)

LaneKey = tuple[str, str, int | None]  # the host here, the one beyond, and the mark that tells it from others
_NONE: Mapping[LaneKey, int] = {}


def numbered(switch: str, homes: Mapping[LaneKey, int], before: Mapping[LaneKey, int]) -> dict[LaneKey, int]:
    """Return each lane's meter: the one it had, else the next free one from its home on. Pure.

    A home is a place that lanes share only where there are more of them than numbers. So a controller that starts again
    finds nearly all numbers as it left them. A number that has just become free is taken last: its meter goes in the
    same messages in which the other comes.

    >>> numbered("ls1", {("b", "z", None): 1, ("c", "z", None): 0}, {("a", "z", None): 2000, ("b", "z", None): 2005})
    {('b', 'z', None): 2005, ('c', 'z', None): 2001}

    Args:
        switch: its name.
        homes: the lanes, and where each would like to be.
        before: the numbers that lanes have had until now.

    Raises:
        MetersExhausted: there are more lanes than numbers.
    """
    if len(homes) > len(LANE_METER_IDS):
        raise MetersExhausted(switch, len(homes), len(LANE_METER_IDS))
    found = {key: before[key] for key in homes if key in before}
    taken, left = set(found.values()), set(before.values())
    for key, home in homes.items():
        if key not in found:
            free = next((n for n in _from(home) if n not in taken and n not in left), None)
            found[key] = next(n for n in _from(home) if n not in taken) if free is None else free
            taken.add(found[key])
    return found


def _from(home: int) -> Iterator[int]:
    """Yield all numbers, beginning with a home."""
    count = len(LANE_METER_IDS)
    return (LANE_METER_IDS[(home + step) % count] for step in range(count))


class MeterNumbers:
    """The numbers at every switch. For one thread a switch at a time: who writes to it, or audits it."""

    def __init__(self) -> None:
        self._known: dict[str, dict[LaneKey, int]] = {}

    def of(self, switch: str, lanes: AbstractSet[LaneKey], home: Callable[[LaneKey], int]) -> Mapping[LaneKey, int]:
        """Return the meters of a switch's lanes; those of lanes that are not among them become free.

        The very same value as long as the same lanes are there.

        Raises:
            MetersExhausted: there are more lanes than numbers.
        """
        before = self.latest(switch)
        if before.keys() != lanes:
            homes = {key: home(key) for key in sorted(lanes, key=repr)}
            self._known[switch] = numbered(switch, homes, before)
        return self.latest(switch)

    def latest(self, switch: str) -> Mapping[LaneKey, int]:
        """Return the meters of the lanes that were asked for last."""
        return self._known.get(switch, _NONE)
