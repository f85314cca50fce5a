"""The section ``listen``: the addresses at which switches, agents and users of the API find the controller."""

import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from pydantic import Field

from controller.settings.sections import Section
from controller.settings.urls import is_host_name
from topology.addresses import host_and_port
from topology.problems import Problems

MOST_PATH_BYTES = 107  # sun_path of unix(7) has 108, the last of which is 0


class RestTlsSection(Section):
    """The files of REST's TLS, PEM; a relative path is relative to the configuration."""

    certificate: str = Field(min_length=1)
    key: str = Field(min_length=1)
    clients: str | None = Field(default=None, min_length=1)
    revoked: str | None = Field(default=None, min_length=1)


class ListenSection(Section):
    """The addresses, as they are written."""

    openflow: str = "127.0.0.1:6653"
    rest: str = "127.0.0.1:8080"
    rest_socket: str | None = Field(default=None, pattern=r"^/")
    agents: str = "127.0.0.1:50051"
    names: tuple[str, ...] = ()
    tls: RestTlsSection | None = None
    proxies: tuple[str, ...] = ()


class ListenPart(Section):
    """A configuration of which only the addresses are looked at."""

    listen: ListenSection = Field(default_factory=ListenSection)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen at."""

    host: str
    port: int

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"{self.host}:{self.port}"

    @property
    def bare_host(self) -> str:
        """The host as sockets take it: an IPv6 address without its brackets."""
        return self.host.strip("[]")


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """A path to listen at, for those on this machine who may open it."""

    path: str

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"unix:{self.path}"


def listen_address(text: str, problems: Problems) -> ListenAddress | None:
    """Return an address to listen at; None, and a problem, if it is not one."""
    found = host_and_port(text)
    if found is None or not _is_host(found[0]):
        problems.add(f'"{text[:80]}" is not an address to listen at, try "127.0.0.1:8080"')
        return None
    return ListenAddress(*found)


def _is_host(text: str) -> bool:
    """Return whether a text is a name, an IPv4 address or an IPv6 address, with or without brackets.

    >>> _is_host("ctl.local"), _is_host("[fe80::1%eth0]"), _is_host("::"), _is_host("ssl:0.0.0.0"), _is_host("[a]")
    (True, True, True, False, False)
    >>> _is_host("two..dots"), _is_host("bü..x")
    (False, False)
    """
    if re.fullmatch(r"[^\s:/\[\]]+", text):
        return is_host_name(text)
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return ip_address(bare).version == 6
    except ValueError:
        return False


def address_or_socket(text: str, problems: Problems) -> ListenAddress | UnixSocket | None:
    """Return an address to listen at, which may be a path; None, and a problem, if it is neither."""
    if text.startswith("unix:/"):
        return unix_socket(text.removeprefix("unix:"), problems)
    return listen_address(text, problems)


def unix_socket(path: str, problems: Problems) -> UnixSocket | None:
    """Return a path to listen at; None, and a problem, if the system takes none that is so long."""
    size_bytes = len(path.encode())
    if size_bytes > MOST_PATH_BYTES:
        problems.add(f"a path to listen at has at most {MOST_PATH_BYTES} bytes, this one has {size_bytes}")
        return None
    return UnixSocket(path)


def split_transport(text: str) -> tuple[str, str]:
    """Return what is said before an address, ``ssl`` or ``tcp`` as Open vSwitch has it, empty if nothing; and that.

    >>> split_transport("ssl:192.0.2.1:6653"), split_transport("[::1]:8080")
    (('ssl', '192.0.2.1:6653'), ('', '[::1]:8080'))
    """
    transport, _, rest = text.partition(":")
    return (transport, rest) if transport in {"ssl", "tcp"} and ":" in rest else ("", text)


def switches_address(text: str, problems: Problems, *, tls: bool, insecure: bool) -> tuple[ListenAddress | None, bool]:
    """Return where switches connect, and whether by TLS; plain text is for this machine, or is said.

    Args:
        text: an address; before it ``ssl:`` or ``tcp:``, as Open vSwitch has it, or nothing.
        problems: those of this field.
        tls: whether there is a section ``tls``.
        insecure: whether it is said that nobody shall be asked who he is.
    """
    transport, where = split_transport(text)
    address = listen_address(where, problems)
    by_tls = transport == "ssl"
    if by_tls and not tls:
        problems.add(f'"{text}" needs the section tls, see docs/pki.md')
    if not transport and not insecure and address is not None and not is_here(text):
        problems.add(
            f"{text} can be reached from other machines, and anybody could pass for a switch: say ssl:{text}, with "
            f"certificates that are made by: headway pki switch DIR; or tcp:{text}, if only switches can reach it"
        )
    return address, by_tls


def rest_address(text: str, problems: Problems, *, tls: bool, insecure: bool) -> ListenAddress | None:
    """Return where REST is served; plain text is for this machine, or is said.

    Args:
        text: an address; before it ``ssl:`` or ``tcp:``, or nothing.
        problems: those of this field.
        tls: whether there are files for it, ``listen.tls``.
        insecure: whether it is said that nobody shall be asked who he is.
    """
    transport, where = split_transport(text)
    address = listen_address(where, problems)
    if transport and (transport == "ssl") is not tls:
        lacks = "needs listen.tls, its certificate and key"
        what = lacks if transport == "ssl" else "is plain text, and there is listen.tls"
        problems.add(f'"{text}" {what}: see docs/pki.md')
    if address is not None and not (transport or tls or insecure or is_here(str(address))):
        problems.add(
            f"{text} can be reached from other machines, and tokens be read on the way: say listen: {{tls: "
            "{certificate: NAME.pem, key: NAME.key}}, made by: headway pki rest DIR --name NAME; "
            f"or tcp:{text}, if only a proxy with TLS can reach it"
        )
    return address


def proxies_named(said: Iterable[str], problems: Problems) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks of the reverse proxies that are believed; a problem for each that is none."""
    found: list[IPv4Network | IPv6Network] = []
    for number, text in enumerate(said):
        try:
            found.append(ip_network(text))
        except ValueError as error:
            problems.at(number).add(
                f'"{text}" is not the address of a proxy, try "192.0.2.7" or "192.0.2.0/28": {error}'
            )
    return tuple(found)


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
    there: dict[str, ListenAddress | UnixSocket] = {}
    for name, address in addresses.items():
        if address is None:
            continue
        taken = next((other for other in there if _meet(address, there[other])), None)
        if taken is not None:
            where = "" if there[taken] == address else f", at {there[taken]}"
            problems.at(name).add(f"{address} is where {taken} listens{where}: give it another port")
        there[name] = address


def _meet(one: ListenAddress | UnixSocket, other: ListenAddress | UnixSocket) -> bool:
    """Return whether two cannot both be listened at: they are the same, or one of them is of all.

    >>> _meet(ListenAddress("0.0.0.0", 1), ListenAddress("localhost", 1))
    True
    >>> _meet(ListenAddress("0.0.0.0", 1), ListenAddress("[::1]", 1))
    False
    """
    if isinstance(one, UnixSocket) or isinstance(other, UnixSocket) or one.port != other.port:
        return one == other
    hosts = {"127.0.0.1" if host == "localhost" else host for host in (one.bare_host, other.bare_host)}
    is_ipv6 = any(":" in host for host in hosts)
    return len(hosts) == 1 or "::" in hosts or ("0.0.0.0" in hosts and not is_ipv6)  # noqa: S104 (compared)
