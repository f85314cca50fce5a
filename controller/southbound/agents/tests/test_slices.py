"""Work for many agents leaves their thread time for others."""

import asyncio

from controller.southbound.agents import slices
from controller.southbound.agents.slices import in_slices


def test_others_have_their_turn_between_two_slices_and_the_end_is_told_once(monkeypatch):
    monkeypatch.setattr(slices, "WORKS_S", -1.0)  # one at a time
    monkeypatch.setattr(slices, "FIRST_S", 0.0)
    whom, done, said, ended = [], [], [], []

    async def all_of_it():
        loop, end = asyncio.get_running_loop(), asyncio.Event()

        def watch():
            said.append(len(done))
            if not end.is_set():
                loop.call_soon(watch)

        def last():
            ended.append(tuple(done))
            end.set()

        in_slices(loop, lambda: whom, done.append, last)
        whom.extend(range(5))  # who is there when it begins
        loop.call_soon(watch)
        await asyncio.wait_for(end.wait(), 5)

    asyncio.run(all_of_it())
    assert ended == [(0, 1, 2, 3, 4)]
    assert {1, 2, 3, 4} <= set(said)


def test_where_nobody_is_there_it_ends_at_once():
    async def ends():
        end = asyncio.Event()
        in_slices(asyncio.get_running_loop(), tuple, print, end.set)
        await asyncio.wait_for(end.wait(), 5)

    asyncio.run(ends())
