"""A running controller's site as a scenario that goes on from it, and what a circuit's death would break. Pure."""

from dataclasses import replace
from typing import Any

from controller.live_site import LiveSite
from controller.whatif.begun import Begun
from controller.whatif.simulation import Simulation
from controller.whatif.summary import broken
from controller.whatif.supposed import DAY_US, CircuitDeath, WhatIf
from topology.units import instant_us, shown_time

LONGEST_US = 7 * DAY_US  # as far ahead as the page's calendar
SHORTEST_US = 600_000_000  # of what is not said to be longer
NOTICED_US = 1_000_000  # what is later by less is not said to be the death's


def horizon_us(live: LiveSite, at_us: int) -> int:
    """Return until when it is worth looking, Unix time: the last promise's end, a week ahead at most.

    Args:
        live: the site.
        at_us: when something is to happen in it, Unix time.
    """
    ends = [known.end_us for known in live.reservations]
    ends += [known.promised_us for known in live.promises()]
    return max(at_us + SHORTEST_US, min(max(ends, default=0) + 1_000_000, live.at_us + LONGEST_US))


def continuing(live: LiveSite, until_us: int) -> WhatIf:
    """Return the scenario that goes on from a site, with nothing new in it.

    Raises:
        ValueError: it is no site that this version knows.
    """
    begun = Begun(live.reservations, live.promises(), frozenset(live.down), live.steps, live.stores)
    return WhatIf(live.site(), live.at_us, until_us, (), begun=begun)


def forecast(live: LiveSite, circuit: str) -> dict[str, Any]:
    """Return what breaks if a circuit dies at this moment and stays dead, and what breaks anyway, as JSON has it.

    Raises:
        ValueError: it is no site that this version knows.
    """
    until_us = horizon_us(live, live.at_us)
    as_it_is = continuing(live, until_us)
    death = CircuitDeath(circuit, live.at_us, until_us - live.at_us)
    anyway, dead = (broken([Simulation(one).run()]) for one in (as_it_is, replace(as_it_is, deaths=(death,))))
    known = {(one["item"], one["name"]): one for one in anyway}
    return {
        "circuit": circuit,
        "at": shown_time(live.at_us),
        "until": shown_time(until_us),
        "unlike": list(live.unlike),
        "breaks": [_said(one) for one in dead if _is_worse(one, known.get((one["item"], one["name"])))],
        "anyway": [_said(one) for one in anyway],
    }


def _is_worse(dead: dict[str, Any], lives: dict[str, Any] | None) -> bool:
    """Return whether a promise is broken by a death, or by more than it is broken anyway: by what one would notice."""
    if lives is None or dead["lacked_us"] >= lives["lacked_us"] + NOTICED_US:
        return True
    if lives["done"] is None:
        return False
    return dead["done"] is None or instant_us(dead["done"]) >= instant_us(lives["done"]) + NOTICED_US


def _said(one: dict[str, Any]) -> dict[str, Any]:
    late = {"promised": one["promised"], "done": one["done"], "lacks_s": one["lacked_us"] / 1e6}
    return {"kind": one["item"], "id": one["name"], "why": one["why"], **late}
