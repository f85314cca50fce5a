"""The number of the meter that each sender has for itself, kept as long as anything is planned of it."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from controller.southbound.errors import MetersExhausted
from controller.southbound.openflow.circuit_ports import FIRST_SENDER_METER_ID
from controller.southbound.openflow.state import METER_IDS
from topology.protocol import FlowClass

SENDER_METER_IDS = range(FIRST_SENDER_METER_ID, METER_IDS.stop)


class SenderKey(NamedTuple):
    """What has a meter of its own: a host here, in a class, by the circuit that begins with a node.

    To one host beyond, or to any of them if ``target`` is "".
    """

    host: str
    flow_class: FlowClass
    head: str
    target: str = ""


_NONE: Mapping[SenderKey, int] = {}


def numbered_meters(
    switch: str, homes: Mapping[SenderKey, int], before: Mapping[SenderKey, int]
) -> dict[SenderKey, int]:
    """Return each sender's meter: the one it had, else the next free one from its home on. Pure.

    A home is a place that senders share only where there are more of them than numbers. So a controller that starts
    again finds nearly all numbers as it left them. A number that has just become free is taken last: its meter goes in
    the same messages in which the other comes.

    >>> a, b, c = (SenderKey(host, FlowClass.URGENT, "north") for host in "abc")
    >>> numbered_meters("ls1", {b: 1, c: 0}, {a: 2000, b: 2005}) == {b: 2005, c: 2001}
    True

    Args:
        switch: its name.
        homes: the senders, and where each would like to be.
        before: the numbers that senders have had until now.

    Raises:
        MetersExhausted: there are more senders than numbers.
    """
    if len(homes) > len(SENDER_METER_IDS):
        raise MetersExhausted(switch, len(homes), len(SENDER_METER_IDS))
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
    count = len(SENDER_METER_IDS)
    return (SENDER_METER_IDS[(home + step) % count] for step in range(count))


class MeterNumbers:
    """The numbers at every switch. For one thread a switch at a time: who writes to it, or audits it."""

    def __init__(self) -> None:
        self._known: dict[str, dict[SenderKey, int]] = {}

    def of(
        self, switch: str, senders: AbstractSet[SenderKey], home: Callable[[SenderKey], int]
    ) -> Mapping[SenderKey, int]:
        """Return the meters of a switch's senders; those of senders that are not among them become free.

        The very same value as long as the same senders are there.

        Raises:
            MetersExhausted: there are more senders than numbers.
        """
        before = self.latest(switch)
        if before.keys() != senders or switch not in self._known:
            homes = {key: home(key) for key in sorted(senders)}
            self._known[switch] = numbered_meters(switch, homes, before)
        return self.latest(switch)

    @property
    def known(self) -> Mapping[str, Mapping[SenderKey, int]]:
        """By switch that was asked about, the meters of the senders that were asked for last."""
        return dict(self._known)

    def latest(self, switch: str) -> Mapping[SenderKey, int]:
        """Return the meters of the senders that were asked for last."""
        return self._known.get(switch, _NONE)
