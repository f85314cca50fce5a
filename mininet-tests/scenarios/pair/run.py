"""A pair of controllers on a real PostgreSQL, two userspace switches and their hosts' agents: the leader is lost.

Run inside ``isolated.sh``. In each round, drawn by a seed, a script reserves while the one that leads is killed, also
just after ovs-vswitchd was started anew, stopped for a while, cut off from its sessions at the database, or asked to
let the other lead; while its machine, or the database's, is silent; or, if that is asked for, both are started anew in
turn, as a rolling upgrade does, or are killed with PostgreSQL and brought up again. ``report.json`` has how long nobody
answered, how long agents waited, and what must be none.

After some rounds all begins anew, and what was seen of them is kept in ``worlds/``: a run that was ended goes on from
there if it is asked for the same, of the same commit.
"""

import argparse
import json
import random
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from headway import Client
from mininet_tests.lab.commands import ROOT
from mininet_tests.lab.commit import commit
from mininet_tests.scenarios.pair.both_down import DOWN
from mininet_tests.scenarios.pair.figure import drawn
from mininet_tests.scenarios.pair.page import OBEYED, published
from mininet_tests.scenarios.pair.site import PairSite, pair_site
from mininet_tests.scenarios.pair.steps import said_at_ends, steps, summed
from mininet_tests.testing.aims import Aim, at_most, equal, none_of, stated
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import write_report
from topology.units import duration_us

AGENTS = 200
ROUNDS_OF_A_WORLD = 25
SEEN = "seen.json"
COUNTED = ("answers", "asked_twice", "lost", "done_twice", "fallbacks")
FELL_BACK = "hosts that fell back"
LOST = ("killed", "stopped", "silent", "restarted")
KINDS = (*LOST, "moved", "cut", "database")
UPGRADED = "upgraded"  # takes as long as three of the others
MORE = (UPGRADED, *DOWN)  # what is played if it is asked for
STAYS = {"cut", "database", UPGRADED}  # most often the same leads on, or twice another


class SiteOf(NamedTuple):
    """What :func:`pair_site` is asked for."""

    agents: int
    reservations: int = 0
    rtt_s: float = 0.0


def played(folder: Path, site_of: SiteOf, kinds: Sequence[str], before: int, rounds: int) -> dict[str, Any]:
    """Return what was seen in rounds of these kinds, one after the other, in a world of their own.

    Args:
        folder: for its logs.
        site_of: what the world is like.
        kinds: of its rounds.
        before: how many rounds have been played in other worlds.
        rounds: how many are played in all.
    """
    with pair_site(folder, **site_of._asdict()) as site:
        seen = []
        for number, kind in enumerate(kinds):
            tell((before + number) / rounds, f"round {before + number + 1:,} of {rounds:,}: {kind}")
            seen.append(site.round(kind))
            print(f"{number + 1} of {len(kinds)}: {seen[-1]}", flush=True)
        return {"rounds": seen} | _in_the_end(site)


def worlds(folder: Path, site_of: SiteOf, rounds: int, seed: int, kinds: Sequence[str]) -> dict[str, Any]:
    """Return what was seen in all rounds; worlds that are kept in the folder are not played again."""
    drawn = random.Random(seed)
    wanted = [kinds[number] if number < len(kinds) else drawn.choice(kinds) for number in range(rounds)]
    of_commit = commit()
    asked = {
        folder / "worlds" / str(number): {
            **site_of._asdict(),
            "kinds": wanted[first : first + ROUNDS_OF_A_WORLD],
            "commit": of_commit,
        }
        for number, first in enumerate(range(0, rounds, ROUNDS_OF_A_WORLD))
    }
    left = {world: of_it for world, of_it in asked.items() if _kept(world).get("asked") != of_it}
    before, to_play = 0, sum(len(of_it["kinds"]) for of_it in left.values())
    for world, of_it in left.items():
        shutil.rmtree(world, ignore_errors=True)
        seen = played(world, site_of, of_it["kinds"], before, to_play)
        logs = _logs(world)
        known = {"asked": of_it, "seen": seen, "steps": steps(logs), "said_at_ends": said_at_ends(logs)}
        (world / SEEN).write_text(json.dumps(known))
        before += len(of_it["kinds"])
    found = [_kept(world) for world in asked]
    together = {name: sum(one["seen"][name] for one in found) for name in COUNTED}
    return {
        **site_of._asdict(),
        "kinds": list(kinds),
        "rounds": [one for world in found for one in world["seen"]["rounds"]],
        "steps": summed(tuple(hand_over) for world in found for hand_over in world["steps"]),
        "said_at_ends": [event for world in found for event in world["said_at_ends"]],
    } | together


def _kept(world: Path) -> dict[str, Any]:
    """Return what is kept of a world that has been played; nothing if none is."""
    kept = world / SEEN
    return json.loads(kept.read_text()) if kept.exists() else {}


def _logs(world: Path) -> list[str]:
    return [log.read_text(errors="replace") for log in world.glob("?/controller.log")]


def _in_the_end(site: PairSite) -> dict[str, Any]:
    """Return what is to be none."""
    one = site.settled()
    return site.script.kept(Client(one.url)) | {"fallbacks": site.agents.fallbacks}


def aims(seen: dict[str, Any]) -> dict[str, Aim]:
    """Return what a run is to keep."""
    lost = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] in LOST]
    moved = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == "moved"]
    upgraded = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == UPGRADED]
    obeyed = [one["obeyed_s"] for one in seen["rounds"] if one["kind"] not in {*STAYS, *DOWN}]
    kinds, found = set(seen["kinds"]), dict[str, Aim]()
    if kinds & {*LOST}:
        found["leader lost, until a request is answered, s, 99 of 100"] = at_most(_p99(lost), 1.0)
    if "moved" in kinds:
        found["leader lets another lead, from its last answer to the other one's first, s, median"] = at_most(
            _median(moved), 0.05
        )
    if UPGRADED in kinds:
        found["both upgraded in turn, longest time without an answer, s"] = at_most(max(upgraded, default=None), 1.0)
    if kinds & {*DOWN}:
        down = [one for one in seen["rounds"] if one["kind"] in DOWN]
        found |= {
            "both down, hosts that fell back, at least and at most": equal(
                sorted({one["fell_back"] for one in down}), [seen["agents"]]
            ),
            "both down, what switches hold otherwise": none_of(sum(one["changed_while_down"] for one in down)),
        }
    if kinds - STAYS - {*DOWN}:
        found[OBEYED] = at_most(max(obeyed, default=None), 1.0)
    expected = sum(one["fell_back"] for one in seen["rounds"] if one["kind"] in DOWN)
    return found | {
        FELL_BACK: equal(seen["fallbacks"] - expected, 0),
        "answers lost": equal(seen["lost"], 0),
        "requests done twice": equal(seen["done_twice"], 0),
        "stale writes accepted": equal(sum(one["stale_writes"] for one in seen["rounds"]), 0),
        "layers above the next": equal(sum(one["violations"] for one in seen["rounds"]), 0),
        "rules put again": equal(sum(one["rules_put_again"] for one in seen["rounds"]), 0),
        "errors said by who ends by intent": none_of(seen["said_at_ends"]),
    }


def times(seen: dict[str, Any]) -> dict[str, dict[str, float | int | None]]:
    """Return for how long nobody answered, by how the leader was lost."""
    found: dict[str, dict[str, float | int | None]] = {}
    for kind in dict.fromkeys((*KINDS, *seen["kinds"])):
        values = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == kind]
        found[kind] = {
            "rounds": len(values),
            "median_s": _median(values),
            "p99_s": _p99(values),
            "worst_s": max(values, default=None),
        }
    return found


def slowest(seen: dict[str, Any]) -> dict[str, float | None]:
    """Return how long a script waited at most for its next answer, about a planned hand-over and after it, s."""
    values = [one["slowest_s"] for one in seen["rounds"] if one["kind"] == "moved"]
    return {"median": _median(values), "worst": max(values, default=None)}


def loads(seen: dict[str, Any]) -> dict[str, float | None]:
    """Return for how many processes this machine had no processor, or was using one, while it ran."""
    values = [one["load"] for one in seen["rounds"]]
    return {"median": _median(values), "most": max(values, default=None)}


def reported(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the report of what was seen."""
    summed_up = {"times": times(seen), "slowest_when_moved_s": slowest(seen), "load": loads(seen)}
    return seen | summed_up | stated(aims(seen))


def _p99(values: Sequence[float]) -> float | None:
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)] if values else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/pair"), help="folder for report.json and logs")
    parser.add_argument("--rounds", type=int, default=50, help="how often the leader is lost (default: 50)")
    parser.add_argument("--agents", type=int, default=AGENTS, help="hosts with one (default: %(default)s)")
    parser.add_argument(
        "--kinds", nargs="+", choices=(*KINDS, *MORE), default=KINDS, help="ways in which it is lost, and more"
    )
    parser.add_argument(
        "--reservations", type=int, default=0, help="on the books when a world begins (default: %(default)s)"
    )
    parser.add_argument("--rtt", default="0 ms", help="between a controller and all else (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rounds that are drawn (default: 1)")
    parser.add_argument("--publish", action="store_true", help="write the table and the figure of docs/pair.md")
    asked = parser.parse_args()
    rtt_s = duration_us(asked.rtt) / 1e6
    if asked.publish and (set(asked.kinds) != set(KINDS) or asked.reservations or rtt_s):
        parser.error(
            "--publish: the page has every kind of round, and no more: leave out --kinds, --reservations, --rtt"
        )
    asked.out.mkdir(parents=True, exist_ok=True)
    site_of = SiteOf(asked.agents, asked.reservations, rtt_s)
    found = worlds(asked.out, site_of, asked.rounds, asked.seed, asked.kinds)
    result = reported({"seed": asked.seed} | found)
    write_report(asked.out, result)
    if asked.publish:
        page = ROOT / "docs/pair.md"
        page.write_text(published(page.read_text(), result, commit()))
        drawn(result, page.with_suffix(".png"))
    return 0  # that some aims are missed is for who reads the report


if __name__ == "__main__":
    sys.exit(main())
