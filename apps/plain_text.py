"""Which ports speak plain text over a network: what each start warns of. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from apps.configuration import ControllerSettings
from controller.settings.listen import is_here
from controller.southbound.ovsdb.htb import is_on_this_machine


@dataclass(frozen=True, slots=True)
class PlainPort:
    """One that others can reach.

    Attributes:
        event: as which the log says it.
        address: where.
        why: what that means.
    """

    event: str
    address: str
    why: str


def plain_ports(settings: ControllerSettings) -> Iterator[PlainPort]:
    """Yield them."""
    listened = (
        ("rest", settings.rest, settings.rest_tls, "tokens and answers can be read on the way"),
        ("openflow", settings.openflow, settings.switches_tls, "who reaches it can pass for a switch"),
        ("agents", settings.agents, settings.tls, "who reaches it can pass for a host"),
    )
    for port, address, tls, why in listened:
        if tls is None and not is_here(str(address)):
            yield PlainPort(f"{port}.plain_text", str(address), why)
    for remote in sorted(set(settings.ovsdb.values())):
        if remote.startswith("tcp:") and not is_on_this_machine(remote):
            yield PlainPort("ovsdb.plain_text", remote, "who reaches it can change queues, or play the server")
