"""Answers over HTTP that end: whole within a time and a size, or they are not waited for any more.

A time limit of httpx is for each part of an answer anew, so who answers by drops would have none; it limits no size.
"""

import asyncio
from collections.abc import Callable
from ssl import SSLContext

import httpx

PARTS = 3  # to connect, to begin TLS, to be answered: who takes no longer for each of them is waited for
MOST_BYTES = 1 << 24  # of a body, as it is without compression


async def whole(
    client: httpx.AsyncClient, request: httpx.Request, part_s: float, auth: httpx.Auth | None = None
) -> httpx.Response:
    """Return the answer to a request: its status, and its body, which is UTF-8 (RFC 8259, section 8.1). No headers.

    Args:
        client: by which it is asked.
        request: made by the same client.
        part_s: how long a part of it may take; the whole may take ``PARTS`` times as long.
        auth: says who asks; None for what the client has.

    Raises:
        TimeoutError: it has taken longer. Connecting has less, as httpx counts: what was asked may have been heard.
        OSError: it is longer than ``MOST_BYTES``.
        httpx.HTTPError: there is none, or its headers make no sense.
    """
    try:
        async with asyncio.timeout(PARTS * part_s):
            answer = await client.send(request, stream=True, auth=auth or httpx.USE_CLIENT_DEFAULT)
            try:
                body = bytearray()
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise OSError(f"the answer is longer than {MOST_BYTES >> 20} MiB")
            finally:
                await answer.aclose()
    except TimeoutError:
        raise TimeoutError(f"the answer is not whole after {PARTS * part_s:.3g} s") from None
    except (httpx.InvalidURL, ValueError) as error:  # httpx looks where it would send us, though we do not go there
        raise httpx.RemoteProtocolError(str(error), request=request) from None
    return httpx.Response(answer.status_code, content=bytes(body), request=answer.request)


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
    asked: Callable[[httpx.AsyncClient], httpx.Request], part_s: float, tls: SSLContext, auth: httpx.Auth | None = None
) -> httpx.Response:
    """Return the answer to one question, over a connection of its own. Not in a thread that has an event loop.

    Args:
        asked: the request, for a client.
        part_s: as of :func:`whole`.
        tls: whom to trust.
        auth: as of :func:`whole`.

    Raises:
        OSError: it is not whole in time, or too long, or TLS has failed.
        httpx.HTTPError: there is none.
        httpx.InvalidURL, ValueError: nobody can be asked there.
    """

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(verify=tls, timeout=part_s) as client:
            return await whole(client, asked(client), part_s, auth)

    return asyncio.run(answer())
