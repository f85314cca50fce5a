"""The standing flows of a site on which things break: database and background, and when all is as planned again."""

from collections.abc import Iterable

from mininet_tests.site.faults import Traffic, held
from mininet_tests.site.lsst import BACKGROUND, DATABASE
from mininet_tests.testing.eventually import eventually

RATE_BPS = 100_000_000
PORTS = {DATABASE: 5301, BACKGROUND: 5302}
CONVERGES_WITHIN_S = 60.0


def settled(traffic: Traffic) -> None:
    """Wait until the plan is in force at every layer, and every connection is held by it.

    Raises:
        AssertionError: not in time.
        RuntimeError: a program has ended.
    """
    eventually(lambda: is_settled(traffic), within_s=CONVERGES_WITHIN_S, what="all is as the plan says")


def is_settled(traffic: Traffic, names: Iterable[str] = PORTS) -> bool:
    """Return whether the plan is in force at every layer, by the controller, and some connections are held by it."""
    health = traffic.site.get("/healthz") or {}
    agents = {name.removeprefix("agent-") for name in traffic.site.processes if name.startswith("agent-")}
    switches = traffic.site.get("/v1/switches") if health.get("ok") else None
    return bool(
        switches
        and all(switch["connected"] for switch in switches)
        and not agents & {*health["hosts_missing"], *health["hosts_unconfirmed"]}
        and all(held(traffic.streams[name]) for name in names)
    )
