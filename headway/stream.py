"""Server-sent events. Source: HTML standard, section 9.2.6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class ServerSentEvent(NamedTuple):
    """One event; attributes as in the HTML standard. Without a name nothing happened: its id is where to go on from."""

    event_id: str
    name: str
    data: dict[str, Any]


def stream_events(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """Yield the events of a stream.

    >>> list(stream_events([": hello", "id: 7", "event: reservation.held", 'data: {"at": "now"}', ""]))
    [ServerSentEvent(event_id='7', name='reservation.held', data={'at': 'now'})]
    """
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield ServerSentEvent(fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"]))
        elif "id" in fields:
            yield ServerSentEvent(fields["id"], "", {})
        fields = {}
