"""Events: nobody misses one without being told."""

import asyncio
import itertools
import threading

import pytest

from controller.events import Events


def events(**options):
    """Events by a clock that goes on by 10 us at each look."""
    clock = itertools.count(1_000_000, 10)
    return Events(lambda: next(clock), **options)


def names(heard):
    return [event.name for event in heard.events]


def test_a_listener_hears_what_came_after_the_event_it_saw_last():
    told = events()
    for name in ("a", "b", "c"):
        told.publish(name)
    first = told.since(told.last - 3).events[0]
    assert (first.name, names(told.since(first.number)), told.since(first.number).lost) == ("a", ["b", "c"], False)


def test_an_event_keeps_its_fields():
    told = events()
    told.publish("reservation.held", reservation="r1", rate_bps=5)
    assert dict(told.since(told.last - 1).events[0].fields) == {"reservation": "r1", "rate_bps": 5}


@pytest.mark.parametrize("seen", [0, -1, 2**70])
def test_a_number_that_is_not_remembered_is_said_to_be_lost_with_all_there_is(seen):
    told = events()
    told.publish("a")
    assert (told.since(seen).lost, names(told.since(seen))) == (True, ["a"])


def test_only_the_latest_are_remembered():
    told = events(buffered=2)
    before = told.last
    for name in ("a", "b", "c"):
        told.publish(name)
    assert (told.since(before).lost, names(told.since(before))) == (True, ["b", "c"])
    assert not told.since(before + 1).lost


def test_nothing_is_lost_before_the_first_event():
    told = events()
    assert (told.since(told.last).lost, told.since(told.last).events) == (False, ())


def test_numbers_grow_over_a_restart():
    early, late = Events(lambda: 10**15), Events(lambda: 10**15 + 10**6)
    for _ in range(100):
        early.publish("a")
    assert late.last > early.last


async def heard_by(listening, count):
    """The names of the next so many events."""
    found = []
    async for heard in listening:
        found += [] if heard is None else names(heard)
        if len(found) >= count:
            return found
    return found


def test_what_another_thread_publishes_wakes_the_listener():
    told = events()
    before = told.last

    def publish():
        for number in range(500):
            told.publish(f"e{number}")

    async def listening():
        threads = [threading.Thread(target=publish) for _ in range(4)]
        for thread in threads:
            thread.start()
        found = await heard_by(told.listen(before), 2_000)
        for thread in threads:
            thread.join()
        return found

    found = asyncio.run(asyncio.wait_for(listening(), 20))
    assert sorted(found) == sorted(f"e{number}" for number in range(500) for _ in range(4))


def test_a_listener_hears_a_sign_of_life_when_nothing_happens():
    told = events(keep_alive_s=0.01)

    async def first():
        return await anext(told.listen(told.last))

    assert asyncio.run(first()) is None


def test_closing_lets_the_listeners_go():
    told = events()

    async def listening():
        waiting = asyncio.create_task(heard_by(told.listen(told.last), 1))
        await asyncio.sleep(0)
        told.close()
        return await waiting

    assert asyncio.run(asyncio.wait_for(listening(), 5)) == []
