"""What is broken while traffic runs, case by case, and how each is mended."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mininet_tests.site.faults import SiteFaults, Traffic, held
from mininet_tests.site.lsst import RECEIVER
from mininet_tests.testing.eventually import eventually

IMAGER, IMAGE_PORT = "base20", 5101
IMAGE = "image"  # its connection
BACKGROUND_FLOW = "raw-images"
AWAY_S = 4.0  # longer than a lease
HOUR_S = 3600
IMAGE_BYTES = 60_000_000  # more than passes in a lease
IMAGE_LEAST_BPS = 50_000_000  # paced at; of 100 Mbit/s it is planned more than 80
LOST_PERCENT = 60
WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class FaultCase:
    """One fault.

    Attributes:
        break_it: lets it begin.
        mend: ends it.
        lasts_s: in between.
        look: what else is seen just before its end.
    """

    break_it: Callable[[], object]
    mend: Callable[[], object]
    lasts_s: float = 0.0
    look: Callable[[], dict[str, Any]] = dict


def cases(traffic: Traffic, faults: SiteFaults) -> dict[str, FaultCase]:
    """Return every case by name."""
    site, ovs = traffic.site, traffic.site.ovs

    def kill_both() -> None:
        faults.kill("controller")
        faults.end_switch(orderly=False)

    def start_both() -> None:
        ovs.start_switch()
        faults.start_controller()

    def silence_both() -> None:
        ovs.stop_database()
        faults.cut_openflow()

    def announced_while_cut() -> None:
        faults.block_openflow()
        site.announce(IMAGE, 50_000_000, [IMAGER], RECEIVER)

    def nothing() -> None:
        """Nothing is left to mend."""

    return {
        "openflow cut": FaultCase(faults.cut_openflow, nothing, 0.5),
        "openflow silent": FaultCase(faults.block_openflow, faults.unblock_openflow, AWAY_S),
        "openflow silent, plan changes": FaultCase(announced_while_cut, faults.unblock_openflow, AWAY_S),
        "plan changes back": FaultCase(lambda: site.release(IMAGE), nothing),
        "vswitchd killed": FaultCase(lambda: faults.end_switch(orderly=False), ovs.start_switch),
        "vswitchd restarted": FaultCase(lambda: faults.end_switch(orderly=True), ovs.start_switch),
        "vswitchd away": FaultCase(lambda: faults.end_switch(orderly=False), ovs.start_switch, AWAY_S),
        "controller killed": FaultCase(lambda: faults.kill("controller"), faults.start_controller),
        "controller away": FaultCase(lambda: faults.kill("controller"), faults.start_controller, 2 * AWAY_S),
        "database away": FaultCase(ovs.stop_database, ovs.start_database, AWAY_S),
        "database and openflow": FaultCase(silence_both, ovs.start_database, AWAY_S),
        "controller and vswitchd": FaultCase(kill_both, start_both),
        **_with_an_image(traffic, faults),
        "so much is lost": FaultCase(
            lambda: _lost(traffic, faults), lambda: faults.lose_nothing(RECEIVER), look=lambda: looked(traffic)
        ),
    }


def _with_an_image(traffic: Traffic, faults: SiteFaults) -> dict[str, FaultCase]:
    """Return the cases in which the agent of a host that sends an image dies or is silent."""
    site, agent = traffic.site, f"agent-{IMAGER}"

    def dies(name: str, by_s: int, *, is_released: bool) -> None:
        under_way(traffic, name)
        faults.kill(agent)
        if is_released:
            site.release(name)
        faults.set_clock(by_s)

    def lives(name: str, by_s: int, *, is_released: bool) -> None:
        faults.set_clock(-by_s)
        faults.start_agent(IMAGER)
        if is_released:  # what is left of it goes through under another promise
            site.announce(f"{name}-rest", IMAGE_BYTES, [IMAGER], RECEIVER)
        through(traffic, f"{name}-rest" if is_released else name)

    def restarts(name: str) -> None:
        under_way(traffic, name)
        faults.kill(agent, signal.SIGSTOP)
        faults.kill("controller")
        faults.start_controller()

    def goes_on(name: str) -> None:
        faults.kill(agent, signal.SIGCONT)
        through(traffic, name)

    def clock(name: str, by_s: int, *, is_released: bool) -> FaultCase:
        return FaultCase(
            lambda: dies(name, by_s, is_released=is_released),
            lambda: lives(name, by_s, is_released=is_released),
            look=lambda: given_away(traffic),
        )

    return {
        "agent dead, clock forward": clock("image-forward", HOUR_S, is_released=False),
        "agent dead, image deleted, clock back": clock("image-back", -HOUR_S, is_released=True),
        "controller restarts beside a silent agent": FaultCase(
            lambda: restarts("image-silent"), lambda: goes_on("image-silent"), look=lambda: given_away(traffic)
        ),
    }


def under_way(traffic: Traffic, name: str, size_bytes: int = IMAGE_BYTES) -> dict[str, Any]:
    """Announce an image, send it, wait until it is at its rate, and return what was promised.

    Raises:
        AssertionError: not in time.
        RuntimeError: it was refused.
    """
    promised: dict[str, Any] = traffic.site.announce(name, size_bytes, [IMAGER], RECEIVER)
    stream = traffic.streams[IMAGE]
    traffic.feed(IMAGE, size_bytes)
    eventually(
        lambda: held(stream) and 8 * stream.told.pacing_bytes_per_s > IMAGE_LEAST_BPS,
        within_s=WITHIN_S,
        what=f"{name} is at its rate",
    )
    return promised


def through(traffic: Traffic, name: str) -> None:
    """Wait until all of an image is confirmed, and give it back.

    Raises:
        AssertionError: not in time.
    """
    eventually(lambda: not traffic.streams[IMAGE].unconfirmed_bytes, within_s=WITHIN_S, what=f"{name} is confirmed")
    traffic.site.release(name)


def looked(traffic: Traffic) -> dict[str, Any]:
    """Return what the controller says of itself and of its plan."""
    health, plan = traffic.site.get("/healthz") or {}, traffic.site.get("/v1/plan") or {}
    entries = (plan.get("installed") or {}).get("allocations", [])  # a controller that has just started has none
    return {
        "ok": health.get("ok"),
        "reasons": health.get("reasons"),
        "calendar_off_s": round(health.get("calendar_off_us", 0) / 1e6),
        "planned": sorted(entry["name"] for entry in entries),
        "planned_payload_bps": {entry["name"]: entry["payload_bps"] for entry in entries},
        "hindrances": {entry["name"]: entry["progress"]["hindrance"] for entry in entries},
    }


def given_away(traffic: Traffic) -> dict[str, Any]:
    """Wait until the background is planned what the image was; return what the controller says then.

    Raises:
        AssertionError: not in time.
    """

    def has_it() -> bool:
        return bool(looked(traffic)["planned_payload_bps"].get(BACKGROUND_FLOW, 0) > IMAGE_LEAST_BPS)

    eventually(has_it, within_s=WITHIN_S, what="the background has what the absent host was given")
    return looked(traffic)


def _lost(traffic: Traffic, faults: SiteFaults) -> None:
    """Let so much be lost that hosts give their connections back, and wait until the controller has said so of all."""
    log = traffic.site.directory / "logs" / "controller.log"
    before = log.read_text().count("event=host.fallback ")
    standing = [name for name in traffic.streams if name != IMAGE]
    faults.lose(RECEIVER, LOST_PERCENT)
    eventually(
        lambda: log.read_text().count("event=host.fallback ") >= before + len(standing),
        within_s=WITHIN_S,
        what="the fallback of all is said",
    )
