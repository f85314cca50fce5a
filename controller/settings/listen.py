"""The section ``listen``: the addresses at which switches, agents and users of the API find the controller."""

import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

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


def switches_address(text: str, problems: Problems, *, tls: bool, insecure: bool) -> tuple[ListenAddress | None, bool]:
    """Return where switches connect, and whether by TLS; plain text is for this machine, or is said.

    Args:
        text: an address; before it ``ssl:`` or ``tcp:``, as Open vSwitch has it, or nothing.
        problems: those of this field.
        tls: whether there is a section ``tls``.
        insecure: whether it is said that nobody shall be asked who he is.
    """
    transport, _, rest = text.partition(":")
    is_said = transport in {"ssl", "tcp"} and ":" in rest
    address = listen_address(rest if is_said else text, problems)
    by_tls = is_said and transport == "ssl"
    if by_tls and not tls:
        problems.add(f'"{text}" needs the section tls, see docs/pki.md')
    if not is_said and not insecure and address is not None and not is_here(text):
        problems.add(
            f"{text} can be reached from other machines, and anybody could pass for a switch: say ssl:{text}, with "
            f"certificates that are made by: headway pki switch DIR; or tcp:{text}, if only switches can reach it"
        )
    return address, by_tls


def is_here(address: str) -> bool:
    """Return whether an address can only be reached from this machine.

    >>> is_here("unix:/run/headway.sock"), is_here("[::1]:50051"), is_here("localhost:1"), is_here("0.0.0.0:1")
    (True, True, True, False)
    """
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return address.startswith("unix:") or host == "localhost"


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
