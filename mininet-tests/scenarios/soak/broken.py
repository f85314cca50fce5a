"""How each fault of a soak is made, and what mends it."""

import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from mininet_tests.scenarios.soak.events import FAULTS, EventKind
from mininet_tests.site.faults import SiteFaults

Act = Callable[[], object]


def target(kind: EventKind, what: dict[str, Any]) -> str:
    """Return what a fault breaks: a host, the controller, the clock or the switches."""
    if kind in (EventKind.KILL_CONTROLLER, EventKind.HOLD_DATABASE):
        return "controller"
    return str(what.get("host", "clock" if kind is EventKind.SET_CLOCK else "switches"))


def broken(faults: SiteFaults, kind: EventKind, what: dict[str, Any]) -> Act:
    """Break something; return what mends it.

    Raises:
        ValueError: it is no fault.
    """
    if kind is EventKind.HOLD_DATABASE:
        return faults.hold_database()
    if kind not in FAULTS:
        raise ValueError(f"{kind} breaks nothing; these do: {sorted(FAULTS)}")
    break_it, mend = _of_a_host(faults, kind, what["host"]) if "host" in what else _of_the_site(faults, kind, what)
    break_it()
    return mend


def _of_a_host(faults: SiteFaults, kind: EventKind, host: str) -> tuple[Act, Act]:
    agent = f"agent-{host}"
    found: dict[EventKind, tuple[Act, Act]] = {
        EventKind.KILL_AGENT: (partial(faults.kill, agent), partial(faults.start_agent, host)),
        EventKind.STOP_AGENT: (
            partial(faults.kill, agent, signal.SIGSTOP),
            partial(faults.kill, agent, signal.SIGCONT),
        ),
        EventKind.CUT_MANAGEMENT: (partial(faults.cut_management, host), partial(faults.mend_management, host)),
        EventKind.PORT_DOWN: (partial(faults.cut_port, host), partial(faults.mend_port, host)),
        EventKind.OTHER_NUMBER: (partial(faults.renumber_port, host), partial(faults.number_port, host)),
    }
    return found[kind]


def _of_the_site(faults: SiteFaults, kind: EventKind, what: dict[str, Any]) -> tuple[Act, Act]:
    by_s = what.get("by_s", 0)
    start_switch = faults.site.ovs.start_switch
    found: dict[EventKind, tuple[Act, Act]] = {
        EventKind.KILL_CONTROLLER: (partial(faults.kill, "controller"), faults.start_controller),
        EventKind.CUT_OPENFLOW: (faults.cut_openflow, lambda: None),
        EventKind.KILL_SWITCH: (partial(faults.end_switch, orderly=False), start_switch),
        EventKind.RESTART_SWITCH: (partial(faults.end_switch, orderly=True), start_switch),
        EventKind.SET_CLOCK: (partial(faults.set_clock, by_s), partial(faults.set_clock, -by_s)),
    }
    return found[kind]
