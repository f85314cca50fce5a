"""A transfer, or a reservation, while it is under way. Pure."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from controller.plan.announcements import HANDOVER_US, Announcement
from controller.plan.keys import flow_id
from controller.plan.reservations import Reservation
from controller.whatif.outcomes import TransferOutcome
from controller.whatif.sendings import US, Sending, reserved_payload_bps
from controller.whatif.supposed import WorkItem
from topology.network import Network, hops
from topology.wire import Framing


@dataclass(slots=True)
class Underway:
    """A transfer, or a reservation.

    Attributes:
        item: what it is of.
        number: which time of that.
        name: in the ledger.
        begun_us: when it was asked for, Unix time.
        promised_us: by when it is to be done.
        sendings: one for each sender.
        why: what is in its way, as the controller has said last.
        lacked_us: of a reservation, for how long less was sent than is reserved.
        floor_bps: payload that is reserved; 0 for a transfer.
        reservation_id: in the ledger, of a reservation.
        called: its own name, if it was made before the scenario began.
        is_watched: whether the controller is asked if it is carried; else what its host sends says so.
        is_lacking: whether it is not carried now.
    """

    item: WorkItem
    number: int
    name: str
    begun_us: int
    promised_us: int
    sendings: tuple[Sending, ...] = ()
    why: str = ""
    lacked_us: int = 0
    floor_bps: int = 0
    reservation_id: str = ""
    called: str = ""
    is_watched: bool = False
    is_lacking: bool = False

    def note_carried(self, obstacles: Sequence[str]) -> None:
        """Note what keeps it from being carried now, as the controller says it."""
        self.is_lacking = bool(obstacles)
        self.why = self.why or "; ".join(obstacles)

    def goes_on(self, start_us: int, end_us: int, network: Network) -> None:
        """Take in that nothing has changed for a time; until its start is in force nothing lacks."""
        if self.is_lacking:
            self.lacked_us += end_us - start_us
        if self.floor_bps and self.sendings[0].rate_bps < self._least_bps(network):
            self.lacked_us += max(0, end_us - max(start_us, self.begun_us + HANDOVER_US))

    def _least_bps(self, network: Network) -> int:
        """Return what a reservation sends at least where it is carried: what its own mover makes of it on its way."""
        (one,) = self.sendings
        return one.mover.effective_bps(self.floor_bps, network.path_rtt_us(one.path), one.file_bytes)

    def note_down(self, network: Network, dead: Container[str]) -> None:
        """Note the dead circuits on its way, until the controller says more of them."""
        names = (network.link(*hop).circuit for one in self.sendings for hop in hops(one.path))
        crossed = sorted({name for name in names if name in dead and name is not None})
        if crossed and not self.why:
            self.why = f"{', '.join(crossed)} down"

    def outcome(self, done_us: int | None, until_us: int) -> TransferOutcome:
        """Return what became of it, as of the end of the scenario."""
        sent = sum(one.sent for one in self.sendings) // (8 * US)
        lost = sum(one.lost for one in self.sendings) // (8 * US)
        outcome = TransferOutcome(
            self.item.name,
            self.number,
            self.begun_us,
            self.promised_us,
            done_us,
            sent,
            lost,
            lacked_us=self.lacked_us,
            called=self.called,
        )
        if outcome.is_late(until_us):
            return replace(outcome, why=self.why or "it was sent slower than promised")
        return outcome


def announced(item: WorkItem, number: int, promise: Announcement, now_us: int) -> Underway:
    """Return a transfer that was announced now, none of whose senders sends yet.

    Lanes have a part of each file together; of several hosts each has files of its own.
    """
    name, sizes = promise.announcement_id, promise.sizes_bytes
    if promise.lanes:
        movers = item.mover.dealt(sizes)
        files = [-(-item.file_bytes * size_bytes // sum(sizes)) for size_bytes in sizes]
    else:
        movers = (item.mover,) * len(sizes)
        files = [min(item.file_bytes, size_bytes) for size_bytes in sizes]
    sendings = tuple(
        Sending(flow.name, flow.machine, flow.target, size_bytes * 8 * US, mover, file_bytes, name, path=flow.path)
        for flow, size_bytes, mover, file_bytes in zip(promise.flows, sizes, movers, files, strict=True)
    )
    return Underway(item, number, name, now_us, promise.promised_us, sendings)


def reserved(item: WorkItem, number: int, name: str, known: Reservation, framing: Framing) -> Underway:
    """Return a reservation that begins now, whose sender sends all that it has."""
    of, sender = known.reservation_id, item.senders[0]
    one = Sending(
        flow_id(of, sender),
        sender,
        item.target,
        None,
        item.mover,
        item.file_bytes,
        since_us=known.start_us,
        path=known.path,
    )
    floor_bps = reserved_payload_bps(item.rate_bps, framing)
    return Underway(item, number, name, known.start_us, known.end_us, (one,), floor_bps=floor_bps, reservation_id=of)
