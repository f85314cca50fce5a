"""The section ``stores`` of the agent's configuration: where what is received is put."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from hostagent.log import log
from hostagent.stores.paths import looked_at
from topology import units
from topology.telemetry import LONGEST_NAME

LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class PortRange:
    """TCP ports from one to another, both included."""

    first: int
    last: int

    def __contains__(self, port: int) -> bool:
        """Return whether a port is one of them."""
        return self.first <= port <= self.last


def _ports(text: object) -> PortRange:
    """Return the ports in ``5000`` or ``5000-5100``.

    Raises:
        ValueError: it is neither.
    """
    first, dash, last = str(text).replace(" ", "").partition("-")
    if first.isdigit() and (last.isdigit() or not dash):
        found = PortRange(int(first), int(last or first))
        if 0 < found.first <= found.last <= LARGEST_PORT:
            return found
    raise ValueError(f'"{text}" is no port or range of ports, try "5000-5100"')


def _more_than_nothing(value: int) -> int:
    if not value:
        raise ValueError("must be more than 0")
    return value


Rate = Annotated[int, BeforeValidator(lambda text: _more_than_nothing(units.rate_bps(str(text))))]
Size = Annotated[int, BeforeValidator(lambda text: units.size_bytes(str(text)))]
Ports = Annotated[PortRange, BeforeValidator(_ports)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", populate_by_name=True))
class IntakeStore:
    """One place that what is received is put, and which connections end there: those of all ports, if none is said.

    Attributes:
        path: a file or a folder on the disk.
        name: what the controller calls it; the path's last part if not said.
        ports: this host's ports whose data goes there.
        senders: the addresses that what goes there comes from.
        rate: what it drains for good, bit/s of payload, where that is known; else it is measured.
        buffer: what it takes at once, bytes, where that is known; else what there is room for now.
    """

    path: Path
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,40}$")] = ""
    ports: Ports | None = None
    senders: Annotated[tuple[IPv4Network | IPv6Network, ...], Field(alias="from")] = ()
    rate: Rate | None = None
    buffer: Size | None = None

    @property
    def called(self) -> str:
        """Its name: what was said, or the path's last part."""
        return self.name or self.path.name or "root"

    def takes(self, port: int, peer: IPv4Address | IPv6Address) -> bool:
        """Return whether what comes in by a local port from a peer is put here."""
        return (self.ports is None or port in self.ports) and (
            not self.senders or any(peer in network for network in self.senders)
        )


def problems(stores: tuple[IntakeStore, ...]) -> tuple[str, ...]:
    """Return what is wrong with stores that are well-formed each."""
    found, names = [], list[str]()
    unseen = looked_at((store.path for store in stores if store.path.is_absolute()), _unseen)
    for number, store in enumerate(stores):
        if not store.path.is_absolute():
            found.append(f'stores[{number}].path: "{store.path}" is not absolute, try "/{store.path}"')
        elif store.path not in unseen:
            log.warning("agent.store_hangs", path=str(store.path))
        elif why := unseen[store.path]:
            found.append(f"stores[{number}].path: {why}")
        if len(store.called) > LONGEST_NAME:
            found.append(
                f'stores[{number}].name: "{store.called}" is longer than {LONGEST_NAME} characters: give it a name'
            )
        if store.called in names:
            found.append(f'stores[{number}].name: there is already a store "{store.called}": give one of them a name')
        names.append(store.called)
    return tuple(found)


def _unseen(path: Path) -> str:
    """Return why a path cannot be looked at, with the cure; empty if it can."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no {path}: make it, or mount what is to be there"
    except OSError as error:
        return f"{path}: {error.strerror}: each folder above it must be open to the agent's user, chmod o+x"
    return ""
