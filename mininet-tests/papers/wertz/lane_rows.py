"""What files over two lanes took in the lab, by program, beside the forecast; which are not forecast, and why."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from controller.plan.policy import DEFAULT_POLICY, Policy
from controller.site import Site
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import CircuitDeath, Opening, WhatIf
from mininet_tests.papers.wertz.lab_rows import T0, LabRow, S, done_s, image, published, took_s
from mininet_tests.testing.networks import two_lanes_of
from topology.protocol import FlowClass
from topology.wire import PPM

LANES_POLICY = Policy(
    DEFAULT_POLICY.classes
    | {FlowClass.URGENT: replace(DEFAULT_POLICY.classes[FlowClass.URGENT], guarantee_ppm=1_000, cap_ppm=PPM)}
)
"""Of ``mininet-tests/run lanes``."""
HALF_RTT_S = 0.1  # of the slower circuit, by which the last of a rest comes
WHERE = {
    "": (10**9, 4),
    "at a fifth": (2 * 10**8, 4),
    "at a tenth": (10**8, 4),
    "at a tenth, IPv6": (10**8, 6),
    "at 40 Mbit/s": (4 * 10**7, 4),
}
"""By what a case says of its scale, the rate of ``north``, bit/s, and the version of IP; sizes are in proportion."""
OPENINGS = {
    "curl": Opening.RECEIVER,
    "gridftp": Opening.RECEIVER,
    "rclone": Opening.RECEIVER,
    "aria2-parts": Opening.WARM,
}
"""What is measured begins with the first byte: the connection is there. Where the sender has made it, its window opens
a round trip later; aria2 fetches, so that its is open."""
WHY_NOT = {
    "aria2": "of one file it fetches 1.1% twice, and its connections are not dealt in the proportion of the lanes",
    "mptcp": "its mappings take 1.9% of the payload, and its second subflow begins three quarters of a second later",
    "mptcp-stale1": "as MPTCP",
    "sctp": "it is not held by the agent: a meter and Reno's window decide",
    "sctp-rfc4960": "as SCTP",
    "sctp-cmt": "its windows decide, which are of one size for lanes of two",
}
WHAT = ("undisturbed", "north dies", "south dies")
_CASE = re.compile(r"(?:(.+): )?([a-z0-9-]+), (.+)")


@dataclass(frozen=True, slots=True)
class LaneCase:
    """A case of docs/results/lanes.json.

    Attributes:
        name: in the file.
        program: what sends.
        what: undisturbed, or who dies.
        rate_bps: of ``north``.
        family: the version of IP that all addresses are of: 4, 6.
    """

    name: str
    program: str
    what: str
    rate_bps: int
    family: int

    @property
    def at(self) -> Site:
        """Where."""
        return Site(two_lanes_of(self.family, rate_bps=self.rate_bps), LANES_POLICY, (), 3_000)


def cases() -> list[LaneCase]:
    """Return all that were published."""
    found = []
    for name in published("lanes")["took_s"]:
        match = _CASE.fullmatch(name)
        if match is None:
            raise ValueError(f"{name}: is not a program and a case")
        found.append(LaneCase(name, match[2], match[3], *WHERE[match[1] or ""]))
    return found


def lane_rows() -> Iterator[LabRow]:
    """Yield what a file over two lanes took, and its rest when a circuit died with half of it there."""
    for case in (one for one in cases() if one.program in OPENINGS):
        yield row_of(case, OPENINGS[case.program])


def not_forecast() -> dict[str, dict[str, Any]]:
    """Return, by case, what was measured of programs that the simulator does not know, the forecast, and why."""
    found: dict[str, dict[str, Any]] = {}
    for case in (one for one in cases() if one.program not in OPENINGS and one.what in WHAT):
        why = WHY_NOT[case.program]
        if case.program.startswith("sctp"):  # its size is another, beside a reservation
            found[case.name] = {"why": why}
            continue
        row = row_of(case, Opening.RECEIVER)
        found[case.name] = {"measured_s": row.measured_s, "forecast_s": round(row.forecast_s, 3), "why": why}
    return found


def row_of(case: LaneCase, opening: Opening) -> LabRow:
    """Return a case beside its forecast."""
    said, source = published("lanes"), "docs/results/lanes.json"
    size_bytes = said["size_bytes"] * case.rate_bps // 10**9
    whole = replace(image(size_bytes, ("base20",)), lanes=2, opening=opening)
    if case.what == "undisturbed":
        return LabRow(f"two lanes: {case.name}", source, said["took_s"][case.name], took_s(case.at, whole), HALF_RTT_S)
    there_bytes = size_bytes - said["rest_bytes"][case.name]
    died_s = took_s(case.at, replace(whole, size_bytes=there_bytes)) - HALF_RTT_S
    death = CircuitDeath(case.what.removesuffix(" dies"), T0 + S + round(died_s * S), 100 * S)
    run = Simulation(WhatIf(case.at, T0, T0 + 100 * S, (whole,), (death,))).run()
    rest_s = done_s(run.transfers[-1].took_us) - died_s - HALF_RTT_S
    return LabRow(f"two lanes: {case.name}: its rest", source, said["rest_took_s"][case.name], rest_s, HALF_RTT_S)
