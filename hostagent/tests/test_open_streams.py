"""What the streams to all controllers know of demand."""

import pytest

from hostagent.agent.open_streams import OpenStreams
from topology.protocol import Demand, to_bytes


class StreamOfSent:
    """Keeps what it is to send."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        """Note it."""
        self.sent.append(message)


@pytest.fixture
def stream():
    """A stream that is open."""
    return StreamOfSent()


@pytest.fixture
def streams(stream):
    """The streams that there are: that one."""
    known = OpenStreams()
    known.add(stream)
    return known


def test_demand_is_told_once_and_again_when_it_is_another(streams, stream):
    wants, stands_by = Demand(7, "a", wants=True, standing_by=False), Demand(7, "a", wants=False, standing_by=True)
    for demand in (wants, wants, stands_by):
        streams.tell_demand([demand])
    assert stream.sent == [to_bytes(wants), to_bytes(stands_by)]


def test_a_stream_that_opens_later_is_told_what_the_others_know(streams, stream):
    known, later = Demand(7, "a", wants=True, standing_by=False), StreamOfSent()
    streams.tell_demand([known])
    streams.add(later)
    streams.tell_demand([known])
    assert (len(stream.sent), later.sent) == (1, [to_bytes(known)])


def test_nothing_is_kept_of_an_entry_that_is_not_watched_any_more(streams, stream):
    for number in range(9):
        streams.tell_demand([Demand(number, f"image{number}", wants=True, standing_by=False)])
    assert list(streams._demand_said[stream]) == ["image8"]
