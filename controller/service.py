"""The use cases: announce, release, look; and what agents and switches have to say.

Each reads the book, decides by the pure plan, and writes the book; :mod:`controller.convergence` does the sending.
"""

from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from itertools import pairwise

import structlog

from controller.book import Book, StepDone, View
from controller.errors import NotAllowed, NotKnown
from controller.plan.announcements import ANNOUNCEABLE, Announcement, Refused, Wish, decided
from controller.plan.plan import Flow
from topology.network import Network, UnknownNode
from topology.protocol import Allocations, Applied, FlowClass, Hello, Telemetry

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Asked:
    """An announcement as a client makes it.

    Attributes:
        announcement_id: a name for it that is not taken.
        flow_class: urgent or background.
        size_bytes: payload, all senders together; each sends an equal part.
        senders: the sending hosts.
        target: the receiving host.
        deadline_us: by when, microseconds from now; None for as soon as possible.
    """

    announcement_id: str
    flow_class: FlowClass
    size_bytes: int
    senders: tuple[str, ...]
    target: str
    deadline_us: int | None = None


class Service:
    """The use cases over one book."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def announce(self, asked: Asked) -> Announcement | Refused:
        """Admit bytes that are coming, or refuse them.

        Raises:
            NotAllowed: a class that is not announced, a host that already sends in the plan, or no bytes.
            NotKnown: a host that is not in the network.
        """
        book = self._book
        with book.changed:
            wish = self._wish(asked)
            answer = decided(wish, book.flows(), book.path, book.site.policy, book.now_us())
            if isinstance(answer, Announcement):
                book.announcements[asked.announcement_id] = answer
                book.replan()
                log.info("announcement.promised", announcement=asked.announcement_id, epoch=book.desired.epoch)
            else:
                log.info("announcement.refused", announcement=asked.announcement_id, why=str(answer))
            return answer

    def release(self, announcement_id: str) -> Announcement:
        """Forget an announcement; its share goes back.

        Raises:
            NotKnown: there is none of this name.
        """
        book = self._book
        with book.changed:
            if announcement_id not in book.announcements:
                raise NotKnown("announcement", announcement_id, tuple(book.announcements))
            announcement = book.announcements.pop(announcement_id)
            book.replan()
            log.info("announcement.released", announcement=announcement_id, epoch=book.desired.epoch)
            return announcement

    def announcements(self) -> tuple[Announcement, ...]:
        """Return those in the plan now."""
        with self._book.changed:
            return tuple(self._book.announcements.values())

    def view(self) -> View:
        """Return the plan at every layer, now."""
        book = self._book
        with book.changed:
            last = book.installed.steps[-1] if book.installed.steps else None
            hosts = {name: replace(state) for name, state in book.hosts.items()}
            return View(book.desired, book.installed.meters, book.layers(), hosts, last.error if last else "")

    def steps(self) -> tuple[StepDone, ...]:
        """Return the latest steps of transitions, oldest first."""
        with self._book.changed:
            return tuple(self._book.installed.steps)

    def host_up(self, hello: Hello) -> Allocations | None:
        """Return what a host may do now that its agent is here; None if there is no such host.

        In the middle of a transition that is what it was sent last, if anything: it takes part in the next step.
        """
        book = self._book
        with book.changed:
            state = book.hosts.get(hello.host)
            if state is None:
                return None
            plan = book.installed.meters
            settled = plan is not None and plan.epoch == book.installed.hosts_epoch
            entries = plan.of_host(hello.host) if plan is not None and settled else state.sent
            state.connected, state.kernel = True, hello.kernel
            return book.sending(hello.host, plan.epoch if plan is not None and settled else state.sent_epoch, entries)

    def host_down(self, host: str) -> None:
        """Note that a host's stream has ended; what it was allowed counts until its lease is over."""
        with self._book.changed:
            state = self._book.hosts[host]
            state.connected, state.lost_us = False, self._book.now_us()
            self._book.changed.notify_all()

    def host_applied(self, host: str, applied: Applied) -> None:
        """Note that a host's kernel holds an epoch."""
        with self._book.changed:
            state = self._book.hosts[host]
            if applied.epoch == state.sent_epoch:
                state.confirmed_epoch, state.confirmed = state.sent_epoch, state.sent
                self._book.changed.notify_all()

    def host_telemetry(self, host: str, telemetry: Telemetry) -> None:
        """Keep a host's counters."""
        with self._book.changed:
            self._book.hosts[host].telemetry = telemetry

    def switch_changed(self) -> None:
        """Note that a switch came or went: what it holds must be compared again."""
        with self._book.changed:
            self._book.switches_suspect = True
            self._book.changed.notify_all()

    def _wish(self, asked: Asked) -> Wish:
        """Return the wish for a request that makes sense; under the lock."""
        book = self._book
        if asked.flow_class not in ANNOUNCEABLE:
            raise NotAllowed("class", f"{asked.flow_class} is not announced, only {' and '.join(ANNOUNCEABLE)}")
        if asked.size_bytes <= 0:
            raise NotAllowed("bytes", f"need at least 1, got {asked.size_bytes}")
        if not asked.senders or len(set(asked.senders)) < len(asked.senders):
            raise NotAllowed("from", "need at least one host, each once")
        if asked.announcement_id in book.announcements:
            raise NotAllowed("id", f'there is already an announcement "{asked.announcement_id}"')
        flows = tuple(
            flow_between(
                book.site.network, f"{asked.announcement_id}/{sender}", asked.flow_class, (sender, asked.target)
            )
            for sender in asked.senders
        )
        for flow in flows:
            busy = next((f.name for f in book.flows() if (f.host, f.target) == (flow.host, flow.target)), None)
            if busy is not None:
                raise NotAllowed("from", f"{flow.host} already sends to {flow.target} as {busy}")
        return Wish(asked.announcement_id, book.site.circuit.name, asked.size_bytes, flows, asked.deadline_us)


def flow_between(network: Network, name: str, flow_class: FlowClass, ends: tuple[str, str]) -> Flow:
    """Return a flow from one host to another, across a circuit.

    Raises:
        NotKnown: one of them is not in the network.
        NotAllowed: the path between them crosses no circuit.
    """
    try:
        source, target = (network.host(end) for end in ends)
    except UnknownNode as error:
        raise NotKnown("host", error.name, error.known) from error
    path = network.path(source.name, target.name)
    if not any(network.link(tail, head).circuit for tail, head in pairwise(path)):
        raise NotAllowed("to", f"{source.name} and {target.name} are not joined by a circuit")
    return Flow(name, flow_class, source.name, target.name, IPv4Network(target.ip))
