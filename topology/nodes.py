"""What a network is made of: its nodes, and the links between them."""

from dataclasses import dataclass

from topology.addresses import Address, Prefix, prefix_of
from topology.units import shown_delay


@dataclass(frozen=True, slots=True)
class Host:
    """A data transfer node.

    Attributes:
        name: as in the agent's configuration.
        site: where it stands.
        ip: its address on the data network, or the prefix of the cluster that it stands for.
        mac: its hardware address there.
        others: what else it is reached by, addresses as prefixes that hold one.
        has_agent: whether one of ours runs there; where none does, nothing is sent under the plan.
        interface: of a host with several, the name of the one that this is.
        interface_of: the host whose further interface this is: it is planned as a host of its own, and that one's agent
            holds its plan. Empty for the first interface, which has the host's own name.
    """

    name: str
    site: str
    ip: Address | Prefix
    mac: str
    others: tuple[Prefix, ...] = ()
    has_agent: bool = True
    interface: str = ""
    interface_of: str = ""

    @property
    def machine(self) -> str:
        """The name of the host that it is an interface of, itself if it is no further one."""
        return self.interface_of or self.name

    @property
    def prefixes(self) -> tuple[Prefix, ...]:
        """All its addresses, as prefixes."""
        return prefix_of(self.ip), *self.others


@dataclass(frozen=True, slots=True)
class Switch:
    """An OpenFlow switch at the edge of a site."""

    name: str
    site: str
    dpid: int


@dataclass(frozen=True, slots=True)
class FarEdge:
    """Where circuits end at a site that is not ours: nothing is set there, and no way leads through it."""

    name: str
    site: str


@dataclass(frozen=True, slots=True)
class Line:
    """A circuit as a node between its two switches; it passes on what enters it."""

    name: str


@dataclass(frozen=True, slots=True)
class Link:
    """One direction between two neighbours, with the port it leaves by.

    Attributes:
        rate_bps: what the line carries, counted on the wire, bit/s.
        delay_us: one-way delay; of a circuit whose delay nobody knows, what it is at most.
        buffer_bytes: what the sending port can hold.
        port_no: OpenFlow number of the sending port; 0 if it is known by its name alone.
        port_name: interface name of the sending port.
        circuit: name of the guaranteed-bandwidth circuit this link is, or None on the site's own network.
        vlan_vid: the VLAN in which the circuit is handed over at the sending port (IEEE 802.1Q); None for no tag.
        is_bound: whether its delay is what it is at most, until hosts have measured it.
    """

    rate_bps: int
    delay_us: int
    buffer_bytes: int
    port_no: int
    port_name: str
    circuit: str | None = None
    vlan_vid: int | None = None
    is_bound: bool = False

    @property
    def said_delay(self) -> str:
        """Its delay for people, as the network's file says it: ``90 ms``, ``at most 300 ms``."""
        return f"{'at most ' if self.is_bound else ''}{shown_delay(self.delay_us)}"


@dataclass(frozen=True, slots=True)
class Circuit:
    """A guaranteed-bandwidth circuit: its two switches, and what it carries both ways (the lesser, if they differ)."""

    name: str
    a_end: str
    z_end: str
    rate_bps: int
