"""``headway agent check --store``: what a store takes, measured and printed."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import typer

from apps.cli.agent_setup import EXIT_FAILED, EXIT_USAGE, amount, failed
from hostagent.stores.measure import NoSpace, StoreMeasure, Written, measured
from topology.units import rate_bps, shown_rate, shown_size, size_bytes

LONG_IDLE_S = 1.0
SOONER = "sysctl -w vm.dirty_expire_centisecs=20 vm.dirty_writeback_centisecs=20"


def check_store(path: Path, rate: str, most: str, *, as_json: bool) -> int:
    """Measure what a store takes, and print it; return the exit code."""
    wanted_bps, most_bytes = amount(rate, rate_bps, "--rate"), amount(most, size_bytes, "--bytes")
    if not path.is_dir():
        raise failed(f"--store: {path} is no folder here", EXIT_USAGE)
    try:
        found = measured(path, wanted_bps, most_bytes, lambda one: _tell(one, most_bytes))
    except NoSpace as error:
        what = f"{path} has {shown_size(error.free_bytes)} free, and up to {shown_size(most_bytes)} would be written"
        raise failed(f"{what}: say less, --bytes 1GB", EXIT_FAILED) from error
    except OSError as error:
        raise failed(f"{path}: {error.strerror}", EXIT_FAILED) from error
    if as_json:
        typer.echo(json.dumps({"path": str(path), **asdict(found), "largest_bytes": found.largest_bytes}))
    else:
        typer.echo("\n".join(said(path, found)))
    return 0


def _tell(one: Written, most_bytes: int) -> None:
    """Say how far it is, to who looks; what is printed for programs stays whole."""
    if sys.stderr.isatty():
        mean = shown_rate(round(one.size_bytes * 8 / max(one.at_s, 1e-6)))
        typer.echo(f"{one.at_s:.0f} s: {shown_size(one.size_bytes)} of {shown_size(most_bytes)}, {mean}", err=True)


def said(path: Path, found: StoreMeasure) -> tuple[str, ...]:
    """Return the lines for people."""
    least = "" if found.is_held_up else "at least "
    largest = "any" if found.largest_bytes is None else f"{least}{shown_size(found.largest_bytes)}"
    written = (
        f"{shown_size(found.written_bytes)} at {shown_rate(found.rate_bps)}, on the disk after {found.took_s:.1f} s"
    )
    lines = (
        f"{path}: {written}",
        f"drains (d):                 {shown_rate(found.drain_bps)}",
        f"takes at once (m):          {least}{shown_size(found.room_bytes)}",
        f"largest file at that rate:  {largest}",
    )
    notes = []
    if found.is_short_of_cpu:
        notes.append(
            f"this machine wrote {shown_rate(found.came_bps)}, for want of CPU: measure again when it has time"
        )
    elif not found.is_held_up:
        notes.append("the writer was never held up: for more, say --bytes with what the disk has room for")
    if found.idle_s is not None and found.idle_s > LONG_IDLE_S:
        notes.append(
            f"the disk wrote nothing for {found.idle_s:.1f} s, and what is promised to be stored counts from the first"
            f" byte: {SOONER}, or let the program that receives fsync while it writes"
        )
    return (*lines, *notes)
