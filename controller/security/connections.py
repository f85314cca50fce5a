"""How many connections and listeners there may be, and which gives way when there are too many."""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Limits:
    """What REST's port takes of strangers.

    Attributes:
        head_bytes: of a request's line and fields; a token of an issuer may have 8 kB.
        fields: of a head.
        message_bytes: of a whole request, with all that frames it; no body of ours has more than 256 KiB.
        handshake_s: of TLS, from the connection to its end.
        head_s: from the connection, or from a head's first byte, to its end.
        body_s: from a head's end to the body's.
        idle_s: between an answer and the next request.
        stuck_s: during which nothing of an answer is taken by who asked for it.
        connections: in all; half of the 1,024 files that a process has, unless told otherwise.
        connections_per_s: that an address may make in plain text, half a second's worth at once.
        handshakes_per_s: that it may begin of TLS, each of which costs a signature; as much at once.
        of_one_address: of an IPv4 address or an IPv6 network of 64 bits, which is what one customer gets.
    """

    head_bytes: int = 16 * 1024
    fields: int = 100
    message_bytes: int = 1024 * 1024
    handshake_s: float = 5.0
    head_s: float = 10.0
    body_s: float = 30.0
    idle_s: int = 5
    stuck_s: float = 15.0
    connections: int = 512
    connections_per_s: int = 256
    handshakes_per_s: int = 64
    of_one_address: int = 128


class Places:
    """So many may be there at once, and so many of one network. Of one thread."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._taken: Counter[str] = Counter()

    def take(self, network: str) -> bool:
        """Take a place, if there is one."""
        if self._taken.total() >= self._most or self._taken[network] >= self._most_of_one:
            return False
        self._taken[network] += 1
        return True

    def leave(self, network: str) -> None:
        """Give a place back."""
        self._taken[network] -= 1
        self._taken += Counter()  # forgets those that have none


def counted_as(address: str) -> str:
    """Return whose connections count together with those of an address.

    >>> counted_as("192.0.2.1"), counted_as("2001:db8::1:2:3:4"), counted_as("::ffff:192.0.2.1"), counted_as("")
    ('192.0.2.1', '2001:db8::', '192.0.2.1', '')
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))


class Guest(Protocol):
    """A connection."""

    @property
    def gives_way(self) -> bool:
        """Whether it may be ended for another."""

    def end(self) -> None:
        """End it at once."""


G = TypeVar("G", bound=Guest)


class OpenConnections(Generic[G]):
    """Those that are open, by network; each network's in the order in which they were heard of. Of one thread."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._networks: dict[str, OrderedDict[G, None]] = {}
        self._network_of: dict[G, str] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._network_of)

    def came(self, guest: G, network: str) -> G | None:
        """Take one in; return who must leave for it, which may be itself; None if there is room.

        Of a network that has too many one leaves. If there are too many in all, one of the network that has most
        leaves: who comes from elsewhere need not care how many come from there.
        """
        self._networks.setdefault(network, OrderedDict())[guest] = None
        self._network_of[guest] = network
        if len(self._networks[network]) > self._most_of_one:
            leaves = self._longest_silent(network, guest)
        elif len(self) > self._most:
            leaves = self._longest_silent(max(self._networks, key=lambda name: len(self._networks[name])), guest)
        else:
            return None
        self.went(leaves)
        return leaves

    def heard(self, guest: G) -> None:
        """Note that one has said something."""
        network = self._network_of.get(guest)
        if network is not None:
            self._networks[network].move_to_end(guest)

    def went(self, guest: G) -> None:
        """Forget one; once is enough."""
        network = self._network_of.pop(guest, None)
        if network is not None:
            del self._networks[network][guest]
            if not self._networks[network]:
                del self._networks[network]

    def _longest_silent(self, network: str, newcomer: G) -> G:
        return next((guest for guest in self._networks[network] if guest.gives_way), newcomer)
