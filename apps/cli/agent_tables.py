"""The agent's answers as tables for people, or as JSON."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apps.cli import output, printed, shown
from hostagent.agent import status
from hostagent.agent.status import AgentState, AgentStatus, EntryStatus
from hostagent.doctor import check
from hostagent.doctor.buffers import Wanted
from hostagent.doctor.row import FitnessVerdict
from hostagent.doctor.survey import Survey
from topology.units import shown_rate, shown_size

COLOURS = {FitnessVerdict.OK: "green", FitnessVerdict.WARN: "yellow", FitnessVerdict.FAIL: "red"}
BAR_CELLS = 10


def show_check(survey: Survey, wanted: Wanted, *, as_json: bool, sysctl: bool) -> int:
    """Print what a host needs; return the exit code."""
    if sysctl:
        typer.echo(check.sysctl_file(survey, wanted), nl=False)
        return 0
    rows = check.rows(survey, wanted)
    fails, warns = (
        sum(row.verdict is verdict for row in rows) for verdict in (FitnessVerdict.FAIL, FitnessVerdict.WARN)
    )
    if as_json:
        needs = {"rate_bps": wanted.rate_bps, "rtt_us": wanted.rtt_us, "window_bytes": wanted.window_bytes}
        typer.echo(json.dumps({"fit": not fails, **needs, "rows": [asdict(row) for row in rows]}))
        return int(bool(fails))
    title = f"{shown_rate(wanted.rate_bps)} over {wanted.rtt_us / 1000:g} ms"
    table = Table("", "what", "now", "needed", "why", title=title, title_justify="left")
    for row in rows:
        colour = COLOURS[row.verdict]
        table.add_row(f"[{colour}]{row.verdict}[/{colour}]", escape(row.what), escape(row.now), row.needed, row.why)
    shown.console().print(table)
    for row in rows:
        if row.fix:
            typer.echo(f"{row.verdict}  {row.what}\n      {row.fix}")
    typer.echo(f"{fails} to be cured, {warns} warnings" + ("" if fails else "; this host can carry it"))
    return int(bool(fails))


def show_status(ask: Callable[[], AgentStatus], *, watch: bool, as_json: bool) -> int:
    """Print how the agent stands, once or until it is interrupted; return the exit code."""
    now = ask()
    live = Live(_shown(now), console=shown.console(), auto_refresh=False) if watch and not as_json else None
    with contextlib.suppress(KeyboardInterrupt), live or contextlib.nullcontext():
        while True:
            if live is not None:
                live.update(_shown(now), refresh=True)
            elif as_json:
                (output.follow if watch else typer.echo)(status.status_bytes(now).decode())
            else:
                printed.show(*_shown(now).renderables)
            if not watch:
                break
            time.sleep(1)  # the agent looks once a second
            now = ask()
    return int(now.state is not AgentState.HOLDING)


def _shown(now: AgentStatus) -> Group:
    return Group(_head(now), _table(now)) if now.entries else Group(_head(now))


def _table(now: AgentStatus) -> Table:
    table = Table()
    for name in ("allocation", "class", "to", "active", "delivered", "of plan", "RTT", "loss", "fallback"):
        table.add_column(name, justify="right" if name in {"active", "delivered", "RTT", "loss"} else "left")
    for entry in now.entries:
        table.add_row(
            escape(entry.name),
            entry.flow_class,
            _where(entry),
            f"{entry.active} of {entry.connections}",
            shown_rate(entry.delivered_bps),
            _bar(entry.delivered_bps, entry.planned_bps),
            f"{entry.rtt_us / 1000:.1f} ms" if entry.rtt_us else "",
            f"{entry.loss_ppm / 10_000:.3f}%",
            Text(entry.fallback, style="red"),
        )
    return table


def _head(now: AgentStatus) -> str:
    who = now.identity
    since = time.strftime("%H:%M:%S", time.localtime(now.attached_s))
    to = f"attached to {escape(now.controller)} since {since}" if now.controller else "no controller attached"
    state = now.state if now.state is AgentState.HOLDING else f"[red]{now.state}[/red]"
    lease = f"lease {now.lease_left_ms / 1000:.1f} s of {now.lease_ms / 1000:g} s left"
    buffers = f"windows may take {shown_size(now.buffers_may_take_bytes)} of memory at most"
    plan = f"\nepoch {now.epoch}, {lease}; {buffers}" if now.lease_ms and now.epoch else ""
    repairs = f"\n{now.repairs} repairs in the kernel since the start" if now.repairs else ""
    return f"{escape(who.host)}: {state}; {to}; namespace {who.namespace}{plan}{repairs}"


def _where(entry: EntryStatus) -> str:
    ports = [("port", entry.dest_port), ("from port", entry.local_port)]
    return " ".join([entry.dest, *(f"{word} {port}" for word, port in ports if port)])


def _bar(now_bps: int, planned_bps: int) -> str:
    """Return a bar and the percentage of the plan."""
    full = min(BAR_CELLS, round(BAR_CELLS * now_bps / planned_bps))
    return f"{'█' * full}{'░' * (BAR_CELLS - full)} {100 * now_bps / planned_bps:.1f}% of {shown_rate(planned_bps)}"
