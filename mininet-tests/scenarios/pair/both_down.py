"""Both controllers of a pair are killed, and PostgreSQL with them, and brought up again as ``docs/pair.md`` says."""

from __future__ import annotations

import itertools
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import yaml

from mininet_tests.site.command import HEADWAY
from mininet_tests.testing.eventually import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from mininet_tests.scenarios.pair.site import PairSite
    from mininet_tests.site.running import Running

BOTH, RESTORED = "both", "restored"
DOWN = (BOTH, RESTORED)
LEASES_OVER_WITHIN_S, SAYS_WITHIN_S = 30.0, 120.0
_turns = itertools.count()


def brought_back(site: PairSite, kind: str, leader: Running) -> dict[str, float]:
    """Kill both and the database, wait until all leases are over, bring all up again.

    In turn the one that led and the other one come first. ``both``: the first is started while the database is away
    still, and waits for it. ``restored``: the database is lost, and a backup is restored into an empty one.

    Returns:
        Until a request is answered, s, from when there was a database and a controller; what the switches hold
        otherwise than before, when all leases are over.
    """
    (other,) = (one for one in site.pair if one is not leader)
    first, second = (leader, other) if next(_turns) % 2 == 0 else (other, leader)
    before, backup = site.switches(), leader.config.with_name("backup.jsonl")
    if kind == RESTORED:
        _headway("backup", backup, "--store", site.postgres.url)
    for one in site.pair:
        one.end(signal.SIGKILL)
    site.postgres.kill()
    eventually(
        lambda: not any(agent.left_ms for agent in site.agents.seen()),
        within_s=LEASES_OVER_WITHIN_S,
        what="leases are over",
    )
    now = site.switches()
    if kind == BOTH:
        first.begin()
        eventually(lambda: _says(first, "standby.waits"), within_s=SAYS_WITHIN_S, what="it says what it waits for")
        site.postgres.start()
    else:
        site.postgres.start()
        _stored_at(site, site.postgres.new_database())
        _headway("restore", backup, "--store", site.postgres.url)
        first.begin()
    there_s = time.monotonic()
    answered_s = site.script.asks().at_s
    second.start()
    changed = len(set(before.state) ^ set(now.state)) + now.younger_than(before)
    return {"unanswered_s": answered_s - there_s, "changed_while_down": changed}


def _stored_at(site: PairSite, url: str) -> None:
    """Let both controllers use another database from their next start on."""
    site.postgres.url = url
    for one in site.pair:
        said: dict[str, Any] = yaml.safe_load(one.config.read_text())
        one.config.write_text(yaml.safe_dump(said | {"store": url}))


def _says(one: Running, event: str) -> bool:
    """Return whether a controller has said something since its last start."""
    return event in one.config.with_suffix(".log").read_text(errors="replace")[one.begun_at :]


def _headway(command: str, file: Path, *more: str) -> None:
    subprocess.run([HEADWAY, command, file, *more], check=True, capture_output=True)
