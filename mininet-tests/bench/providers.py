"""What is bought under random operations and faults, by a controller that dies and starts, of a provider as it is.

The stand-ins are those of the tests, with the quirks of the originals, over real HTTP. The controller is a process with
a database; it is killed by SIGKILL, in the middle of what it does too. Time is told to both, so a night takes seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.plan.purchases import Period
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_values import OscarsPort
from controller.providers.tests.buying import Z_END, settings
from controller.providers.tests.fake_nsi import FakeNsi, running_nsi
from controller.providers.tests.fake_oscars import FakeOscars, running
from controller.providers.tests.faulty import Faults
from mininet_tests.testing.aims import Aim, equal, stated
from mininet_tests.testing.reports import print_aims, write_report

S = 1_000_000
STEP_S = 10
SETTLED_S = 4_000  # four times the longest that something may still be carried out, and the longest wait
START_US = 1_767_225_600 * S
OURS = "chic-cr6:1/1/c9/1"
OPERATIONS = ("promise",) * 4 + ("release",) * 2 + ("pass",) * 6 + ("fault",) * 3 + ("calm",) * 3 + ("kill",) * 2
CREATE = {"oscars": "POST /protected/l2vpn/new", "nsi": "POST /reservations"}
FAULTS = ("drop before", "drop after", "500", "502", "slow", "refresh", "lock")


@dataclass
class WrongPurchases:
    """What was found wrong, and what was done."""

    done: Counter[str] = field(default_factory=Counter)
    carried: int = 0
    twice: set[str] = field(default_factory=set)
    orphans: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    without: list[str] = field(default_factory=list)


class StandInShop:
    """A stand-in, and what it has."""

    def __init__(self, kind: str, stack: ExitStack) -> None:
        self.kind = kind
        self.now_us = START_US
        self.fake: Any = FakeOscars(self._now_s) if kind == "oscars" else FakeNsi(self._now_s)
        serving: Any = running if kind == "oscars" else running_nsi
        self.url: str = stack.enter_context(serving(self.fake))
        self.others = 0

    def _now_s(self) -> float:
        return self.now_us / S

    def carried_bps(self) -> int:
        """What of ours is in the routers now."""
        if self.kind == "oscars":
            self.fake.oscars.now_s()
            rows = [row for row in self.fake.oscars.rows if _is_ours(row)]
            return sum((row.routers_mbps or 0) * S for row in rows)
        rules, now_s = self.fake.rules, self.fake.now_s()
        return sum(r.p2ps["capacity"] * S for r in self.fake.rows if r.status(now_s, rules) == "ACTIVATED")

    def live(self) -> dict[str, bool]:
        """By name what of ours is sold and not over, and whether it is in the routers."""
        if self.kind == "oscars":
            self.fake.oscars.now_s()
            rows = [r for r in self.fake.oscars.rows if _is_ours(r) and r.phase == "RESERVED"]
            return {r.asked.name: r.routers_mbps is not None for r in rows}
        rules, now_s = self.fake.rules, self.fake.now_s()
        return {
            r.body["globalReservationId"].removeprefix("urn:uuid:"): r.status(now_s, rules) == "ACTIVATED"
            for r in self.fake.live()
        }

    def names_asked_twice(self) -> set[str]:
        """Names for which more than one purchase was asked for, or is there."""
        if self.kind == "oscars":
            rows = Counter(row.asked.name for row in self.fake.oscars.rows)
            return {name for name, count in (Counter(self.fake.creates) | rows).items() if count > 1}
        return {
            name for name, count in Counter(r.body["globalReservationId"] for r in self.fake.rows).items() if count > 1
        }

    def fail(self, fault: str, some: random.Random) -> None:
        """Let something go wrong, of the next requests or until it is calm."""
        only = some.choice((CREATE[self.kind], "", "GET", "DELETE", "PUT"))
        times = some.randint(1, 3)
        if fault.startswith("drop"):
            self.fake.faults = Faults(only=only, times=times, drop=fault.split()[1])
        elif fault in {"500", "502"}:
            self.fake.faults = Faults(only=only, times=times, status=int(fault))
        elif fault == "slow":
            self.fake.faults = Faults(only=only, times=times, slow_s=0.7)
        elif self.kind == "oscars" and fault == "refresh":
            self.fake.rules.refresh_every_s, self.fake.rules.refresh_s = 300, 15
        elif self.kind == "oscars":
            self._others_circuit(some)

    def _others_circuit(self, some: random.Random) -> None:
        """Let somebody else buy, so that the lock is held while the routers are told of it, for a long time."""
        self.fake.rules.routers_s = some.choice((20, 120, 250))
        self.others += 1
        vlan = 100 + self.others
        a_end, z_end = (OscarsPort(end, port, vlan) for end, port in _OTHERS)
        begin_us = self.now_us + 40 * S
        made: Any = settings
        other = OscarsProvider(made(self.url, a_end=a_end, z_end=z_end, timeout_s=2.0), lambda: self.now_us)
        try:
            other.reserve(f"OTH{self.others}", Period(begin_us, begin_us + 1_000 * S, 10**8))
        except Exception:  # noqa: BLE001 - somebody else's trouble
            self.others += 0
        finally:
            other.close()

    def calm(self) -> None:
        """Let all go well from now on."""
        self.fake.faults = Faults()
        if self.kind == "oscars":
            self.fake.rules.refresh_every_s, self.fake.rules.routers_s = 0, 20


_OTHERS = (("chic-cr6", "chic-cr6:1/1/c10/1"), ("nash-cr6", Z_END.port))


def _is_ours(row: Any) -> bool:
    return any(fixture.port == OURS for fixture in row.asked.fixtures)


class PurchasesRun:
    """A controller as a process, what happens to it, and what is seen of it."""

    def __init__(self, shop: StandInShop, folder: Path, seed: int) -> None:
        self.shop = shop
        self.some = random.Random(seed)
        self.seen = WrongPurchases()
        self._database = f"sqlite:///{folder}/{shop.kind}.db"
        self._errors = (folder / f"{shop.kind}.log").open("w")
        self.shown: dict[str, Any] = {"promises": {}, "purchases": {}}
        self.numbers = 0
        self.started()

    def started(self) -> None:
        """Start the controller on its database."""
        child = "mininet_tests.bench.providers_child"
        command = [sys.executable, "-m", child, self.shop.kind, self.shop.url, self._database, str(self.shop.now_us)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._answer()

    def killed(self, after_s: float | None = None) -> None:
        """Kill it, in the middle of a step if a time is given, and start it again."""
        if after_s is not None:
            self._say({"do": "step"})
            threading.Event().wait(after_s)
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self.started()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def told(self, **what: Any) -> None:
        """Tell it to do something now, and take in what it says."""
        before, was = dict(self.shop.live()), self.shown
        self._say(what)
        self._answer()
        self._check(before, was)

    def passed(self, seconds: int, step_s: int = STEP_S) -> None:
        """Let the time pass."""
        for _ in range(0, seconds, step_s):
            self.shop.now_us += step_s * S
            self.told(do="step")

    def begun(self) -> None:
        """Have something that is carried, so that there is something to lose."""
        start_us = self.shop.now_us + 700 * S
        self.told(do="promise", name="first", rate_bps=10**9, start_us=start_us, end_us=start_us + 7_200 * S)
        self.passed(720, 30)

    def one(self) -> None:
        """Do something at random."""
        some, operation = self.some, self.some.choice(OPERATIONS)
        self.seen.done[operation] += 1
        if operation == "promise":
            self.numbers += 1
            start_us = self.shop.now_us + some.randint(60, 7_200) * S
            rate_bps, length_us = some.randint(1, 30) * 10**8, some.randint(120, 3_600) * S
            self.told(
                do="promise", name=f"r{self.numbers}", rate_bps=rate_bps, start_us=start_us, end_us=start_us + length_us
            )
        elif operation == "release" and self.shown["promises"]:
            self.told(do="release", name=some.choice(sorted(self.shown["promises"])))
        elif operation == "pass":
            self.passed(some.choice((10, 60, 300, 900)))
        elif operation == "fault":
            fault = some.choice(FAULTS)
            self.seen.done[f"fault: {fault}"] += 1
            self.shop.fail(fault, some)
        elif operation == "calm":
            self.shop.calm()
        elif operation == "kill":
            self.killed(some.choice((None, 0.01, 0.05, 0.3)))

    def ended(self) -> None:
        """Let everything be given back and over, in calm; what is there then is nobody's."""
        self.shop.calm()
        for name in sorted(self.shown["promises"]):
            self.told(do="release", name=name)
        self.passed(SETTLED_S, 40)
        self.seen.orphans |= self.shop.live().keys()

    def _say(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
        self._process.stdin.write(json.dumps({**what, "now_us": self.shop.now_us}) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
        line = self._process.stdout.readline()
        if not line:
            code, said = self._process.wait(), Path(self._errors.name).read_text()[-2000:]
            raise RuntimeError(f"the controller has ended with {code}: {said}")
        self.shown = json.loads(line)

    def _check(self, before: dict[str, bool], was: dict[str, Any]) -> None:
        """Compare what the controller says with what the provider has."""
        seen, now = self.seen, self.shop.live()
        seen.twice |= self.shop.names_asked_twice()
        active = [p for p in self.shown["promises"].values() if p["state"] == "active"]
        needed_bps = sum(p["rate_bps"] for p in active if p["start_us"] <= self.shop.now_us < p["end_us"])
        carried_bps = self.shop.carried_bps()
        seen.carried += bool(needed_bps)
        if needed_bps > carried_bps:
            seen.without.append(f"{self.shop.now_us}: {needed_bps} bit/s are active, {carried_bps} carried")
        still = [
            name for name, p in was["promises"].items() if p["state"] == "active" and name in self.shown["promises"]
        ]
        gone = {name for name, is_up in before.items() if is_up and name not in now}
        if still and gone and needed_bps > carried_bps:
            seen.released |= gone


def report(operations: dict[str, int], seed: int, progress: Any) -> dict[str, Any]:
    """Return what was seen of so many operations at each kind of provider."""
    found: dict[str, Any] = {"seed": seed, "kinds": {}}
    for kind, count in operations.items():
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            run = PurchasesRun(StandInShop(kind, stack), Path(folder), seed)
            stack.callback(run.close)
            run.begun()
            for number in range(count):
                run.one()
                if number % 50 == 49:
                    progress(f"{kind}: {number + 1} of {count} operations, {run.seen.done['kill']} deaths")
            run.ended()
            seen = run.seen
            found["kinds"][kind] = {
                "operations": count,
                "done": dict(sorted(seen.done.items())),
                "hours": round((run.shop.now_us - START_US) / 3.6e9, 1),
                "promises": run.numbers,
                "looks_while_active": seen.carried,
                "bought": len(set(run.shop.fake.creates)),
                "bought_twice": sorted(seen.twice),
                "orphaned": sorted(seen.orphans),
                "released_though_needed": sorted(seen.released),
                "active_without_carrier": seen.without[:5],
            }
    return found | stated(aims(found))


def aims(found: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    stated_: dict[str, Aim] = {}
    for kind, one in found["kinds"].items():
        for what in ("bought_twice", "orphaned", "released_though_needed", "active_without_carrier"):
            stated_[f"{kind}: {what.replace('_', ' ')}"] = equal(len(one[what]), 0)
        stated_[f"{kind}: something was active and carried"] = equal(one["looks_while_active"] > 0, True)
    return stated_


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/providers"), help="folder (default: %(default)s)")
    parser.add_argument(
        "--operations", type=int, default=500, help="at OSCARS; as many again at NSI (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=22, help="of what happens (default: %(default)s)")
    asked = parser.parse_args()
    counts = dict.fromkeys(("oscars", "nsi"), asked.operations)
    result = report(counts, asked.seed, lambda text: print(f"bench: {text}", file=sys.stderr, flush=True))
    write_report(asked.out, result)
    print_aims(asked.out, result)


if __name__ == "__main__":
    main()
