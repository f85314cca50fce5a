"""The stream by which open pages follow: each is sent the pieces that have changed, and when that was."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

from controller.northbound.page.screen import Piece, Screen

LOOK_S = 1.0
RETRY = b"retry: 1000\n\n"  # after which a browser comes back, in milliseconds


async def followed(screen: Screen, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield the pieces, all of them at first, then those that have changed, until the controller ends.

    Args:
        screen: what is shown.
        is_over: whether the controller ends.
    """
    yield RETRY
    sent: dict[str, Piece] = {}
    while not is_over():
        pieces = screen.made if screen.is_current else await run_in_threadpool(screen.pieces)
        news = [piece.event for name, piece in pieces.items() if sent.get(name) is not piece]
        if news:
            sent = pieces
            yield b"".join(news)
        await asyncio.sleep(LOOK_S)
