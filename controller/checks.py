"""Requests that cannot be meant are refused by their field, before anybody decides on them."""

import hashlib
from dataclasses import dataclass, replace

from controller.errors import NotAllowed, NotKnown
from controller.plan.admission import ANSWERING_US, RESERVABLE, Request, node_of
from controller.plan.announcements import ANNOUNCEABLE
from controller.plan.keys import flow_id
from controller.plan.ledger import Ledger
from controller.plan.plan import THE_REST, Selector
from controller.plan.reservations import LEAST_BPS, MOST_AHEAD_US, Constraints
from controller.site import Site, check_families, check_sender, flow_between
from topology import units
from topology.network import Network, UnknownNode
from topology.protocol import FlowClass, Tail


@dataclass(frozen=True, slots=True)
class AnnouncementRequest:
    """An announcement as a client makes it.

    Attributes:
        announcement_id: a name for it that is not taken.
        flow_class: urgent or background.
        size_bytes: payload, all senders together; each sends an equal part.
        senders: the sending hosts.
        target: the receiving host.
        deadline_us: by when, microseconds from now; None for as soon as possible.
        selector: which connections of each sender to the target it is for.
        key: the client's name for the request; empty for none.
        is_named: whether the client has named it; else the name was made up.
        owner: in whose name; empty for the client's own.
        is_stored_by: whether the deadline is for all to be stored, and not only across.
        lanes: over how many circuits at once, at most: each from an interface of the sending host of its own.
        is_called: whether the receiver makes the connections, and deals them to the lanes.
        session_us: how long its program's session takes before the first byte of it.
        tail: coded if parities are to follow it.
    """

    announcement_id: str
    flow_class: FlowClass
    size_bytes: int
    senders: tuple[str, ...]
    target: str
    deadline_us: int | None = None
    selector: Selector = THE_REST
    key: str = ""
    is_named: bool = True
    owner: str = ""
    is_stored_by: bool = False
    lanes: int = 1
    is_called: bool = False
    session_us: int = 0
    tail: Tail = Tail.PLAIN

    @property
    def fingerprint(self) -> str:
        """A digest of all that is asked, by which a repetition is known."""
        name = self.announcement_id if self.is_named else ""
        asked = (
            name,
            self.flow_class.value,
            self.size_bytes,
            self.senders,
            self.target,
            self.deadline_us,
            self.selector,
            *((self.owner,) if self.owner else ()),
            *(("stored",) if self.is_stored_by else ()),
            *((f"{self.lanes} lanes",) if self.lanes > 1 else ()),
            *(("called",) if self.is_called else ()),
            *((f"{self.session_us} us",) if self.session_us else ()),
            *(("coded",) if self.tail is Tail.CODED else ()),
        )
        return hashlib.blake2b(repr(asked).encode(), digest_size=16).hexdigest()


def check_request(site: Site, ledger: Ledger, request: Request, now_us: int, reservation_id: str = "") -> None:
    """Refuse a request for a reservation that cannot be meant.

    Args:
        site: where.
        ledger: what is promised there.
        request: what is asked.
        now_us: Unix time.
        reservation_id: the reservation that is to change; empty for a new one.

    Raises:
        NotAllowed: a value that is not possible.
        NotKnown: a name that is not in the network.
    """
    if request.flow_class not in RESERVABLE:
        raise NotAllowed("class", f"{request.flow_class} is not reserved, only {', '.join(RESERVABLE)}")
    known = ledger.reservations.get(reservation_id)
    if request.rate_bps < LEAST_BPS and (known is None or request.rate_bps != known.rate_bps):
        least, asked = units.shown_rate(LEAST_BPS), units.shown_rate(request.rate_bps)
        raise NotAllowed("rate_bps", f"need at least {least}, got {asked}")
    check_times(request.start_us, request.end_us, now_us)
    if request.start_us < now_us and (known is None or request.start_us != known.start_us):
        late_s = (now_us - request.start_us) / 1e6
        remedy = "; leave it out to start now" if known is None else ""
        raise NotAllowed("start", f"lies {late_s:.3f} s in the past{remedy}")
    check_ends(site.network, request.a_end, request.z_end)
    _check_constraints(site.network, request.constraints)
    hosts = site.network.host_names
    if request.selector.has_ports and not {request.a_end, request.z_end} <= hosts:
        raise NotAllowed("connections", "are told apart between two hosts only, not between sites")


def begun_now(request: Request, now_us: int) -> Request:
    """Return a request whose start has just passed as one that starts now, so that an offer of now can be taken."""
    is_now = 0 < now_us - request.start_us <= ANSWERING_US and request.end_us > now_us
    return replace(request, start_us=now_us) if is_now else request


def check_times(start_us: int, end_us: int, now_us: int) -> None:
    """Refuse a time that is empty, over, or so far ahead that who asks for it can only want to have it all.

    Raises:
        NotAllowed: it is.
    """
    if end_us <= start_us:
        raise NotAllowed("end", "must come after the start")
    if end_us <= now_us:
        raise NotAllowed("end", "lies in the past")
    if end_us - now_us > MOST_AHEAD_US:
        raise NotAllowed("end", "lies more than ten years ahead, for which nothing is promised")


def check_ends(network: Network, a_end: str, z_end: str) -> None:
    """Refuse two ends that are none, or one.

    Raises:
        NotKnown: one is neither a host nor a site.
        NotAllowed: they are the same place, or two hosts without a family of addresses in common.
    """
    try:
        nodes = [node_of(network, a_end), node_of(network, z_end)]
    except UnknownNode as error:
        raise NotKnown("host or site", error.name, (*network.sites, *error.known)) from error
    if nodes[0] == nodes[1]:
        raise NotAllowed("to", f"{a_end} and {z_end} are the same place")
    check_sender(network, a_end)
    if not network.is_ours(z_end) and a_end not in network.host_names:
        raise NotAllowed("from", f"{z_end} is not ours: what is reserved to it is for a host; name one of {a_end}")
    if {a_end, z_end} <= network.host_names:
        check_families(network.host(a_end), network.host(z_end))


def _check_constraints(network: Network, constraints: Constraints) -> None:
    """Refuse names that are not in the network: one to be avoided that is misspelt would be crossed."""
    names = (*constraints.include, *constraints.exclude)
    if not names:
        return
    known = {*network.graph.nodes, *(circuit.name for circuit in network.circuits)}
    for name in names:
        if name not in known:
            raise NotKnown("node or circuit", name, tuple(sorted(known)))


def check_announcement(site: Site, asked: AnnouncementRequest) -> None:
    """Refuse an announcement that cannot be meant.

    Raises:
        NotAllowed: a class that is not announced, a host that is no sender, no bytes, a deadline years ahead.
        NotKnown: a host that is not in the network.
    """
    if asked.flow_class not in ANNOUNCEABLE:
        raise NotAllowed("class", f"{asked.flow_class} is not announced, only {' and '.join(ANNOUNCEABLE)}")
    check_deadline(asked.deadline_us)
    if asked.size_bytes <= 0:
        raise NotAllowed("bytes", f"need at least 1, got {asked.size_bytes}")
    if not asked.senders or len(set(asked.senders)) < len(asked.senders):
        raise NotAllowed("from", "need at least one host, each once")
    for sender in asked.senders:
        flow_between(site.network, flow_id(asked.announcement_id, sender), asked.flow_class, (sender, asked.target))
    if asked.lanes > 1:
        check_lanes(site.network, asked.senders, asked.target)
    check_connects(site.network, asked.target, asked.lanes, is_called=asked.is_called)


def check_deadline(deadline_us: int | None) -> None:
    """Refuse a deadline that is so far ahead as no time of a reservation may be.

    Raises:
        NotAllowed: it is.
    """
    if deadline_us is not None and deadline_us > MOST_AHEAD_US:
        raise NotAllowed("deadline_s", "lies more than ten years ahead, for which nothing is promised")


def check_connects(network: Network, target: str, lanes: int, *, is_called: bool) -> None:
    """Refuse a receiver that is to deal its connections to lanes where there are none, or nobody who could.

    Raises:
        NotAllowed: it is such a one.
    """
    if is_called and lanes < 2:
        raise NotAllowed("connects", "is for lanes, to which connections are dealt: say how many with lanes")
    if is_called and not network.host(target).has_agent:
        raise NotAllowed("connects", f"{target} has no agent that could deal its connections to lanes")


def check_lanes(network: Network, senders: tuple[str, ...], target: str) -> None:
    """Refuse lanes of several hosts, or of one that has no agent, or not two interfaces whose addresses tell them.

    Raises:
        NotAllowed: they are such.
    """
    if len(senders) > 1:
        raise NotAllowed("lanes", f"need one sending host, got {len(senders)}: announce each by itself")
    machine = network.machine(senders[0])
    if not network.host(machine).has_agent:
        raise NotAllowed("lanes", f"{machine} has no agent that could deal its connections to lanes")
    if len(network.interfaces_of(machine)) < 2:
        why = (
            f"{machine} has one interface in {network.name}, and each lane goes by one of its own: see docs/network.md"
        )
        raise NotAllowed("lanes", why)
    if len(network.lane_interfaces(senders[0], target)) < 2:
        why = f"no two interfaces of {machine} have a family of IP in common that {target} has too: see docs/network.md"
        raise NotAllowed("lanes", why)
