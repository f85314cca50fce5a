"""Answers over HTTP that end: whole within a time, or they are not waited for any more.

A time limit of httpx is for each part of an answer anew, so who answers by drops would have none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from ssl import SSLContext

import httpx

PARTS = 3  # to connect, to begin TLS, to be answered: who takes no longer for each of them is waited for


async def whole(answer: Awaitable[httpx.Response], part_s: float) -> httpx.Response:
    """Return an answer, its body too.

    Args:
        answer: it, when it has come.
        part_s: how long a part of it may take; the whole may take ``PARTS`` times as long.

    Raises:
        TimeoutError: it has taken longer. Connecting has less, as httpx counts: what was asked may have been heard.
        httpx.HTTPError: there is none.
    """
    try:
        async with asyncio.timeout(PARTS * part_s):
            return await answer
    except TimeoutError:
        raise TimeoutError(f"the answer is not whole after {PARTS * part_s:.3g} s") from None


def reason(error: BaseException) -> str:
    """Return what was in the way of an answer, for people: what the system says of it, if it says something."""
    said, before = str(error), error.__cause__ or error.__context__
    while before is not None and not (isinstance(error, OSError) and said):
        if isinstance(before, BaseExceptionGroup):  # of several addresses
            before = before.exceptions[0]
        said = str(before) if isinstance(before, OSError) and str(before) else said
        before = before.__cause__ or before.__context__
    return said


def whole_answer(
    ask: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]], part_s: float, tls: SSLContext
) -> httpx.Response:
    """Return the answer to one question, over a connection of its own. Not in a thread that has an event loop.

    Args:
        ask: asks it.
        part_s: as of :func:`whole`.
        tls: whom to trust.

    Raises:
        OSError: it is not whole in time, or TLS has failed.
        httpx.HTTPError: there is none.
        httpx.InvalidURL: nobody can be asked there.
    """

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(verify=tls, timeout=part_s) as client:
            return await whole(ask(client), part_s)

    return asyncio.run(answer())
