"""What the API stands on, and the small rules that all its handlers share."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from controller.audit.runner import DriftView
from controller.errors import NotAllowed
from controller.events import Events
from controller.reports import Reports
from controller.use_cases import UseCases
from topology.network import Network

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"')


@dataclass(frozen=True, slots=True)
class Parts:
    """What is behind the API.

    Attributes:
        reports: the plan, and what hosts and switches have said.
        use_cases: reservations and announcements.
        events: what happens.
        network: the topology.
        now_us: the clock, Unix time.
        connected: the dpids of the switches that are connected now.
        drift: what audits have seen.
    """

    reports: Reports
    use_cases: UseCases
    events: Events
    network: Network
    now_us: Callable[[], int]
    connected: Callable[[], frozenset[int]]
    drift: Callable[[], DriftView]


async def kept(saved: Future[None]) -> None:
    """Return once an answer outlives a crash. A client that hangs up meanwhile does not take the save with it.

    Raises:
        StoreFailed: it may not.
    """
    if not saved.done():
        await asyncio.shield(asyncio.wrap_future(saved))
    saved.result()


def etag(version: int) -> str:
    """Return the entity tag of a version."""
    return f'"{version}"'


def seen(header: str, field: str) -> frozenset[str] | None:
    """Return the strong entity tags of ``If-Match`` or ``If-None-Match``; None for ``*``, which is any.

    >>> sorted(seen('"3", W/"4", "5"', "If-Match"))
    ['3', '5']

    Raises:
        NotAllowed: it has none.
    """
    if header.strip() == "*":
        return None
    tags = _TAG.findall(header)
    if not tags:
        raise NotAllowed(field, f'need an entity tag in its quotes, as in "3", or *; got {header!r}')
    return frozenset(tag for weak, tag in tags if not weak)
