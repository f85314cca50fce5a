"""Admission of a promise beside the others of its pair of hosts, with offers that are granted if asked for. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from controller.plan.admission import Granted, Offer, Reason, Refused, Request
from controller.plan.announcements import Announcement
from controller.plan.booking_lead import Market, admitted_in_time
from controller.plan.claims import Claims, PairClaim
from controller.plan.lifecycle import IN_PLAN
from controller.plan.paths import ChosenPath, Path
from controller.plan.plan import Selector
from controller.plan.reservations import MOST_AHEAD_US, Reservation
from controller.plan.resources import need
from controller.plan.told_apart import LOCAL_USE_DSCPS
from topology.network import Network

MOST_CHOICES = len(LOCAL_USE_DSCPS)  # of ports, for two hosts at a time: each has a mark of its own


class Admission:
    """What there is to be had, and what is claimed of pairs of hosts."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self._hosts = market.network.host_names
        self.claims = Claims()

    def go_by(self, network: Network) -> None:
        """Go by other delays of the same network."""
        self.market = replace(self.market, network=network)

    def decided(self, owner: str, request: Request, now_us: int, known: Reservation | None = None) -> Granted | Refused:
        """Return the path, or the refusal with offers of which each would be granted at this moment.

        Args:
            owner: whose claims do not count against it.
            request: what is asked.
            now_us: Unix time.
            known: what is to change, as it is; it must be out of the calendar. Once begun it keeps its start, and is
                judged on what is to come.
        """
        begun_us = known.start_us if known is not None and known.state in IN_PLAN else None
        coming = request if begun_us is None else replace(request, start_us=max(now_us, request.start_us))
        answer = self._beside_others(owner, coming, now_us, known)
        if isinstance(answer, Granted):
            return answer
        offers = tuple(
            offer if begun_us is None else replace(offer, start_us=begun_us)
            for offer in answer.offers
            if (begun_us is None or offer.start_us == coming.start_us)
            and offer.end_us - now_us <= MOST_AHEAD_US
            and isinstance(self._beside_others(owner, _taken(offer, coming), now_us, known), Granted)
        )
        return replace(answer, offers=offers)

    def _beside_others(self, owner: str, request: Request, now_us: int, known: Reservation | None) -> Granted | Refused:
        """Return the answer; what could not be told apart from another promise goes that one's way, or is refused.

        Who asks for no more than is booked for it keeps its paths where a capacity has become too small for that.
        """
        answer = admitted_in_time(request, self.market, now_us, known)
        if isinstance(answer, Refused) and known is not None and _asks_no_more(request, known):
            taken = need(self.market.network, known.paths, known.flow_class)
            answer = Granted(ChosenPath(known.path, known.backup), taken)
        if isinstance(answer, Refused):
            return answer
        if (
            full := self._without_mark(self._of_hosts(owner, request, answer.chosen.path), request.rate_bps)
        ) is not None:
            return full
        other = self._confused(owner, request, answer.chosen.path)
        if other is None:
            return answer
        if other.flow_class is request.flow_class and not request.constraints.backup:
            along = admitted_in_time(request, self.market, now_us, known, other.path)
            if isinstance(along, Granted) and self._confused(owner, request, along.chosen.path) is None:
                return along
        return not_told_apart(other, request.rate_bps, request.start_us)

    def _confused(self, owner: str, request: Request, path: Path) -> PairClaim | None:
        return next(
            (other for own in self._of_hosts(owner, request, path) for other in self.claims.confused_with(own)), None
        )

    def _of_hosts(self, owner: str, request: Request | Reservation, path: Path) -> tuple[PairClaim, ...]:
        """Return what a request claims of two hosts; nothing between sites."""
        ends = request.a_end, request.z_end
        own = PairClaim(owner, ends, request.flow_class, request.selector, path, request.start_us, request.end_us)
        return (own,) if self._hosts.issuperset(ends) else ()

    def without_mark(self, announcement: Announcement) -> Refused | None:
        """Return the refusal of an announcement whose packets no mark is left for; None if there is one."""
        return self._without_mark(_claims(announcement), announcement.rates[0].rate_bps)

    def _without_mark(self, claims: Iterable[PairClaim], asked_bps: int) -> Refused | None:
        for own in claims:
            if own.selector.has_ports and self.claims.choices_beside(own) >= MOST_CHOICES:
                why = (
                    f"{own.ends[0]} and {own.ends[1]} have {MOST_CHOICES} choices of ports at that time, and no more "
                    "can be told apart: leave the ports out, or name those of one of these in `connections`"
                )
                return Refused(Reason.NOT_TOLD_APART, "", asked_bps, 0, own.start_us, (), why)
        return None

    def reserves(self, known: Reservation, *, kept: bool) -> None:
        """Take in what a reservation claims; one that is not kept claims nothing."""
        self.claims.put(known.reservation_id, self._claimed(known) if kept else ())

    def clashes(self, known: Reservation) -> bool:
        """Return whether a reservation could not be told apart from another promise."""
        return any(True for claim in self._claimed(known) for _ in self.claims.confused_with(claim))

    def _claimed(self, known: Reservation) -> tuple[PairClaim, ...]:
        return self._of_hosts(known.reservation_id, known, known.path)

    def confused(self, announcement: Announcement) -> PairClaim | None:
        """Return a claim that an announcement could not be told apart from; None if there is none."""
        return next(self.all_confused(announcement), None)

    def all_confused(self, announcement: Announcement) -> Iterator[PairClaim]:
        """Yield the claims that an announcement could not be told apart from."""
        for claim in _claims(announcement):
            yield from self.claims.confused_with(claim)

    def announces(self, announcement: Announcement) -> None:
        """Take in what an announcement claims."""
        self.claims.put(announcement.announcement_id, _claims(announcement))

    def forgets(self, announcement_id: str) -> None:
        """Take out what an announcement claims."""
        self.claims.put(announcement_id, ())


def _asks_no_more(request: Request, known: Reservation) -> bool:
    """Return whether a change asks for nothing that is not booked for a reservation already, on its paths."""
    asked, has = ((one.a_end, one.z_end, one.flow_class, one.constraints) for one in (request, known))
    within = known.start_us <= request.start_us and request.end_us <= known.end_us
    return asked == has and within and request.rate_bps <= known.rate_bps


def _claims(announcement: Announcement) -> Iterator[PairClaim]:
    for flow in announcement.flows:
        times = announcement.announced_us, announcement.lapses_us
        ends = flow.host, flow.target
        yield PairClaim(announcement.announcement_id, ends, flow.flow_class, flow.selector, flow.path, *times)


def not_told_apart(other: PairClaim, asked_bps: int, at_us: int) -> Refused:
    """Return the refusal of what nobody could tell apart from another promise."""
    source, target = other.ends
    ports = _named(other.selector)
    why = (
        f'"{other.owner}" has {other.flow_class} bandwidth from {source} to {target}{ports} at that time, by the way '
        f"{' '.join(other.path[1:-1])}, and both could not be told apart: name other ports in `connections`"
    )
    return Refused(Reason.NOT_TOLD_APART, "", asked_bps, 0, at_us, (), why)


def _named(selector: Selector) -> str:
    ports = (("to port", selector.dest_port), ("from port", selector.local_port))
    return "".join(f" {word} {port}" for word, port in ports if port)


def _taken(offer: Offer, request: Request) -> Request:
    """Return a request as it is if an offer is taken."""
    return replace(
        request,
        flow_class=offer.flow_class,
        rate_bps=offer.rate_bps,
        start_us=offer.start_us,
        end_us=offer.end_us,
    )
