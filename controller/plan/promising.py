"""What bytes that are coming can be promised at an instant, beside all that is promised. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from controller.plan.admission import Offer, OfferKind, Refused, lower_classes
from controller.plan.announcement_refusals import ASKING_AGAIN_US, Instead, no_way, refused
from controller.plan.announcements import ANNOUNCEABLE, Announcement, Wish, led_over, promises
from controller.plan.beside import Admission, not_told_apart
from controller.plan.booking_lead import Market
from controller.plan.failover import crossed
from controller.plan.paths import default_path
from controller.plan.reservations import MOST_AHEAD_US, Reservation
from controller.plan.routes import Route, TransferEnds, by_paths_left, route_along, routes
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class Promising:
    """What promises are made by.

    Attributes:
        market: what there is to be had.
        admission: what is claimed of pairs of hosts.
        running: the reservations whose time it is.
        down: circuits that nothing which begins now can use.
        closed: circuits that are to carry nothing now; the calendar knows when they are there again.
        now_us: Unix time.
    """

    market: Market
    admission: Admission
    running: Iterable[Reservation]
    down: frozenset[str]
    closed: frozenset[str]
    now_us: int

    def answer(self, wish: Wish, senders: tuple[str, ...], target: str) -> Announcement | Refused:
        """Return the best promise for a wish that can be told apart from all others, or why there is none."""
        network, calendar, now_us = self.market.network, self.market.calendar, self.now_us
        routes = self._routes(wish, senders, target)
        if not routes:
            return no_way(network, wish.flow_class, (senders[0], target), self.down, now_us)
        found = self._told_apart(wish, routes)
        if found is not None:
            return found
        instead = self._instead(wish, routes, senders, target)
        if isinstance(instead, Refused):
            return instead
        answer = refused(wish, routes, calendar, now_us, instead)
        offers = (one for one in answer.offers if one.end_us - now_us <= MOST_AHEAD_US)
        return replace(answer, offers=tuple(one for one in offers if self._is_granted(wish, routes, one)))

    def _told_apart(self, wish: Wish, routes: Iterable[Route]) -> Announcement | Refused | None:
        """Return the best promise by some routes that can be told apart from others, or that none can; None if none."""
        answers = promises(wish, routes, self.market.calendar, self.now_us)
        # By a deadline others are preferred to what waits for a circuit.
        answers.sort(key=lambda a: (self.is_stranded(a) and wish.deadline_us is not None, a.promised_us, not a.pool))
        others = [self.admission.confused(answer) for answer in answers]
        told = next((a for a, other in zip(answers, others, strict=True) if other is None), None)
        if told is None and others and others[0]:
            along = (one for answer in answers for one in self._along_others(wish, answer))
            if (told := next(along, None)) is None:
                return not_told_apart(others[0], answers[0].rates[0].rate_bps, self.now_us)
        return told and (self.admission.without_mark(told) or told)

    def _instead(self, wish: Wish, routes: Iterable[Route], senders: tuple[str, ...], target: str) -> Instead | Refused:
        """Return what would be promised instead of a wish; or that, whenever it is due, it could not be told apart."""
        asks_later = replace(self, now_us=self.now_us + ASKING_AGAIN_US)
        soonest = asks_later._told_apart(replace(wish, deadline_us=None), routes)
        if isinstance(soonest, Refused):
            return soonest
        crossed = () if soonest is None else self._circuits(soonest, routes)
        return Instead(soonest, crossed, self._class_that_would_do(wish, senders, target))

    def _circuits(self, known: Announcement, routes: Iterable[Route]) -> tuple[str, ...]:
        """Return the circuits that a promise crosses: its own, or those that what it draws on takes now."""
        own = (circuit for flow in known.flows for circuit in self.market.network.circuits_along(flow.path))
        drawn_on = (route.circuits for route in routes if known.pool and route.pool == known.pool)
        return next(drawn_on, tuple(dict.fromkeys(own)))

    def _is_granted(self, wish: Wish, routes: Iterable[Route], offer: Offer) -> bool:
        """Return whether an offer of another time is granted to who takes it; others are granted as they were found."""
        asked: list[tuple[int, Wish]] = []
        if offer.kind is OfferKind.EARLIEST_START:
            asked = [(offer.start_us, wish)]
        elif offer.kind is OfferKind.LATER_DEADLINE:
            asked = [(at_us, replace(wish, deadline_us=offer.end_us - at_us)) for at_us in self._asks_us]
        return self._are_granted(asked, routes)

    def _are_granted(self, asked: Iterable[tuple[int, Wish]], routes: Iterable[Route]) -> bool:
        """Return whether each wish would be granted if it were asked at its moment."""
        answers = (replace(self, now_us=at_us)._told_apart(one, routes) for at_us, one in asked)
        return all(isinstance(answer, Announcement) for answer in answers)

    @property
    def _asks_us(self) -> tuple[int, int]:
        """When at the earliest and at the latest an offer is taken that is granted from now on."""
        return self.now_us, self.now_us + ASKING_AGAIN_US

    def _along_others(self, wish: Wish, answer: Announcement) -> Iterator[Announcement]:
        """Yield the promise by the ways of those that a promise could not be told apart from, if these are up."""
        ways = {claim.ends: claim.path for claim in self.admission.all_confused(answer)}
        paths = [ways.get((flow.host, flow.target), flow.path) for flow in answer.flows]
        circuits = {circuit for path in paths for circuit in self.market.network.circuits_along(path)}
        if answer.pool or answer.lanes or not circuits <= self._leased - self.down:
            return
        route = route_along(self.market.network, (wish.announcement_id, wish.flow_class), paths)
        for along in promises(wish, [route], self.market.calendar, self.now_us):
            if self.admission.confused(along) is None:
                yield along

    def is_stranded(self, known: Announcement) -> bool:
        """Return whether an announcement that draws on no reservation goes by a circuit that carries nothing now."""
        return not known.pool and any(crossed(self.market.network, flow.path, self.down) for flow in known.flows)

    def led_round(self, known: Announcement) -> Announcement:
        """Return an announcement that draws on no reservation by the ways that are left, where its own are dead."""
        network, down = self.market.network, self.down
        gone = frozenset(circuit.name for circuit in network.circuits) - self._leased | down
        paths = (
            default_path(network, flow.host, flow.target, gone) if crossed(network, flow.path, down) else flow.path
            for flow in known.flows
        )
        return led_over(network, known, tuple(paths))

    def _class_that_would_do(self, wish: Wish, senders: tuple[str, ...], target: str) -> FlowClass | None:
        """Return the nearest class below in which a wish is granted as it is, until an offer of that has been taken."""
        for flow_class in lower_classes(wish.flow_class, self.market.policy):
            lower = replace(wish, flow_class=flow_class)
            routes = self._routes(lower, senders, target)
            if flow_class in ANNOUNCEABLE and self._are_granted([(at_us, lower) for at_us in self._asks_us], routes):
                return flow_class
        return None

    def _routes(self, wish: Wish, senders: tuple[str, ...], target: str) -> tuple[Route, ...]:
        network, now = self.market.network, by_paths_left(self.market.network, self.running, self.down)
        named, ends = (wish.announcement_id, wish.flow_class), TransferEnds(senders, target, wish.lanes)
        up, closed = self._leased - self.down, self._leased & self.down & self.closed
        found = tuple(routes(network, named, ends, now, up))
        if not closed:
            return found
        later = routes(network, named, ends, (), up | closed)
        return (*found, *(one for one in later if not closed.isdisjoint(one.circuits)))

    @property
    def _leased(self) -> frozenset[str]:
        return frozenset(c.name for c in self.market.network.circuits) - self.market.lead_us.keys()
