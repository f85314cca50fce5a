"""The event stream, over a real connection: a client in process would wait for its end."""

import asyncio
import contextlib
import itertools
import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import Request

from controller.events import Events
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.events import MOST_OF_ONE, EventStream, written
from controller.northbound.tests.site import api_of, dependencies_of
from controller.security.connections import Places
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import FakeSite
from controller.tests.serving import served
from mininet_tests.testing.eventually import eventually

HERE = Request({"type": "http", "client": ("192.0.2.1", 5000)})


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


def test_half_a_character_in_what_happened_ends_no_stream(events):
    before = events.last
    events.publish("reservation.failed", why="half of \ud83d")
    stream = lines(events, before, 2)
    assert '"why":"half of \ufffd"' in stream, stream


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
        answer = await EventStream(dependencies_of(site)).listen(HERE, last_event_id)
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


def test_one_address_listens_so_often_and_a_place_is_free_again_when_one_goes():
    with served(api_of(FakeSite())) as url, httpx.Client(base_url=url, timeout=20) as client:
        with contextlib.ExitStack() as listening:
            for _ in range(MOST_OF_ONE):
                assert listening.enter_context(client.stream("GET", "/v1/events")).status_code == 200
            with client.stream("GET", "/v1/events") as one_more:
                assert one_more.status_code == 429
                assert one_more.headers["retry-after"] == "30"
                assert json.loads(one_more.read())["type"] == "/problems/too-many"
            assert client.get("/v1/plan").status_code == 200

        def is_let_in():
            with client.stream("GET", "/v1/events") as one:
                return one.status_code == 200

        eventually(is_let_in, within_s=20, what="a place that is free again")


def test_whose_token_is_revoked_or_over_hears_nothing_more_and_gives_the_place_back():
    site, now = FakeSite(), datetime(2026, 11, 23, tzinfo=UTC)
    text, kept = new_token("ana", Role.READ, now, now + timedelta(days=1))
    known = {"tokens": Tokens((kept,)), "now": now}
    rules = AccessRules(lambda: known["tokens"], lambda: known["now"])
    with served(api(dependencies_of(site), rules)) as url, httpx.Client(base_url=url, timeout=20) as client:
        for over in ({"tokens": Tokens(())}, {"now": now + timedelta(days=1)}):
            bearer = {"Authorization": f"Bearer {text}"}
            with client.stream("GET", "/v1/events", headers=bearer) as stream:
                heard = stream.iter_lines()
                assert next(heard) == "retry: 1000"
                site.state.events.publish("known", over=str(over))
                assert "event: known" in heard
                known.update(over)
                site.state.events.publish("secret")
                assert "event: secret" not in list(heard), "it has come to its end"
            known.update({"tokens": Tokens((kept,)), "now": now})


def test_who_comes_from_elsewhere_finds_a_place_until_all_are_taken():
    places = Places(3, 2)
    assert [places.take("a"), places.take("a"), places.take("a"), places.take("b"), places.take("c")] == [
        True,
        True,
        False,
        True,
        False,
    ]
    places.leave("a")
    assert places.take("c")
