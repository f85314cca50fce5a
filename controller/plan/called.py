"""The lanes that receivers' own connections are dealt to, where the receiver connects for what it is sent. Pure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from controller.plan.plan import Entry


class Called(NamedTuple):
    """A lane that its receiver's connections are dealt to.

    Attributes:
        lanes_of: the announcement.
        host: the interface that sends.
        size_bytes: what is to come by it, payload.
    """

    lanes_of: str
    host: str
    size_bytes: int


def called_in(entries: Iterable["Entry"]) -> Mapping[str, tuple[Called, ...]]:
    """Return the lanes that connections are dealt to, by the host that makes these."""
    found: dict[str, tuple[Called, ...]] = {}
    for flow in (entry.flow for entry in entries if entry.flow.called_by):
        one = Called(flow.lanes_of, flow.host, flow.size_bytes)
        found[flow.called_by] = *found.get(flow.called_by, ()), one
    return found
