"""The event stream, over a real connection: a client in process would wait for its end."""

import asyncio
import itertools
import json

import pytest

from controller.events import Events
from controller.northbound.events import EventStream, written
from controller.northbound.tests.site import dependencies_of
from controller.tests.fakes import FakeSite


@pytest.fixture
def events():
    """Events by a clock that goes on."""
    clock = itertools.count(1_767_225_600_000_000, 10)
    return Events(lambda: next(clock))


def lines(events, number, count):
    """The first so many pieces of the stream after an event."""

    async def read():
        stream = written(events, number)
        found = [await anext(stream) for _ in range(count)]
        await stream.aclose()
        return b"".join(found).decode()

    return asyncio.run(asyncio.wait_for(read(), 5))


def test_an_event_has_an_id_a_name_and_its_fields_as_json(events):
    before = events.last
    events.publish("reservation.held", reservation="r1", rate_bps=5)
    stream = lines(events, before, 2)
    head, came_from, number, name, data = [line for line in stream.splitlines() if line]
    assert (head, came_from) == ("retry: 1000", f"id: {before}")  # to come back with, if nothing happens before
    assert (number, name) == (f"id: {events.last}", "event: reservation.held")
    said = json.loads(data.removeprefix("data: "))
    assert (said["reservation"], said["rate_bps"]) == ("r1", 5)
    assert said["at"].startswith("2026-01-01T00:00:00.0000")


def test_a_text_with_a_newline_stays_one_event(events):
    before = events.last
    events.publish("store.failed", why="a\nb\r\nc")
    assert lines(events, before, 2).count("\n\n") == 2


def test_what_is_not_remembered_is_said_to_be_lost(events):
    events.publish("a")
    stream = lines(events, 5, 2)
    assert stream.index("event: lost") < stream.index("event: a")


def resumed(site, last_event_id):
    """The first piece of the stream for a client that has seen an event."""

    async def read():
        answer = await EventStream(dependencies_of(site)).listen(last_event_id)
        stream = answer.body_iterator
        found = [await anext(stream), await anext(stream)]
        await stream.aclose()
        return b"".join(found).decode()

    return asyncio.run(asyncio.wait_for(read(), 5))


def test_a_client_that_comes_back_hears_what_it_has_missed(events):
    site = FakeSite()
    site.state.events = events
    events.publish("a")
    seen = str(events.last)
    events.publish("b")
    stream = resumed(site, seen)
    assert ("event: b" in stream, "event: a" in stream, "event: lost" in stream) == (True, False, False)


@pytest.mark.parametrize("last_event_id", ["", "x", "-1", "9" * 64])
def test_an_id_that_is_none_of_ours_is_lost_and_no_error(events, last_event_id):
    site = FakeSite()
    site.state.events = events
    events.publish("a")
    assert "event: lost" in resumed(site, last_event_id)
