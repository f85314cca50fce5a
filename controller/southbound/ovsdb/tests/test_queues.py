"""Which queues are refused before anything is written."""

import pytest

from controller.southbound.errors import NotExpressible
from controller.southbound.ovsdb.queues import PortQueues, Queue, check_queues

GIGABIT = 1_000_000_000


def port(*queues: tuple[int, int, int], burst_bits: int = 1_000_000) -> PortQueues:
    """A port of 1 Gbit/s with queues of these numbers, minima and maxima."""
    return PortQueues(GIGABIT, tuple(Queue(*each, burst_bits) for each in queues))


def test_queues_that_fill_the_port_are_accepted():
    check_queues(port((0, GIGABIT // 2, GIGABIT), (2, GIGABIT // 2, GIGABIT // 2)))


@pytest.mark.parametrize(
    "wanted",
    [
        port((0, GIGABIT // 2, GIGABIT), (1, GIGABIT // 2 + 1, GIGABIT)),
        port((0, 11_999, GIGABIT)),
        port((1, GIGABIT, GIGABIT)),
        port((0, 100_000, GIGABIT), (2, 100_000, GIGABIT), (1, 100_000, GIGABIT)),
        port((0, 100_000, GIGABIT), (0, 100_000, GIGABIT)),
        port((0, GIGABIT, GIGABIT + 1)),
        port((0, 200_000, 100_000)),
        port((0, GIGABIT, GIGABIT), burst_bits=0),
        port((0, 1e9, GIGABIT)),  # type: ignore[arg-type]
        port(),
    ],
    ids=[
        "sum of minima above the port",
        "below what OVS raises silently",
        "no queue 0",
        "not ascending",
        "a number twice",
        "maximum above the port",
        "maximum below minimum",
        "no burst",
        "a float",
        "no queue",
    ],
)
def test_what_htb_would_not_do_as_said_is_refused(wanted):
    with pytest.raises(NotExpressible):
        check_queues(wanted)
