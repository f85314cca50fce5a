"""A controller that is far away: switch, database and agents reach it over a delay, all by TLS. Run in ``isolated.sh``.

In each site, one for each round-trip time, a real agent and 19 others attach, hold their leases, and do what some
announcements change. Beside what must be none, ``report.json`` has how long it takes until all is well, until an
announcement is answered, until the real agent's kernel has what changes because of it, and from when a host says that
it has something to send until the circuit has changed hands.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from mininet_tests.probes.agent_log import applied_s
from mininet_tests.scenarios.far.site import ELSEWHERE, REAL, WANTS, far_site
from mininet_tests.testing.aims import Aim, at_most, none_of, stated
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import print_aims, write_report
from topology.units import duration_us

RTTS = ("0 ms", "20 ms", "100 ms", "200 ms")
ROUNDS = 3
HELD_S = 8.0  # two leases and a half: nothing is lost meanwhile
SETTLED_S = 4.0
IMAGE_BYTES = 10**12
RTTS_TO_ATTACH, RTTS_TO_CHANGE, RTTS_TO_HAND_OVER = 20, 12, 6
STARTS_S, CHANGES_S = 10.0, 0.25  # what is not a matter of the delay, with room for what else this machine does


def seen(folder: Path, rtt_s: float, rounds: int, *, ipv6: bool) -> dict[str, Any]:
    """Return what was seen at a site; its logs are in the folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with far_site(folder, rtt_s, ipv6=ipv6) as site:
        time.sleep(HELD_S)
        answered, asked = list[float](), list[float]()
        for number in range(rounds):
            for host in (REAL, WANTS):
                said = {"id": f"{host}-{number}", "bytes": IMAGE_BYTES, "from": [host], "to": ELSEWHERE}
                begun_s = time.time()
                site.http.post("/v1/announcements", json=said).raise_for_status()
                answered.append(time.time() - begun_s)
                time.sleep(SETTLED_S)
                ended_s = time.time()
                site.http.delete(f"/v1/announcements/{said['id']}").raise_for_status()
                time.sleep(SETTLED_S)
                asked += [begun_s, ended_s] if host == REAL else []
        applied = applied_s(site.folder / "agent.log")
        after = ([at - since for at in applied if since <= at < since + SETTLED_S] for since in asked)
        came = [max(times) for times in after if times]
        return {
            "rtt_s": rtt_s,
            "well_s": round(site.well_s, 2),
            "answered_s": round(median(answered), 3),
            "changes_not_seen": len(asked) - len(came),
            "changed_s": _summed(came),
            "handed_over_s": _summed(list(site.wants.waited_s.values())),
            "fallbacks": site.agents.fallbacks,
            "troubles": site.troubles,
        }


def _summed(times_s: list[float]) -> dict[str, float | None]:
    found = {"median": median(times_s), "worst": max(times_s)} if times_s else {}
    return {name: round(found[name], 3) if found else None for name in ("median", "worst")}


def aims(sites: dict[str, dict[str, Any]]) -> dict[str, Aim]:
    """Return what each site is to keep."""
    found: dict[str, Aim] = {}
    for name, one in sites.items():
        rtt_s = one["rtt_s"]
        found |= {
            f"{name}: until all is well, s": at_most(one["well_s"], STARTS_S + RTTS_TO_ATTACH * rtt_s),
            f"{name}: until the kernel has what is changed, s": at_most(
                one["changed_s"]["worst"], CHANGES_S + RTTS_TO_CHANGE * rtt_s
            ),
            f"{name}: from when a host says that it has something to send until it may, s": at_most(
                one["handed_over_s"]["worst"], CHANGES_S + RTTS_TO_HAND_OVER * rtt_s
            ),
            f"{name}: changes that were not seen": none_of(one["changes_not_seen"]),
            f"{name}: leases that ran out": none_of(one["fallbacks"]),
            f"{name}: errors of the controller, and streams that the real agent lost": none_of(one["troubles"]),
        }
    return found


def main() -> int:
    """Run them all; write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/far"), help="folder for report.json and logs")
    parser.add_argument("--rtt", nargs="+", default=RTTS, help="there and back (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="announcements at each (default: %(default)s)")
    parser.add_argument("--ipv6", action="store_true", help="they call each other by IPv6 addresses")
    asked = parser.parse_args()
    sites = {}
    for number, name in enumerate(asked.rtt):
        tell(number / len(asked.rtt), f"the controller is {name} away")
        sites[name] = seen(
            asked.out.absolute() / name.replace(" ", ""), duration_us(name) / 1e6, asked.rounds, ipv6=asked.ipv6
        )
    report = {"ipv6": asked.ipv6, "sites": sites} | stated(aims(sites))
    write_report(asked.out, report)
    print_aims(asked.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
