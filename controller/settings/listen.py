"""The section ``listen``: the addresses at which switches, agents and users of the API find the controller."""

import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller.settings.sections import Section
from topology.problems import Problems


class ListenSection(Section):
    """The addresses, as they are written."""

    openflow: str = "127.0.0.1:6653"
    rest: str = "127.0.0.1:8080"
    agents: str = "127.0.0.1:50051"
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen at."""

    host: str
    port: int

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """A path to listen at, for those on this machine who may open it."""

    path: str

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"unix:{self.path}"


def listen_address(text: str, problems: Problems) -> ListenAddress | None:
    """Return an address to listen at; None, and a problem, if it is not one."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        problems.add(f'"{text}" is not an address to listen at, try "127.0.0.1:8080"')
        return None
    return ListenAddress(host, int(port))


def address_or_socket(text: str, problems: Problems) -> ListenAddress | UnixSocket | None:
    """Return an address to listen at, which may be a path; None, and a problem, if it is neither."""
    if text.startswith("unix:/"):
        return UnixSocket(text.removeprefix("unix:"))
    return listen_address(text, problems)


def rest_names(said: Iterable[str], rest: ListenAddress | None, problems: Problems) -> frozenset[str]:
    """Return the names by which the API may be asked for: those that are said, this machine's, and where it listens."""
    found = {socket.gethostname(), *([rest.host] if rest else [])}
    for number, name in enumerate(said):
        if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9.])?", name):
            found.add(name)
        else:
            problems.at(number).add(f'"{name}" is not a name of a machine, try "ctl.example.org", without a port')
    return frozenset(found)


def check_apart(addresses: Mapping[str, ListenAddress | UnixSocket | None], problems: Problems) -> None:
    """Add a problem for each address at which something else listens already."""
    taken: dict[str, str] = {}
    for name, address in addresses.items():
        if address is None:
            continue
        if str(address) in taken:
            problems.at(name).add(f"{address} is where {taken[str(address)]} listens: give it another port")
        taken.setdefault(str(address), name)
