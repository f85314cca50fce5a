"""Announcements: bytes that are coming, and the promise or the refusal they are answered with. Pure.

A promise is a booking like any other, from now on: a rate for each sender that nobody can take away, so that neither
a later announcement nor a reservation that begins meanwhile breaks it. Where a site has reserved bandwidth for the
class, its announcements draw on that; otherwise on what is free.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from controller.plan.calendar import Booking, Calendar, Need
from controller.plan.deliveries import Delivered, total_bytes
from controller.plan.keys import FlowId, StorePlace
from controller.plan.lanes import LanePart, arriving, free_together, lane_parts, split, together
from controller.plan.plan import THE_REST, Flow, Selector
from controller.plan.reservations import LEAST_BPS, Reservation
from controller.plan.resources import joint, need
from controller.plan.routes import Route, route_along
from controller.plan.storing import (
    StoreCapacity,
    StoredVolume,
    disk_time,
    make_known,
    soonest_stored,
    thriftiest_stored,
)
from controller.plan.volume import (
    ConstantRate,
    Piece,
    Volume,
    earliest_finish,
    in_force,
    lowest_constant_rate,
    planned_before,
)
from topology.network import Network
from topology.parities import most_parities
from topology.protocol import FlowClass, Tail
from topology.wire import PPM, Framing, Layer

ANNOUNCEABLE = (FlowClass.URGENT, FlowClass.BACKGROUND)
LAPSE_FACTOR = 2  # an announcement nobody releases is forgotten at twice its promised duration ...
LAPSE_GRACE_US = 30_000_000  # ... and half a minute: a script that died must not keep the circuit from the others
WARM_UP_RTTS = 2  # handshake, then the SYN's unscaled window (RFC 7323 section 2.2)
TAIL_RTTS = 2  # the confirmation, and what the line has lost of the last round trip sent again
HANDOVER_US = 50_000  # from the demand that a host sees until its share is in force everywhere: milliseconds, as a rule
SEARCHES_US = (3_600_000_000, 86_400_000_000, 31 * 86_400_000_000)  # how far ahead, in turn


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client announces.

    Attributes:
        announcement_id: names it.
        flow_class: urgent or background.
        size_bytes: payload, all senders together, in equal parts.
        deadline_us: by when, microseconds from now; None for as soon as possible.
        framing: how its segments are wrapped.
        selector: which connections of each sender to the target it is for.
        key: the client's name for the request; empty for none.
        fingerprint: a digest of what is asked, by which a repetition is known.
        owner: the principal or ``group:NAME`` whose it will be.
        creator: the principal that asks.
        store: where it is put, if it is known what that takes.
        is_stored_by: whether the deadline is for all to be stored, and not only across.
        lanes: over how many circuits at once, at most.
        is_called: whether the receiver makes the connections, and deals them to the lanes.
        session_us: how long its program's session takes before the first byte of it.
        tail: coded if parities are to follow what each of its senders sends.
        setup_us: how long after its announcement all switches and hosts know it.
    """

    announcement_id: str
    flow_class: FlowClass
    size_bytes: int
    deadline_us: int | None
    framing: Framing
    selector: Selector = THE_REST
    key: str = ""
    fingerprint: str = ""
    owner: str = ""
    creator: str = ""
    store: StoreCapacity | None = None
    is_stored_by: bool = False
    lanes: int = 1
    is_called: bool = False
    session_us: int = 0
    tail: Tail = Tail.PLAIN
    setup_us: int = 0


@dataclass(frozen=True, slots=True)
class Announcement:
    """A promise.

    Attributes:
        announcement_id: names it in the API.
        size_bytes: payload, all parts together.
        flows: one per sending host; or, of one host over several circuits, one per lane.
        need: what one bit/s of each sender takes.
        rates: what each sender is promised, when; on the wire, by all its lanes.
        pool: the reservation it draws on; empty for none.
        announced_us: when, Unix time.
        promised_us: when the last byte will be confirmed at the latest, Unix time.
        sequence: orders announcements as they were made.
        key: as in :class:`Wish`.
        fingerprint: as in :class:`Wish`.
        delivered: what each sender has delivered.
        finished_us: when the last of what was announced was confirmed, Unix time; None if it was not yet.
        owner: as in :class:`Wish`; empty for nobody.
        creator: as in :class:`Wish`; empty if it was not noted.
        store: where it is put; None if nobody knows what that takes.
        drains: what that is promised to write of it, when.
        lanes: what each of its flows is promised, if they are lanes; empty if each has the rates.
        is_called: as in :class:`Wish`.
    """

    announcement_id: str
    size_bytes: int
    flows: tuple[Flow, ...]
    need: Need
    rates: tuple[ConstantRate, ...]
    pool: str
    announced_us: int
    promised_us: int
    sequence: int = 0
    key: str = ""
    fingerprint: str = ""
    delivered: tuple[Delivered, ...] = ()
    finished_us: int | None = None
    owner: str = ""
    creator: str = ""
    store: StorePlace | None = None
    drains: tuple[ConstantRate, ...] = ()
    lanes: tuple[LanePart, ...] = ()
    is_called: bool = False

    @property
    def stored_us(self) -> int | None:
        """When all of it will be stored at the latest, Unix time; None if nobody knows."""
        return max(self.promised_us, self.drains[-1].end_us) if self.drains else None

    def with_delivered(self, delivered: tuple[Delivered, ...]) -> "Announcement":
        """Return it with more delivered; what comes after it has arrived does not change when that was."""
        finished_us = self.finished_us
        if finished_us is None and total_bytes(delivered) >= self.size_bytes:
            finished_us = max(one.last_us for one in delivered)
        return replace(self, delivered=delivered, finished_us=finished_us)

    @property
    def lapses_us(self) -> int:
        """When it is forgotten if nobody releases it, Unix time: not before its disk has written all of it."""
        after_us = self.announced_us + LAPSE_FACTOR * (self.promised_us - self.announced_us) + LAPSE_GRACE_US
        return max(after_us, self.stored_us or 0)

    def bookings(self) -> tuple[tuple[str, Booking], ...]:
        """Return what it books, by name."""
        booked = [(str(k), self.need, part) for k, part in enumerate(self.rates if not self.lanes else ())]
        for number, lane in enumerate(self.lanes if self.rates else ()):
            booked += [(f"lane{number}/{k}", lane.need, part) for k, part in enumerate(lane.rates)]
        if self.store is not None and self.rates:
            of_store = Need(((self.store, PPM),))
            booked += [(f"store/{k}", of_store, part) for k, part in enumerate(self.drains)]
        return tuple(
            (f"{self.announcement_id}/{name}", Booking(need, part.rate_bps, part.start_us, part.end_us))
            for name, need, part in booked
        )

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """What each of its flows is to deliver, payload."""
        if self.lanes:
            return tuple(lane.size_bytes for lane in self.lanes)
        return (-(-self.size_bytes // len(self.flows)),) * len(self.flows)

    @property
    def awaited(self) -> frozenset[FlowId]:
        """Which of its flows have yet to deliver something for all that was announced to have arrived."""
        return frozenset() if self.finished_us is not None else self.unfinished

    @property
    def awaited_flows(self) -> tuple[Flow, ...]:
        """Those flows, in the order of its senders or lanes."""
        awaited = self.awaited
        return tuple(flow for flow in self.flows if flow.name in awaited)

    @property
    def unfinished(self) -> frozenset[FlowId]:
        """Which of its flows have not delivered their own part, whatever others have delivered beside theirs."""
        return frozenset(self.left_bytes() if self.delivered else (flow.name for flow in self.flows))

    def left_bytes(self) -> dict[FlowId, int]:
        """Return what each of its flows has yet to deliver of what was announced; nothing of those that have it all."""
        parts_bytes = {flow.name: size for flow, size in zip(self.flows, self.sizes_bytes, strict=True)}
        left = {one.flow: parts_bytes[one.flow] - one.payload_bytes for one in self.delivered}
        return {name: size_bytes for name, size_bytes in left.items() if size_bytes > 0}

    def floor_bps(self, now_us: int) -> int:
        """Return what each sender is promised at an instant, on the wire."""
        return next((part.rate_bps for part in self.rates if part.start_us <= now_us < part.end_us), 0)

    def floors_bps(self, now_us: int) -> tuple[int, ...]:
        """Return what each of its flows is promised at an instant, on the wire."""
        if self.lanes and self.rates:
            return tuple(lane.floor_bps(now_us) for lane in self.lanes)
        return (self.floor_bps(now_us),) * len(self.flows)


def promises(wish: Wish, routes: Iterable[Route], calendar: Calendar, now_us: int) -> list[Announcement]:
    """Return the promise along each of the routes that can give one.

    With a deadline it is the lowest constant rate that meets it, which leaves most to others; or, if the free rate is
    too uneven for that, all that is free. Without one it is all that is free, from now on.
    """
    answers = (_along(wish, route, calendar, now_us) for route in routes)
    return [answer for answer in answers if answer is not None]


@dataclass(frozen=True, slots=True)
class _Way:
    """What a wish's bytes may go by.

    Attributes:
        senders: how many send, each at the same rate.
        start_us: when the first may, Unix time.
        tail_us: from the last byte until it is confirmed.
        free: what each sender may have until a time.
    """

    senders: int
    start_us: int
    tail_us: int
    free: Callable[[int], tuple[Piece, ...]]


def _along(wish: Wish, route: Route, calendar: Calendar, now_us: int) -> Announcement | None:
    start_us, tail_us = now_us + opening_us(wish, route), TAIL_RTTS * route.rtt_us
    lead_us = wish.setup_us + HANDOVER_US  # a rate is planned so long before it counts
    lanes = [(lane.need, opening_us(wish, lane), TAIL_RTTS * lane.rtt_us) for lane in route.lanes]

    def free(until_us: int) -> tuple[Piece, ...]:
        return tuple(in_force(calendar.rates(route.need, start_us - lead_us, until_us), lead_us))

    def free_of_lanes(until_us: int) -> tuple[Piece, ...]:
        return arriving(free_together(calendar, lanes, now_us, until_us, lead_us))

    way = _Way(1, now_us, 0, free_of_lanes) if lanes else _Way(len(route.flows), start_us, tail_us, free)
    stored = None if wish.store is None else _stored(wish, wish.store, way, calendar, now_us)
    rates = _rates(wish, way, now_us) if wish.store is None else None if stored is None else stored.rates
    if rates is None:
        return None
    waits = wish.store is not None and calendar.booked_until_us(wish.store.place, start_us) > start_us
    sooner_us = 0 if waits else lead_us  # before a disk's turn nothing comes
    promised_us, by_lane = rates[-1].end_us + way.tail_us, tuple[LanePart, ...]()
    if lanes:
        apart = split(free_together(calendar, lanes, now_us, rates[-1].end_us, lead_us), rates)
        parts = lane_parts([need for need, _, _ in lanes], apart, wish.size_bytes)
        by_lane = tuple(replace(lane, rates=planned_before(lane.rates, sooner_us)) for lane in parts)
        rates = together(by_lane)
    else:
        rates = planned_before(rates, sooner_us)
    flows = tuple(replace(flow, selector=wish.selector, tail=wish.tail) for flow in route.flows)
    return Announcement(
        wish.announcement_id,
        wish.size_bytes,
        flows,
        route.need,
        rates,
        route.pool,
        now_us,
        promised_us,
        key=wish.key,
        fingerprint=wish.fingerprint,
        owner=wish.owner,
        creator=wish.creator,
        store=None if wish.store is None else wish.store.place,
        drains=() if stored is None else stored.drains,
        lanes=by_lane,
        is_called=wish.is_called,
    )


def opening_us(wish: Wish, route: Route) -> int:
    """Return how long after its announcement a program may send at the planned rate at the latest.

    While switches and hosts are told of it, the program makes its connection: whichever takes longer counts.
    """
    return max(wish.setup_us, wish.session_us + WARM_UP_RTTS * route.rtt_us) + HANDOVER_US


def _rates(wish: Wish, way: _Way, now_us: int) -> tuple[ConstantRate, ...] | None:
    """Return the rates by which a wish's bytes get across along a way; None if they do not, or not in time."""
    volume = Volume(part_bits(wish, way.senders), LEAST_BPS, 2**62)
    if wish.deadline_us is None:
        found = (earliest_finish(way.free(way.start_us + search_us), volume) for search_us in SEARCHES_US)
        return next((rates for rates in found if rates is not None), None)
    until_us = now_us + wish.deadline_us - way.tail_us
    if until_us <= way.start_us:
        return None
    pieces = way.free(until_us)
    constant = lowest_constant_rate(pieces, volume)
    return earliest_finish(pieces, volume) if constant is None else (constant,)


def _stored(wish: Wish, store: StoreCapacity, way: _Way, calendar: Calendar, now_us: int) -> StoredVolume | None:
    """Return how a wish's bytes get onto the disk of their receiver along a way; None if not in time.

    With a deadline for being across, by the lowest rate that meets it. Else as soon as the disk has it: by the lowest
    rate that has its room full when the last byte arrives, for a higher one would only wait there.
    """
    part = Volume(part_bits(wish, way.senders), LEAST_BPS, 2**62)
    make_known(calendar, store)
    for search_us in SEARCHES_US:
        network = way.free(way.start_us + search_us)
        disk = disk_time(calendar, store, way.start_us, way.start_us + search_us, LEAST_BPS)
        soonest = soonest_stored(network, disk, part, way.senders)
        if soonest is None:
            continue
        ends_us = None if wish.deadline_us is None else now_us + wish.deadline_us
        done_us = max(soonest.stored_us, soonest.across_us + way.tail_us)
        if wish.is_stored_by and ends_us is not None and done_us > ends_us:
            return None
        by_us = None if ends_us is None or wish.is_stored_by else ends_us - way.tail_us
        return thriftiest_stored(network, disk, part, way.senders, by_us)
    return None


def led_by(network: Network, announcement: Announcement, known: Reservation) -> Announcement:
    """Return an announcement that draws on a reservation by the path which that has now."""
    first = announcement.flows[0]
    paths = [(flow.host, *known.path, flow.target) for flow in announcement.flows]
    if [flow.path for flow in announcement.flows] == paths:
        return announcement
    named = announcement.announcement_id, first.flow_class
    route = route_along(network, named, paths, known.reservation_id)
    flows = tuple(replace(flow, selector=first.selector, tail=first.tail) for flow in route.flows)
    return replace(announcement, flows=flows, need=route.need)


def led_over(network: Network, announcement: Announcement, paths: tuple[tuple[str, ...], ...]) -> Announcement:
    """Return an announcement that draws on no reservation, its flows by other paths."""
    flows = tuple(replace(flow, path=path) for flow, path in zip(announcement.flows, paths, strict=True))
    needs = [need(network, (flow.path,), flow.flow_class) for flow in flows]
    lanes = tuple(replace(lane, need=own) for lane, own in zip(announcement.lanes, needs, strict=False))
    return replace(announcement, flows=flows, need=needs[0] if lanes else joint(needs), lanes=lanes)


def part_bits(wish: Wish, senders: int) -> int:
    """Return what one sender's part takes on the wire, in bits: full segments, and the parities that follow."""
    part_bytes = -(-wish.size_bytes // senders)
    segments = -(-part_bytes // wish.framing.segment_bytes(Layer.PAYLOAD))
    segments += most_parities(segments) if wish.tail is Tail.CODED else 0
    return 8 * segments * wish.framing.segment_bytes(Layer.WIRE)
