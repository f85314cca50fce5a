"""A page for each thing: what there is to know of it, in the values that ``/v1`` answers."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from controller.announced import state_at
from controller.database import ChangeQuery, DatabaseFailed
from controller.errors import NotKnown
from controller.events import Happened
from controller.northbound.dependencies import Dependencies
from controller.northbound.page.detail import Detail, Table
from controller.northbound.page.look import Look
from controller.northbound.page.steps_svg import drawn as drawn_steps
from controller.northbound.page.stored import HEADS, store_rows, stored_by
from controller.northbound.page.words import measured_rate, when
from controller.northbound.rest.render_announcements import announcement as announcement_out
from controller.northbound.rest.render_promises import reservation as reservation_out
from controller.northbound.rest.shapes import ReservationOut
from controller.plan.delays import MeasuredDelay
from controller.plan.ended import EndedAnnouncement
from controller.plan.lifecycle import ENDED
from controller.state.reported import NO_AGENT
from topology.addresses import shown_address
from topology.network import Hop, Link
from topology.protocol import FlowClass
from topology.units import shown_delay, shown_rate, shown_size, shown_time

MOST_EVENTS = 200
LATEST_STEPS = 40
MOST_CHANGES = 100  # of one reservation, the latest

_CARRIED = {True: "yes, by every layer", False: "no", None: "its time is not now, or another controller leads"}


class Details:
    """Makes the pages."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._behind = dependencies

    def reservation(self, name: str, look: Look, *, with_changes: bool) -> Detail:
        """Return a reservation.

        Args:
            name: its id.
            look: what was seen.
            with_changes: whether who looks may see who has changed it, and from where.

        Raises:
            NotKnown: there is none.
            DatabaseFailed: it cannot be read.
        """
        behind = self._behind
        known = behind.reserved.one(name)
        (obstacles,), (lacking,) = behind.use_cases.obstacles([known]), behind.use_cases.not_guaranteed([known])
        out = reservation_out(known, behind.network, obstacles, lacking)
        facts = [
            ("State", out["state"]),
            ("Why", out["reason"] or "; ".join(out["reasons"]) or "-"),
            ("Carried", _CARRIED[out["carried"]]),
            ("Rate", f"{shown_rate(out['rate_bps'])} on the wire, {shown_rate(out['payload_bps'])} of payload"),
            ("Class", out["class"]),
            ("From", out["from"]),
            ("To", out["to"]),
            ("Time", f"{out['start']} to {out['end']}"),
            ("Circuits", ", ".join(out["circuits"]) or "none"),
            ("Path", " → ".join(out["path"])),
            ("Words", out["description"] or "-"),
            ("Owner", out["owner"] or "nobody"),
            ("Made", out["created"]),
            ("Changed", out["changed"]),
        ]
        if out["not_guaranteed"]:
            facts.insert(3, ("Not guaranteed", "; ".join(out["not_guaranteed"])))
        if out["hold_until"]:
            facts.insert(1, ("Held until", out["hold_until"]))
        changes = (self._changes_of(name),) if with_changes else ()
        path = f"/v1/reservations/{known.reservation_id}"
        act = [] if known.state in ENDED else [("release", path)]
        act += [("commit", f"{path}/commit")] if known.state.value == "held" else []
        return Detail(
            "Reservation",
            name,
            out["state"],
            tuple(facts),
            (self._delivered(name, look), *changes, self._events_of(name)),
            curl=path,
            act=tuple(act),
            version=known.version,
            owner=known.owner,
            extra={} if known.state in ENDED else {"change": _changeable(out), "touches": _touches(out)},
        )

    def _delivered(self, name: str, look: Look) -> Table:
        """Return what is delivered now of what the plan has for a reservation, and for what draws on it."""
        drawing = [one.announcement_id for one in self._behind.announced.in_force() if one.pool == name]
        owners = {name: "itself", **{each: f"announcement {each}" for each in drawing}}
        rows = []
        for entry in look.view.desired.entries:
            of = next((o for o in owners if any(part.startswith(f"{o}/") for part in entry.flow.names)), None)
            if of is not None:
                seen, flow = look.view.delivers(entry), entry.flow
                rates = shown_rate(entry.payload_bps), measured_rate(seen.delivered_bps)
                bytes_now = shown_size(seen.delivered_bytes)
                rows.append((owners[of], _host(flow.host), flow.target, *rates, bytes_now, seen.hindrance or "nothing"))
        heads = ("what", "from", "to", "planned", "delivered", "in all", "in the way of more")
        return Table("What is delivered of it now", heads, tuple(rows), "Nothing of it is in the plan now.")

    def _changes_of(self, name: str) -> Table:
        """Return who has changed something, when and from where: the chain of changes outlives the controller."""
        title, heads = "Who has changed it", ("when", "what", "who", "from", "outcome")
        try:
            rows = self._behind.changes(ChangeQuery(limit=MOST_CHANGES + 1, id=name, newest_first=True))
        except DatabaseFailed as failure:
            return Table(title, heads, (), f"The database cannot be read: {failure.why}")
        shown_rows = tuple(
            (shown_time(row.change.at_us), row.change.kind, row.change.who, row.change.address, row.change.outcome)
            for row in rows[:MOST_CHANGES]
        )
        latest = f", the latest {MOST_CHANGES}" if len(rows) > MOST_CHANGES else ""
        return Table(f"{title}{latest}, newest first", heads, shown_rows)

    def announcement(self, name: str) -> Detail:
        """Return an announcement.

        Raises:
            NotKnown: there was none lately.
            DatabaseFailed: it cannot be read.
        """
        behind = self._behind
        known = behind.announced.one(name)
        made = known.announcement if isinstance(known, EndedAnnouncement) else known
        obstacles = None if isinstance(known, EndedAnnouncement) else behind.use_cases.obstacles([known])[0]
        out = announcement_out(known, behind.announced.progress([known]), obstacles, behind.now_us())
        facts = (
            ("State", out["state"]),
            ("Why", "; ".join(out["reasons"]) or "-"),
            ("Bytes", f"{shown_size(out['bytes'])} announced, {shown_size(out['delivered_bytes'])} delivered"),
            ("Announced", shown_time(made.announced_us)),
            ("Promised for", shown_time(made.promised_us)),
            ("Stored by", stored_by(made)),
            ("Arrived", "-" if made.finished_us is None else shown_time(made.finished_us)),
            ("To", ", ".join(dict.fromkeys(flow.target for flow in made.flows))),
            ("Owner", made.owner or "nobody"),
        )
        ways = {flow.host: " → ".join(flow.path) for flow in made.flows}
        rows = tuple(
            (_host(one["host"]), ways[one["host"]], shown_size(one["delivered_bytes"]), one["hindrance"] or "nothing")
            for one in out["senders"]
        )
        senders = Table("Senders", ("host", "path", "delivered", "in the way of more"), rows)
        path = f"/v1/announcements/{name}"
        act = () if isinstance(known, EndedAnnouncement) else (("release", path),)
        state = state_at(known, behind.now_us())
        return Detail(
            "Announcement", name, state, facts, (senders, self._events_of(name)), curl=path, act=act, owner=made.owner
        )

    def host(self, name: str, look: Look) -> Detail:
        """Return a host.

        Raises:
            NotKnown: there is none.
        """
        network, view = self._behind.network, look.view
        if name not in network.host_names:
            raise NotKnown("host", name, tuple(one.name for one in network.hosts))
        known, name = network.host(name), network.machine(name)
        host, has_agent = view.hosts.get(name, NO_AGENT), name in view.hosts
        since = shown_time(host.since_us) if host.since_us else "it never was, since the controller started"
        facts = (
            ("Agent", ("connected" if host.connected else "! not connected") if has_agent else "none"),
            *((("Since", since),) if has_agent else ()),
            ("Site", known.site),
            ("Address", ", ".join(map(shown_address, known.prefixes))),
            ("Kernel", host.kernel or "-"),
            ("Plan", f"sent {host.sent_epoch}, confirmed {host.confirmed_epoch}"),
        )
        rows = []
        for entry in view.desired.of_host(name):
            seen = view.delivers(entry)
            rows.append(
                (
                    entry.flow.name,
                    entry.flow.flow_class,
                    " → ".join(entry.flow.path),
                    shown_rate(entry.payload_bps),
                    measured_rate(seen.delivered_bps),
                    entry.window_segments,
                    seen.hindrance or "nothing",
                    shown_time(seen.since_us),
                )
            )
        heads = ("flow", "class", "path", "planned", "delivered", "window, segments", "in the way of more", "since")
        state = "connected" if host.connected else "missing" if has_agent else "no agent"
        table = Table("What it may send", heads, tuple(rows), "The plan has nothing for it.")
        stores = Table("Where it puts what it receives", HEADS, store_rows(host), "Its agent tells of no store.")
        return Detail("Host", name, state, facts, (table, stores, self._events_of(name)), curl="/v1/hosts")

    def circuit(self, name: str, look: Look) -> Detail:
        """Return a circuit: its layers side by side, and who uses it.

        Raises:
            NotKnown: there is none.
        """
        circuits = {circuit.name: circuit for circuit in self._behind.network.circuits}
        if name not in circuits:
            raise NotKnown("circuit", name, tuple(circuits))
        circuit, view = circuits[name], look.view
        ready = "a plan is ready for its death" if name in view.prepared else "there is no way round it"
        is_used = name not in view.desired.down
        network = self._behind.network
        is_whole = network.is_ours(circuit.a_end) and network.is_ours(circuit.z_end)
        far = () if is_whole else (("Not planned", "what comes in by it: its far end is not ours"),)
        until_us = look.worked_on.get(name)
        now = () if until_us is None else (("Now", f"maintenance until {when(until_us)}: nothing goes by it"),)
        facts = (
            ("Line", view.lines[name].value),
            *now,
            ("Rate", f"{shown_rate(circuit.rate_bps)} on the wire"),
            ("Ends", f"{circuit.a_end} and {circuit.z_end}"),
            ("Delay", f"{_delay(network.links_of(circuit)[0], view.delays.get(name))} (one way)"),
            ("If it dies", ready) if is_used else ("Meanwhile", "its flows are led round it, as far as there is room"),
            *far,
        )
        links = [hop for hop in view.desired.links if network.link(*hop).circuit == name and network.is_ours(hop.tail)]
        planned = [one for one in self._behind.use_cases.maintaining.all() if one.circuit == name]
        rows = tuple((shown_time(w.start_us), shown_time(w.end_us), w.words or "-", w.creator or "-") for w in planned)
        work = Table("Maintenance", ("from", "until", "words", "by"), rows, "None is planned.")
        tables = (self._layers(look, links), self._flows(look, links), work, self._events_of(name))
        extra = {"maintenance": planned}
        state = view.lines[name].value if until_us is None else "maintenance"
        return Detail("Circuit", name, state, facts, tables, curl="/v1/circuits", extra=extra)

    def switch(self, name: str, look: Look) -> Detail:
        """Return a switch: what is planned, and what its queues, meters and rules hold.

        Raises:
            NotKnown: there is none.
        """
        switches = {switch.name: switch for switch in self._behind.network.switches}
        if name not in switches:
            raise NotKnown("switch", name, tuple(switches))
        switch = switches[name]
        is_there = switch.dpid in look.connected
        facts = (
            ("Connection", "connected" if is_there else "✕ not connected"),
            ("Datapath id", f"{switch.dpid:016x}"),
            ("Site", switch.site),
        )
        links = [hop for hop in look.view.desired.links if hop.tail == name]
        audit = self._behind.drift().latest.get(name)
        rows: list[tuple[Any, ...]] = []
        if audit is not None:
            rows += [(kind.value, "proper", count, "", "") for kind, count in audit.seen.proper.items()]
            rows += [
                (d.kind.value, d.shape.value, d.found or "missing", d.wanted, d.todo or d.outcome.value)
                for d in audit.seen.deviations[:MOST_EVENTS]
            ]
        heads = ("what", "how", "found", "wanted", "done, or to do")
        said = "" if audit is None else f", {shown_time(audit.at_us)}"
        audited = Table(
            f"Rules, meters and queues, as the latest audit found them{said}", heads, tuple(rows), "Not yet."
        )
        tables = (self._layers(look, links), audited, self._events_of(name))
        state = "connected" if is_there else "gone"
        return Detail("Switch", name, state, facts, tables, curl="/v1/drift")

    def transitions(self) -> Detail:
        """Return the latest steps from plan to plan, as a drawing and in words."""
        steps = self._behind.reports.steps()[-LATEST_STEPS:]
        rows = tuple(
            (
                shown_time(s.started_us),
                s.epoch,
                s.stage.value,
                f"{(s.done_us - s.started_us) / 1000:.1f} ms",
                s.error or f"{len(s.changes)} changes",
            )
            for s in reversed(steps)
        )
        table = Table("Steps, newest first", ("began", "plan", "layer", "took", "what"), rows)
        drawing = drawn_steps(steps)
        return Detail("Transitions", "from plan to plan", "", (), (table,), drawing=drawing, curl="/v1/transitions")

    def events(self, words: str) -> Detail:
        """Return what has happened lately, newest first, as far as some words are in it."""
        table = self._events(re.compile(re.escape(words)))
        return Detail("Events", words or "all", "", (), (table,), extra={"words": words})

    def _layers(self, look: Look, links: Sequence[Hop]) -> Table:
        heads = ("link", "class", "planned", "queue", "meter", "hosts may send", "in order")
        rows = []
        for hop in links:
            layers, planned = look.view.layers[hop], look.view.desired.links[hop].classes
            for flow_class in FlowClass:
                values = [by.get(flow_class, 0) for by in (layers.queues_bps, layers.meters_bps, layers.hosts_bps)]
                ordered = values == sorted(values, reverse=True)
                bps = (planned[flow_class].meter_bps, *values)
                rows.append((str(hop), flow_class.value, *map(shown_rate, bps), "yes" if ordered else "✕ no"))
        return Table("Plan, queue, meter and hosts side by side, in Ethernet frames", heads, tuple(rows))

    def _flows(self, look: Look, links: Sequence[Hop]) -> Table:
        rows = []
        for entry in look.view.desired.entries:
            if not set(links).isdisjoint(entry.flow.links):
                seen, flow = look.view.delivers(entry), entry.flow
                host, in_the_way = _host(flow.host), seen.hindrance or "nothing"
                rates = shown_rate(entry.payload_bps), measured_rate(seen.delivered_bps)
                rows.append((flow.name, host, flow.target, flow.flow_class.value, *rates, in_the_way))
        heads = ("flow", "from", "to", "class", "planned", "delivered", "in the way of more")
        return Table("Who uses it", heads, tuple(rows), "Nobody.")

    def _events_of(self, name: str) -> Table:
        """Return what has happened lately to a thing: its name is a word of it, and not a part of another's."""
        return self._events(re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"))

    def _events(self, wanted: re.Pattern[str]) -> Table:
        heard = self._behind.events.since(self._behind.events.last - 10_000).events
        found = [one for one in reversed(heard) if wanted.search(_said(one))][:MOST_EVENTS]
        return Table("What happened", ("when", "what", "how"), tuple(_row(one) for one in found), "Nothing lately.")


def _changeable(out: ReservationOut) -> dict[str, str]:
    """Return what of a reservation may be changed by a form, by its name in the API."""
    has_begun = out["state"] not in ("held", "committed")
    times = {"end": out["end"]} if has_begun else {"start": out["start"], "end": out["end"]}
    return {"rate": shown_rate(out["rate_bps"]), **times, "description": out["description"] or ""}


def _touches(out: ReservationOut) -> str:
    """Return what goes with a reservation that is released, for who is asked whether it may."""
    words = f', "{out["description"]}"' if out["description"] else ""
    rate, ends = shown_rate(out["rate_bps"]), f"{out['from']} to {out['to']}"
    return f"{rate} from {ends} until {out['end']}, of {out['owner'] or 'nobody'}{words}"


def _delay(link: Link, measured: MeasuredDelay | None) -> str:
    if measured is None:
        return link.said_delay
    return f"{shown_delay(measured.delay_us)}, measured by {' and '.join(measured.hosts)}"


def _host(name: str) -> tuple[str, str]:
    """Return a cell that is a link to a host."""
    return name, f"/hosts/{quote(name)}"


def _said(one: Happened) -> str:
    return f"{one.name} {_fields(one.fields.items())}"


def _row(one: Happened) -> tuple[str, str, str]:
    return shown_time(one.at_us), one.name, _fields(one.fields.items())


def _fields(items: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in items if value not in (None, ""))
