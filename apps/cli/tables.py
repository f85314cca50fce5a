"""The controller's answers as tables for people."""

import json
from collections import Counter
from datetime import tzinfo
from typing import TYPE_CHECKING

import typer

from apps.cli import shown
from apps.cli.printed import new_table, show
from topology import units

if TYPE_CHECKING:
    from rich.table import Table

    from headway.promises import ReservationOut
    from headway.views import (
        CircuitOut,
        CountersOut,
        DriftOut,
        HostStateOut,
        LayersOut,
        LinkPlanOut,
        PlaceOut,
        SwitchOut,
        ViewOut,
    )

GRAVE = {"fallback", "no-agent", "no-lease"}  # the plan does not hold there
MOST_ROWS = 20  # of one place's drift; a switch that has started anew has lost a thousand rules


def show_plan(view: "ViewOut") -> None:
    """Print who may send how much, what each layer lets through now, and what is wrong."""
    from rich.markup import escape

    desired = view["desired"]
    for name, link in desired["links"].items():
        show(_link_table(name, link, view["layers"][name], desired["epoch"]))
    flows = new_table(title="allocations")
    for column in ("name", "to", "planned", "delivered", "in the way", "window"):
        flows.add_column(column, justify="right" if column in {"planned", "delivered", "window"} else "left")
    for entry in desired["allocations"]:
        progress = entry["progress"]  # what is wanted has one, what is only held ready has none
        delivered_bps, way = (progress["delivered_bps"], progress["hindrance"] or "") if progress else (0, "")
        rates = (units.shown_rate(entry["payload_bps"]), units.shown_rate(delivered_bps))
        window = f"{entry['window_segments']:,}"
        flows.add_row(entry["name"], entry["to"], *rates, f"[red]{way}[/red]" if way in GRAVE else way, window)
    show(flows)
    for problem in (*view["violations"], *([view["error"]] if view["error"] else [])):
        show(f"[red]{escape(problem)}[/red]")


def _link_table(name: str, link: "LinkPlanOut", layers: "LayersOut", epoch: int) -> "Table":
    """Return what each class has of one direction of a circuit at each layer."""
    table = new_table(title=f"{link['circuit']}, {name}: {units.shown_rate(link['wire_bps'])}, epoch {epoch}")
    for column in ("class", "share", "hosts", "meter", "queue"):
        table.add_column(column, justify="left" if column == "class" else "right")
    for flow_class, limits in link["classes"].items():
        now = (layers["hosts_frame_bps"], layers["meters_frame_bps"], layers["queues_frame_bps"])
        rates = (limits["wire_bps"], *(layer.get(flow_class, 0) for layer in now))
        table.add_row(flow_class, *(units.shown_rate(rate) for rate in rates))
    return table


def show_hosts(rows: "list[HostStateOut]") -> None:
    """Print every host's agent and what its kernel has moved."""
    table = new_table()
    for column in ("host", "agent", "epoch", "lease left", "allocation", "connections", "delivered", "RTT"):
        table.add_column(column)
    for row in rows:
        head = (row["name"], "up" if row["connected"] else "[red]missing[/red]", str(row["confirmed_epoch"]))
        lease = "" if row["lease_left_ms"] is None else f"{row['lease_left_ms']} ms"
        for cells in [*map(_cells, row["allocations"])] or [("", "", "", "")]:
            table.add_row(*head, lease, *cells)
    show(table)


def _cells(allocation: "CountersOut") -> tuple[str, str, str, str]:
    return (
        allocation["name"],
        f"{allocation['active']} of {allocation['connections']}",
        f"{allocation['delivered_bytes'] / 1e6:,.1f} MB",
        f"{allocation['rtt_us'] / 1e3:.1f} ms",
    )


def show_reservation(one: "ReservationOut", where: tzinfo, as_json: bool) -> None:
    """Print a reservation, its times in a zone and in UTC."""
    if as_json:
        typer.echo(json.dumps(one))
        return
    payload = units.shown_rate(one["payload_bps"])
    rows = {
        "ends": f"{one['from']} to {one['to']}",
        "class": one["class"],
        "rate": f"{units.shown_rate(one['rate_bps'])} on the wire, {payload} of TCP payload",
        "path": " - ".join(one["path"]) + (f" ({', '.join(one['circuits'])})" if one["circuits"] else ""),
        "backup": " - ".join(one["backup"]),
        "from": shown.long(one["start"], where),
        "until": shown.long(one["end"], where),
        "held until": shown.long(one["hold_until"], where) if one["hold_until"] else "",
        "words": one["description"],
        "owner": one["owner"] or "",
        "not carried": "; ".join(one["reasons"]),
        "no guarantee": "; ".join(one["not_guaranteed"]),
    }
    shown.say(f"{one['id']}: {one['state']}" + (f": {shown.in_line(one['reason'])}" if one["reason"] else ""))
    for name, value in rows.items():
        if value:
            shown.say(f"  {name:<11} {shown.in_line(value)}")


def show_reservations(rows: "list[ReservationOut]", where: tzinfo) -> None:
    """Print a line for each reservation."""
    from rich.markup import escape

    table = new_table("id", "state", "class", "rate", "from", "to", "start", "end", "words")
    for r in rows:
        start, end = shown.short(r["start"], where), shown.short(r["end"], where)
        rate = units.shown_rate(r["rate_bps"])
        words = escape(r["description"] or r["reason"])
        table.add_row(r["id"], r["state"], r["class"], rate, r["from"], r["to"], start, end, words)
    table.columns[0].no_wrap = True
    show(table if rows else "no reservations")


_DELAY = {"file": "", "measured": "", "bound": "at most "}


def show_circuits(rows: "list[CircuitOut]") -> None:
    """Print every circuit, how its line is, and what each flow would have if it died."""
    table = new_table("circuit", "ends", "rate", "delay", "line", "in use")
    for row in rows:
        line = row["state"] if row["state"] == "up" else f"[red]{row['state']}[/red]"
        ends, rate = f"{row['a_end']} - {row['z_end']}", units.shown_rate(row["wire_bps"])
        delay = f"{_DELAY[row['delay']['source']]}{units.shown_delay(row['delay']['one_way_us'])}"
        table.add_row(row["name"], ends, rate, delay, line, "yes" if row["in_use"] else "no")
    show(table)
    for row in rows:
        if row["if_it_dies"] is None:
            continue
        flows = new_table("allocation", "path", "payload", title=f"if {row['name']} dies")
        for entry in row["if_it_dies"]["allocations"]:
            flows.add_row(entry["name"], " - ".join(entry["path"]), units.shown_rate(entry["payload_bps"]))
        show(flows)


def show_switches(rows: "list[SwitchOut]") -> None:
    """Print every switch, and whether it is connected."""
    table = new_table("switch", "site", "dpid", "connection")
    for row in rows:
        table.add_row(row["name"], row["site"], row["dpid"], "up" if row["connected"] else "[red]missing[/red]")
    show(table)


def show_drift(view: "DriftOut") -> None:
    """Print the latest audit of each place, what drifted last there, and what waits for a person."""
    from rich.markup import escape

    table = new_table("place", "audited", "took", "proper", "now", "last drift", "repaired")
    found = new_table("place", "kind", "shape", "wanted", "found", "outcome", title="last drift")
    for row in view["places"]:
        table.add_row(row["place"], *_audited(row))
        deviations = row["drifted"]["deviations"] if row["drifted"] else []
        for one in deviations[:MOST_ROWS]:
            cells = (one[name] for name in ("kind", "shape", "wanted", "found", "outcome"))
            found.add_row(row["place"], *map(escape, cells))
        if len(deviations) > MOST_ROWS:
            found.add_row(row["place"], "", "", "", "... and more: --json", "")
    show(table)
    if found.row_count:
        show(found)
    alarms = [(row["place"], alarm) for row in view["places"] if row["latest"] for alarm in row["latest"]["alarms"]]
    for place, alarm in alarms:
        show(f"[red]{place}: {escape(alarm)}[/red]")


def _audited(row: "PlaceOut") -> tuple[str, ...]:
    """Return what one place's line has after its name."""
    latest, drifted = row["latest"], row["drifted"]
    if latest is None:
        return "not yet", "", "", "", "", ""
    proper = ", ".join(f"{count} {kind}" for kind, count in latest["proper"].items() if count)
    shapes = Counter(one["shape"] for one in latest["deviations"])
    told = [f"{count} {shape}" for shape, count in shapes.items()]
    now = ", ".join((*told, f"{latest['more']} more") if latest["more"] else told) or "proper"
    took = f"{latest['took_us'] / 1e3:,.1f} ms"
    return latest["at"], took, proper, now, drifted["at"] if drifted else "never", str(row["messages"])
