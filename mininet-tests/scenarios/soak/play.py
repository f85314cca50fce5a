"""Plays a soak's events on a running site, mends what they break, and keeps what came of each."""

import heapq
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from mininet_tests.probes.switch_state import dropped_planned
from mininet_tests.scenarios.soak.broken import broken, target
from mininet_tests.scenarios.soak.events import EventKind, SoakEvent
from mininet_tests.site.emulation import now_us
from mininet_tests.site.faults import SiteFaults, Traffic
from mininet_tests.site.lsst import RECEIVER
from mininet_tests.site.standing import is_settled

LOOK_S = 0.02
DROPS_EVERY_S = 0.5
SETTLED_EVERY_S = 0.25
GRACE_S = 1.0  # a few round trips after all is settled, in which what was lost is sent again
UNSETTLED_AFTER_S = 60.0
STUCK_AFTER_S = 120.0
AGAIN_S = 0.5  # a script asks again when the controller does not answer
USED = 0.8  # of what a reservation would carry is sent, so that it must be through before its end


@dataclass(slots=True)
class PromisedTransfer:
    """Bytes under a promise.

    Attributes:
        name: the announcement's or the reservation's.
        streams: the connections they go over.
        began_us: when they were promised.
        promised_us: by when the last is to be confirmed.
        confirmed_us: when it was; 0 while it is not.
        stood: its connections when the promise was over, as the kernel told, if not all was confirmed by then.
    """

    name: str
    streams: tuple[str, ...]
    began_us: int
    promised_us: int
    confirmed_us: int = 0
    stood: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class SoakFault:
    """A fault: when it began, when it was mended, and when all was settled again; 0 while it is not."""

    kind: EventKind
    what: dict[str, Any]
    broken_us: int
    mended_us: int = 0
    settled_us: int = 0

    @property
    def target(self) -> str:
        """What it breaks, of which one thing is broken at a time."""
        return target(self.kind, self.what)

    def covers(self, from_us: int, to_us: int) -> bool:
        """Return whether it has to do with what was between two times."""
        return from_us < (self.settled_us or 2**62) + GRACE_S * 1e6 and self.broken_us < to_us


def stream_name(sender: str, receiver: str, dest_port: int = 0) -> str:
    """Return the name of the connection that uses a pair's reservations, of those to one port if it is not 0."""
    return f"{sender}-{receiver}" + (f":{dest_port}" if dest_port else "")


@dataclass(slots=True)
class Soak:
    """One soak under way.

    Attributes:
        traffic: its connections; those that stand, and one for each host that sends images.
        faults: what can break.
        transfers: all that was promised.
        hit: all that was broken.
        drops: (time, planned packets dropped at the edge so far, by place).
        counts: how often what was answered or done.
    """

    traffic: Traffic
    faults: SiteFaults
    transfers: list[PromisedTransfer] = field(default_factory=list)
    hit: list[SoakFault] = field(default_factory=list)
    drops: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _due: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _looked_s: dict[str, float] = field(default_factory=dict)

    def play(self, event: SoakEvent) -> None:
        """Wait as long as an event says, then let it happen."""
        self.wait(event.wait_s)
        if event.kind is EventKind.ANNOUNCE:
            self._announce(event)
        elif event.kind is EventKind.RESERVE:
            self._reserve(event)
        else:
            self._break(event)

    def wait(self, duration_s: float) -> None:
        """Let it run for a while."""
        until_s = time.monotonic() + duration_s
        while time.monotonic() < until_s:
            self._look()
            time.sleep(LOOK_S)

    def wait_for(self, probe: Callable[[], bool], within_s: float) -> bool:
        """Let it run until something is so; return whether it was in time."""
        until_s = time.monotonic() + within_s
        while not probe():
            if time.monotonic() >= until_s:
                return False
            self.wait(LOOK_S)
        return True

    def finish(self) -> None:
        """Let all that is under way come to its end."""
        self.wait_for(lambda: not self._due and all(t.confirmed_us for t in self.transfers), STUCK_AFTER_S)
        self.wait_for(lambda: all(fault.settled_us for fault in self.hit), UNSETTLED_AFTER_S)
        self.wait(GRACE_S + DROPS_EVERY_S)

    # ---- what is always done ----

    def _look(self) -> None:
        now_s, at_us = time.monotonic(), now_us()
        for transfer in self.transfers:
            streams = [self.traffic.streams[name] for name in transfer.streams]
            if not transfer.confirmed_us and not any(stream.unconfirmed_bytes for stream in streams):
                transfer.confirmed_us = at_us
                self._released(transfer)
            elif not transfer.confirmed_us and not transfer.stood and at_us > transfer.promised_us:
                transfer.stood = {name: asdict(self.traffic.streams[name].told) for name in transfer.streams}
        while self._due and self._due[0][0] <= now_s:
            heapq.heappop(self._due)[2]()
        if self._is_time("drops", DROPS_EVERY_S):
            self.drops.append((at_us, dropped_planned(self.traffic.site.realised)))
        self._look_whether_settled()

    def _look_whether_settled(self) -> None:
        """Note when all is settled again; not while something is still broken."""
        hurt = [fault for fault in self.hit if not fault.settled_us]
        if not hurt or not all(fault.mended_us for fault in hurt) or not self._is_time("settled", SETTLED_EVERY_S):
            return
        if is_settled(self.traffic):
            for fault in hurt:
                fault.settled_us = now_us()

    def _is_time(self, what: str, every_s: float) -> bool:
        now_s = time.monotonic()
        if now_s < self._looked_s.get(what, 0.0) + every_s:
            return False
        self._looked_s[what] = now_s
        return True

    def _later(self, in_s: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._due, (time.monotonic() + in_s, next(self._numbers), action))

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # ---- promises ----

    def _asked(self, path: str, body: dict[str, Any]) -> httpx.Response | None:
        """Return what the controller answers, None while it does not: then the question is to be put again."""
        try:
            answer = self.traffic.site.api.post(path, json=body)
        except httpx.TransportError:
            self._count("not answered")
            return None
        if answer.status_code == 503:
            self._count("not answered")
            return None
        # not allowed: a host that sends to the same place for a reservation already
        if answer.status_code not in (201, 409) and answer.json().get("type") != "/problems/not-allowed":
            raise RuntimeError(f"{path} {body} was answered {answer.status_code}: {answer.text}")
        self._count(f"{path.rpartition('/')[2]} {'granted' if answer.status_code == 201 else 'refused'}")
        return answer

    def _sending(self, senders: Sequence[str]) -> bool:
        return any(not t.confirmed_us and {*t.streams} & {*senders} for t in self.transfers)

    def _announce(self, event: SoakEvent) -> None:
        """Announce an image and send it; a host sends one at a time."""
        senders = tuple(event.what["from"])
        if not self.wait_for(lambda: not self._sending(senders), STUCK_AFTER_S):
            self._count("sender stuck")
            return
        began_us, name = now_us(), f"image-{event.number}"
        body = {"id": name, "bytes": event.what["bytes"], "from": list(senders), "to": RECEIVER}
        if event.what["deadline_s"] is not None:
            body["deadline_s"] = event.what["deadline_s"]
        answer = self._asked("/v1/announcements", body)
        if answer is None:
            self._later(AGAIN_S, lambda: self._announce(event))
        elif answer.status_code == 201:
            promised_us = began_us + round(answer.json()["promised_in_s"] * 1e6)
            part_bytes = -(-event.what["bytes"] // len(senders))
            for sender in senders:
                self.traffic.feed(sender, part_bytes)
            self.transfers.append(PromisedTransfer(name, senders, began_us, promised_us))

    def _released(self, transfer: PromisedTransfer) -> None:
        """Give an announcement back; a reservation ends by itself."""
        if not transfer.name.startswith("image"):
            return
        try:
            answer = self.traffic.site.api.delete(f"/v1/announcements/{transfer.name}")
        except httpx.TransportError:
            self._later(AGAIN_S, lambda: self._released(transfer))
            return
        if answer.status_code == 503:
            self._later(AGAIN_S, lambda: self._released(transfer))

    def _reserve(self, event: SoakEvent) -> None:
        """Reserve bandwidth, and have it used from its start on if the event says so."""
        what = event.what
        start_s = now_us() / 1e6 + what["start_in_s"]
        body = {
            "from": what["from"],
            "to": what["to"],
            "class": what["class"],
            "rate_bps": what["rate_bps"],
            "start": datetime.fromtimestamp(start_s, UTC).isoformat(),
            "duration_s": what["duration_s"],
            "commit": True,
        } | ({"connections": {"dest_port": what["dest_port"]}} if what.get("dest_port") else {})
        answer = self._asked("/v1/reservations", body)
        if answer is None:
            self._later(AGAIN_S, lambda: self._reserve(event))
        elif answer.status_code == 201 and what["used"]:
            end_s, reservation_id = start_s + what["duration_s"], answer.json()["id"]
            self._later(what["start_in_s"] + GRACE_S, lambda: self._use(event, reservation_id, end_s))

    def _use(self, event: SoakEvent, reservation_id: str, end_s: float) -> None:
        """Send what a reservation carries until shortly before its end."""
        name = stream_name(event.what["from"], event.what["to"], event.what.get("dest_port", 0))
        if self.traffic.streams[name].unconfirmed_bytes:  # another one of the pair is being used
            self._count("reservations of a pair in use")
            return
        size_bytes = round(USED * event.what["rate_bps"] * (end_s - now_us() / 1e6 - GRACE_S) * 1448 / 1538 / 8)
        self.traffic.feed(name, size_bytes)
        self._count("reservations used")
        self.transfers.append(PromisedTransfer(reservation_id, (name,), now_us(), round(end_s * 1e6)))

    # ---- faults ----

    def _break(self, event: SoakEvent) -> None:
        """Break something, and have it mended later; the same thing is not broken twice at once."""
        fault = SoakFault(event.kind, event.what, now_us())
        same = [other for other in self.hit if other.target == fault.target]
        self.wait_for(lambda: all(other.mended_us for other in same), UNSETTLED_AFTER_S)
        if fault.target == "controller":  # nobody starts it again if it finds its database held
            self.wait_for(lambda: self.traffic.site.get("/healthz") is not None, UNSETTLED_AFTER_S)
        fault.broken_us = now_us()
        self.hit.append(fault)
        mend = broken(self.faults, event.kind, event.what)

        def mended() -> None:
            mend()
            fault.mended_us = now_us()

        lasts_s = event.what.get("lasts_s", 0.0)
        self._later(lasts_s, mended)
