"""What ``headway what-if`` says beside each figure that the lab has published of a flow that is held."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from controller.plan.keys import FlowId
from controller.plan.policy import DEFAULT_POLICY, Policy
from controller.site import Site, flow_between
from controller.whatif.awaited import Delays
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import CircuitDeath, Opening, StoreBucket, WhatIf, WorkItem
from mininet_tests.papers.eckart.results import LINE_BPS
from mininet_tests.testing.aims import Aim, within
from mininet_tests.testing.networks import FILES, chile_illinois, chile_illinois_2, described, scaled
from topology.network import Hop, Network
from topology.protocol import FlowClass
from topology.wire import PPM, Layer, converted_bps
from topology.yaml_text import read

S = 1_000_000
T0 = 1_800_000_000 * S
SLICE_BYTES = 268_802_458
HALF_RTT_S = 0.09  # of Chile - Illinois
SHARE_OFF = 0.002  # of a circuit: by 1% any forecast of a full one would be right
RESULTS = Path(__file__).parents[3] / "docs" / "results"
ALONE = Policy({c: replace(p, guarantee_ppm=1, cap_ppm=PPM) for c, p in DEFAULT_POLICY.classes.items()})
"""Of the paper's table 2, where nobody else is there: a class may have the whole circuit."""
AT_ONCE = Delays(0, 0, 0, 0)
"""Of files to a slow disk: what is published is the rate of a file's middle, and no change of plan is in that."""


@dataclass(frozen=True, slots=True)
class LabRow:
    """A figure of the lab, and the forecast of it, seconds; and half of its round trip."""

    what: str
    source: str
    measured_s: float
    forecast_s: float
    half_rtt_s: float

    @property
    def aim(self) -> Aim:
        """Within 1% of what was measured, or half a round trip."""
        off_s = max(self.measured_s / 100, self.half_rtt_s)
        return within(round(self.forecast_s, 4), self.measured_s - off_s, self.measured_s + off_s)


def site(network: Network, policy: Policy = DEFAULT_POLICY, *, standing: bool = True) -> Site:
    """Return the lab's site: the database and the raw images always send."""
    said = (("database", FlowClass.PREDICTABLE, "base22"), ("raw", FlowClass.BACKGROUND, "base23"))
    flows = (flow_between(network, FlowId(name), c, (host, "arch")) for name, c, host in said if standing)
    return Site(network, policy, tuple(flows), 3_000)


def image(size_bytes: int, senders: tuple[str, ...] = ("base20", "base21"), **more: Any) -> WorkItem:
    """Return one image, a second after the beginning."""
    return WorkItem("image", FlowClass.URGENT, senders, "arch", size_bytes, T0 + S, **more)


def took_s(of: Site, *items: WorkItem, lasts_s: int = 60) -> float:
    """Return how long the last transfer took, seconds."""
    run = Simulation(WhatIf(of, T0, T0 + lasts_s * S, items)).run()
    return done_s(run.transfers[-1].took_us)


def lab_rows() -> list[LabRow]:
    """Return each figure that the lab has published of a held flow, beside its forecast."""
    gbit, ten = chile_illinois(), chile_illinois(10**10)
    alone, alone_10 = (site(network, ALONE, standing=False) for network in (gbit, ten))
    jumbo = site(chile_illinois(10**10, mtu_bytes=9000), ALONE, standing=False)
    half = site(chile_illinois(5 * 10**8))
    part, whole = image(SLICE_BYTES, ("base20",)), image(10 * SLICE_BYTES)
    summary, handover, line = "docs/results/summary.json", "docs/handover.md", "docs/results.md"
    said = (
        ("slice, warm, alone at 1 Gbit/s", line, 2.465, took_s(alone, part)),
        ("image, warm, alone at 10 Gbit/s", summary, 2.464605, took_s(alone_10, whole)),
        ("image, alone at 10 Gbit/s, MTU 9000", summary, 2.352528, took_s(jumbo, whole)),
        ("slice, new connection, alone", line, 2.645, took_s(alone, replace(part, opening=Opening.RECEIVER))),
        ("slice, the default shares", summary, 2.575098, took_s(site(gbit, standing=False), part)),
        ("figure 2 at 1 Gbit/s", summary, 2.820969, took_s(site(gbit), image(SLICE_BYTES, opening=Opening.RECEIVER))),
        ("figure 2 at 10 Gbit/s", summary, 2.818483, took_s(site(ten), replace(whole, opening=Opening.RECEIVER))),
        ("a night's image", summary, 2.654872, took_s(site(gbit), image(SLICE_BYTES, every_us=17 * S), lasts_s=204)),
        ("hand-over, warm", handover, 1.608, took_s(half, image(75_000_000))),
        ("hand-over, fresh", handover, 1.939, took_s(half, image(75_000_000, opening=Opening.SENDER))),
        ("payload at the new plan after a death", "docs/results/failover.json", 0.157333, failover_s()),
    )
    rows = [LabRow(*one, HALF_RTT_S) for one in said]
    ring = ("1 TB one way round the ring, 10 Gbit/s, MTU 9000", 808.0, 1), ("1 TB both ways round it", 404.0, 2)
    rows += [LabRow(what, "computed", whole_s, terabyte_s(lanes), 0.02) for what, whole_s, lanes in ring]
    return [*rows, *table_rows(), *store_rows()]


def lab_shares() -> dict[str, Aim]:
    """Return each share of a circuit that the lab has published of held flows, beside its forecast."""
    said: Any = json.loads((RESULTS / "summary.json").read_text())
    seen = {
        f"figure 2 at {rate} Gbit/s, used while all flows send": (said["figure2"][f"{rate}g"]["utilisation"], used)
        for rate, used in ((1, used_share(1)), (10, used_share(10)))
    }
    of_night = said["night"]["background_share_of_leftover"], night_share(said["night"]["images"])
    seen["a night, background of what the others leave"] = of_night
    return {
        what: within(round(forecast, 4), round(measured - SHARE_OFF, 4), round(measured + SHARE_OFF, 4))
        for what, (measured, forecast) in seen.items()
    }


def used_share(rate_gbps: int) -> float:
    """Return how much of the circuit is used while figure 2's image is sent at its rate."""
    network, seen = chile_illinois(rate_gbps * 10**9), list[tuple[int, int, int]]()

    def watch(at_us: int, loads_bps: Mapping[Hop, int]) -> None:
        circuit_bps = loads_bps.get(Hop("ls1", "ch1"), 0)
        seen.append((at_us, circuit_bps, loads_bps.get(Hop("base20", "ls1"), 0)))

    parts = image(rate_gbps * SLICE_BYTES, opening=Opening.RECEIVER)
    Simulation(WhatIf(site(network), T0, T0 + 60 * S, (parts,)), observe=watch).run()
    most_bps = max(image_bps for _, _, image_bps in seen)
    spans = [(after[0] - one[0], one[1]) for one, after in pairwise(seen) if one[2] == most_bps]
    return sum(us * bps for us, bps in spans) / sum(us for us, _ in spans) / (rate_gbps * 10**9)


def night_share(images: int) -> float:
    """Return what raw images have of what a night's images and the database leave of the circuit, payload."""
    network, lasts_us = chile_illinois(), images * 17 * S
    items = (image(SLICE_BYTES, every_us=17 * S),)
    run = Simulation(WhatIf(site(network), T0, T0 + lasts_us, items)).run()
    payload_bps = converted_bps(10**9, Layer.WIRE, Layer.PAYLOAD, network.framing)
    left_bytes = payload_bps * lasts_us // (8 * S) - images * SLICE_BYTES - run.standing_bytes["database"]
    return run.standing_bytes["raw"] / left_bytes


def failover_s() -> float:
    """Return how long after a death payload arrives at the new plan's rate: until it is sent so, and the new line."""
    died_us, seen = T0 + 5 * S, dict[int, int]()

    def watch(at_us: int, loads_bps: Mapping[Hop, int]) -> None:
        seen[at_us] = loads_bps.get(Hop("ls1", "south"), 0)

    network = chile_illinois_2(10**8)
    death = CircuitDeath("north", died_us, 20 * S)
    Simulation(WhatIf(site(network), T0, T0 + 60 * S, (image(10**8),), (death,)), observe=watch).run()
    most_bps = max(bps for at_us, bps in seen.items() if at_us < died_us + S)
    full_us = min(at_us for at_us, bps in seen.items() if at_us > died_us and bps >= most_bps * 0.9)
    return (full_us - died_us) / S + network.link("ls1", "south").delay_us / S


def terabyte_s(lanes: int) -> float:
    """Return how long 1 TB takes from Albuquerque to Livermore by so many of the two ways round the ring."""
    said: Any = read(FILES["asc-ring"].read_text(encoding="utf-8")).values
    sites = said["sites"]
    ports = {f"eth{n}": {"address": f"10.30.0.{11 + 2 * n}", "port": f"albu1-eth{1 + 2 * n}", "number": 1 + 2 * n,
                         "rate": "10 Gbit/s"} for n in range(2)}  # fmt: skip
    sites["albuquerque"]["hosts"]["albu10"] = {"interfaces": ports}
    sites["livermore"]["hosts"]["live10"]["rate"] = "20 Gbit/s"
    network = described(said)
    dump = WorkItem("dump", FlowClass.URGENT, ("albu10",), "live10", 10**12, T0 + S, lanes=lanes)
    return took_s(Site(scaled(network, (1, 1), (1, 1), 9000), ALONE, (), 3_000), dump, lasts_s=1_000)


def store_rows() -> Iterator[LabRow]:
    """Yield what files took that their disk held back, of which its own room and drain were measured before each.

    Smaller files come at the line's rate, beside the background's guarantee, which is not supposed here.
    """
    rtt_s = 0.01
    of = site(chile_illinois(delay_us=round(rtt_s / 2 * S)), ALONE, standing=False)
    for size, (m_mb, d_mbps, predicted_mbps, measured_mbps, _) in published("receiver")["table 3"].items():
        if predicted_mbps is None or predicted_mbps * 1e6 > LINE_BPS:
            continue
        size_bytes = round(float(size.removesuffix(" MB")) * 1e6)
        store = StoreBucket(round(d_mbps * 1e6), round(m_mb * 1e6))
        supposed = WhatIf(
            of, T0, T0 + 60 * S, (image(size_bytes, ("base20",)),), stores={"arch": store}, delays=AT_ONCE
        )
        run = Simulation(supposed).run()
        across_s = done_s(run.transfers[-1].took_us) - rtt_s
        measured_s = size_bytes * 8 / measured_mbps / 1e6
        what = f"{size} to a store of {m_mb:.1f} MB that drains {d_mbps:.0f} Mbit/s"
        yield LabRow(what, "docs/results/receiver.json", measured_s, across_s, rtt_s / 2)


def table_rows() -> Iterator[LabRow]:
    """Yield each cell without losses of docs/results.md's tables 1 and 2: an image alone at 1 Gbit/s, by round trip.

    Time runs from the first write. Where the receiver connects, nothing is waited for then; where the sender connects,
    its window opens a round trip later.
    """
    openings = {"reused": Opening.WARM, "receiver connects": Opening.WARM, "sender connects": Opening.RECEIVER}
    for line in (RESULTS / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        if cell["experiment"] == "table" and not cell["loss_percent"]:
            delay_us = max(1, cell["rtt_ms"] * 500)  # a circuit without any is no network
            alone = site(chile_illinois(delay_us=delay_us), ALONE, standing=False)
            part = image(cell["size_bytes"], ("base20",), opening=openings[cell["connection"]])
            what = f"tables 1 and 2: {cell['connection']}, {cell['rtt_ms']} ms"
            measured_s = median(run["s"] for run in cell["runs_seen"])
            yield LabRow(what, "docs/results/cells.jsonl", measured_s, took_s(alone, part), cell["rtt_ms"] / 2_000)


def published(name: str) -> Any:
    """Return the figures of a published report."""
    return json.loads((RESULTS / f"{name}.json").read_text())["figures"]


def done_s(took_us: int | None) -> float:
    """Return how long a transfer took, seconds; raises AssertionError if it was not done."""
    if took_us is None:
        raise AssertionError("the transfer was not done")
    return took_us / S
