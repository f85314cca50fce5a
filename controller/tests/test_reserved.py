"""Reservations that have ended: they leave memory when that is saved, and all is answered as if they had not."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event

from controller.database import Changes, EndedKind
from controller.database import past as past_rows
from controller.northbound.tests.site import MANY, NIGHT, api_of
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import ReservationFilter
from controller.reserved import Reserved
from controller.tests.database_child import reservation
from controller.tests.fakes import START_US, FakeSite
from controller.use_cases import UseCases
from controller.work.retention import AT_ONCE, Retention

DAY_US = 86_400_000_000
THOUSANDS = 5_000


@pytest.fixture
def site():
    """A site with nothing on the books."""
    return FakeSite(standing=())


@pytest.fixture
def client(site):
    """A client of its API."""
    return TestClient(api_of(site))


def in_memory(site):
    """What memory has of reservations: themselves, their keys, and the times at which they are looked at."""
    ledger = site.value.wished.ledger
    return len(ledger.reservations), len(ledger._by_key)


def ended_ones(*numbers):
    """Reservations that have ended, a second apart."""
    return tuple(
        replace(
            reservation(n),
            state=(ReservationState.RELEASED, ReservationState.EXPIRED, ReservationState.FAILED)[n % 3],
            key=f"key {n}",
            changed_us=START_US + n * 1_000_000,
        )
        for n in numbers
    )


def saved(site, many):
    """Put them into the database."""
    for first in range(0, len(many), 1_000):
        site.database.save(Changes(reservations=many[first : first + 1_000])).result(30)


@contextmanager
def counted(monkeypatch):
    """Count the statements that a database is given, and the rows of reservations that are read of it."""
    count = {"statements": 0, "rows": 0}

    def statement(*_):
        count["statements"] += 1

    real = past_rows.reservation_of

    def row_read(row):
        count["rows"] += 1
        return real(row)

    event.listen(Engine, "before_cursor_execute", statement)
    monkeypatch.setattr(past_rows, "reservation_of", row_read)
    yield count
    event.remove(Engine, "before_cursor_execute", statement)
    monkeypatch.undo()


# They leave memory, and are read from the database.


def test_what_has_ended_leaves_memory_and_is_shown_as_before(site, client):
    one = client.post(MANY, json=NIGHT | {"commit": True}, headers={"Idempotency-Key": "k"}).json()
    assert in_memory(site) == (1, 1)
    gone = client.delete(f"{MANY}/{one['id']}")
    assert in_memory(site) == (0, 0)
    shown = client.get(f"{MANY}/{one['id']}")
    assert (shown.json(), shown.headers["etag"]) == (gone.json(), gone.headers["etag"])
    assert client.get(MANY).json()["reservations"] == [gone.json()]
    assert client.get(f"{MANY}/{one['id']}", headers={"If-None-Match": gone.headers["etag"]}).status_code == 304
    assert client.get(f"{MANY}/other").status_code == 404


def test_reservations_that_are_released_long_before_their_end_leave_nothing_to_look_at(site, client):
    for _ in range(300):
        one = client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()
        client.delete(f"{MANY}/{one['id']}")
    assert len(site.value.wished.ledger._due) < 300  # each had three times


def test_what_has_ended_is_asked_for_again_and_changed_as_before(client):
    one = client.post(MANY, json=NIGHT | {"commit": True}).json()
    at, tag = f"{MANY}/{one['id']}", {"If-Match": "*"}
    gone = client.delete(at).json()
    again = client.delete(at)
    assert (again.status_code, again.json()) == (200, gone)
    assert client.delete(at, headers={"If-Match": '"0"'}).status_code == 412
    for answer in (
        client.post(f"{at}/commit"),
        client.post(f"{at}/renew"),
        client.patch(at, json={"rate": "1 Mbit/s"}, headers=tag),
    ):
        assert answer.status_code == 409
        assert "is released: it cannot" in answer.json()["detail"]


def test_a_hold_that_has_lapsed_is_not_released(site, client):
    one = client.post(MANY, json=NIGHT).json()
    site.clock.now_us += 61_000_000
    site.use_cases.tick()
    assert in_memory(site) == (0, 0)
    answer = client.delete(f"{MANY}/{one['id']}")
    assert (answer.status_code, "is expired: it cannot release" in answer.json()["detail"]) == (409, True)


def test_a_request_that_is_repeated_after_its_reservation_has_ended_is_the_same(site, client):
    key = {"Idempotency-Key": "k"}
    one = client.post(MANY, json=NIGHT, headers=key).json()
    gone = client.delete(f"{MANY}/{one['id']}").json()
    again = client.post(MANY, json=NIGHT, headers=key)
    assert (again.status_code, again.json()) == (200, gone)
    other = client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}, headers=key)
    assert (other.status_code, "was used for another" in other.json()["detail"]) == (422, True)
    assert in_memory(site) == (0, 0)


def test_a_key_whose_reservation_ends_while_the_database_is_asked_is_known(site, client, monkeypatch):
    key, real = {"Idempotency-Key": "k"}, site.database.past_with_key
    asked = []

    def slow(name):
        """Another client makes it, and releases it, behind the answer of the database."""
        found = real(name)
        asked.append(found)
        if len(asked) == 1:
            made = client.post(MANY, json=NIGHT, headers=key).json()
            client.delete(f"{MANY}/{made['id']}")
        return found

    monkeypatch.setattr(site.database, "past_with_key", slow)
    answer = client.post(MANY, json=NIGHT, headers=key)
    assert (answer.status_code, answer.json()["state"]) == (200, "released")
    assert len(client.get(MANY).json()["reservations"]) == 1


# Pages.


def test_pages_have_each_once_and_in_order_whether_it_has_ended_or_not(site, client):
    made = [client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()["id"] for _ in range(9)]
    for name in made[::2]:
        client.delete(f"{MANY}/{name}")
    found, cursor = [], None
    while True:
        page = client.get(MANY, params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        found += [one["id"] for one in page["reservations"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == made
    released = client.get(MANY, params={"state": "released"}).json()["reservations"]
    assert [one["id"] for one in released] == made[::2]
    assert [r["id"] for r in client.get(MANY, params={"state": "held"}).json()["reservations"]] == made[1::2]


@pytest.mark.parametrize(
    "wanted",
    [
        ReservationFilter(words="NEEDLE"),
        ReservationFilter(a_end="needle"),
        ReservationFilter(states=(ReservationState.FAILED, ReservationState.EXPIRED), a_end="needle"),
        ReservationFilter(ends_after_us=THOUSANDS * 10**6, starts_before_us=(THOUSANDS + 1) * 10**6),
    ],
)
def test_the_one_that_is_meant_is_found_among_thousands_page_by_page(site, wanted):
    many = ended_ones(*range(1, THOUSANDS))
    needle = replace(ended_ones(THOUSANDS)[0], a_end="needle", description="the Needle in it")
    saved(site, (*many, needle))
    found, after, pages = [], 0, 0
    while after is not None:
        some = Reserved(site.use_cases, site.database).page(wanted, after, 10)
        found, after, pages = [*found, *some.page], some.go_on_after, pages + 1
    assert found[-1] == needle
    assert pages <= THOUSANDS / past_rows.WINDOW_ROWS + 12


def test_a_list_goes_on_without_the_database_and_says_so(site, client):
    made = [client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()["id"] for _ in range(2)]
    client.delete(f"{MANY}/{made[0]}")
    site.database.close()
    page = client.get(MANY).json()
    assert [one["id"] for one in page["reservations"]] == made[1:]
    assert "not connected" in page["lacks"]
    assert client.get(MANY, params={"state": "held"}).json()["lacks"] is None
    assert client.get(f"{MANY}/{made[0]}").status_code == 503
    assert client.get(f"{MANY}/{made[1]}").status_code == 200


# What thousands that have ended cost.


def test_what_has_ended_costs_neither_a_start_nor_a_page_anything(monkeypatch):
    counts = []
    for size in (0, THOUSANDS):
        site = FakeSite(standing=())
        saved(site, ended_ones(*range(1, size + 1)))
        with counted(monkeypatch) as start:
            again = UseCases(site.state, site.database)
        reserved = Reserved(again, site.database)
        with counted(monkeypatch) as live:
            reserved.page(ReservationFilter(states=(ReservationState.HELD, ReservationState.ACTIVE)), 0, 100)
        with counted(monkeypatch) as page:
            reserved.page(ReservationFilter(), size // 2, 100)
        counts.append((start, live, page["statements"]))
        assert page["rows"] <= 101
        assert in_memory(site) == (0, 0)
    assert counts[0] == counts[1]
    assert counts[0][1] == {"statements": 0, "rows": 0}


def test_sequences_go_on_behind_those_that_have_ended_and_those_that_are_forgotten(site):
    saved(site, ended_ones(7, 8, 9))
    assert site.database.forget(EndedKind.RESERVATION, START_US + DAY_US, AT_ONCE) == 3
    client = TestClient(api_of(FakeSite(standing=())))
    assert client.get(MANY).json() == {"reservations": [], "next": None, "lacks": None}
    again = FakeSite(standing=())
    again.database.close()
    again.database = site.database
    again.use_cases = UseCases(again.state, site.database)
    client = TestClient(api_of(again))
    client.post(MANY, json=NIGHT)
    (one,) = again.value.wished.ledger.reservations.values()
    assert one.sequence == 10


# Retention.


def test_what_ended_long_ago_is_forgotten_a_little_at_a_time_and_nothing_else(site):
    saved(site, ended_ones(*range(2 * AT_ONCE + 10)))
    site.clock.now_us = START_US + 90 * DAY_US + (AT_ONCE + 5) * 1_000_000
    retention = Retention(site.state, site.database, 90 * DAY_US)
    assert retention.step()
    assert not retention.step()
    left = Reserved(site.use_cases, site.database).page(ReservationFilter(), 0, 1000).page
    assert [one.sequence for one in left] == list(range(AT_ONCE + 5, 2 * AT_ONCE + 10))


def test_what_has_not_ended_is_never_forgotten_nor_anything_if_so_set(site, client):
    client.post(MANY, json=NIGHT | {"commit": True})
    saved(site, ended_ones(50))
    site.clock.now_us += 1_000 * DAY_US
    assert not Retention(site.state, site.database, None).step()
    assert site.database.past_one("r50") is not None
    assert not Retention(site.state, site.database, 90 * DAY_US).step()
    assert site.database.past_one("r50") is None


def test_a_database_that_fails_does_not_end_the_thread(site):
    site.database.close()
    assert not Retention(site.state, site.database, DAY_US).step()
