"""A controller that buys, without its network: use cases, database, purchases, the provider's client over HTTP.

It does what it is told on standard input, a line of JSON each, at the time that is told with it; and is killed at will.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, cast

import structlog

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.reservations import Reservation
from controller.providers.nsi import NsiProvider
from controller.providers.oscars import OscarsProvider
from controller.providers.provider import Provider
from controller.providers.tests.buying import settings
from controller.providers.tests.test_contract import nsi_settings
from controller.work.tests.buying_site import CIRCUIT, BuyingSite
from topology.protocol import FlowClass

_OSCARS, _NSI, _SITE = cast("Any", settings), cast("Any", nsi_settings), cast("Any", BuyingSite)  # of tests: untyped
CLIENTS: dict[str, Callable[[str, Any], Provider]] = {
    "oscars": lambda url, now_us: OscarsProvider(_OSCARS(url, timeout_s=0.5), now_us),
    "nsi": lambda url, now_us: NsiProvider(_NSI(url, timeout_s=0.5), now_us),
}


class BuyingController:
    """The process: its site, and what it may be told."""

    def __init__(self, kind: str, url: str, database: str, now_us: int) -> None:
        self.site = _SITE(lambda clock: {CIRCUIT: CLIENTS[kind](url, clock)}, database=database, now_us=now_us)

    def told(self, what: dict[str, Any]) -> dict[str, Any]:
        """Do something at a time, and return how all stands."""
        self.site.clock.now_us = what["now_us"]
        getattr(self, f"_{what['do']}")(what)
        if what["do"] != "look":
            self.site.step()
        return self._shown()

    def _look(self, _: dict[str, Any]) -> None:
        """Do nothing."""

    def _step(self, _: dict[str, Any]) -> None:
        """Let the time pass."""

    def _promise(self, what: dict[str, Any]) -> None:
        ends = ("la-serena", "champaign")
        request = Request(*ends, FlowClass.URGENT, what["rate_bps"], what["start_us"], what["end_us"])
        held = self.site.use_cases.hold(lambda _: request, lambda now_us: Created(what["name"], now_us))
        if getattr(held.value, "state", None) is ReservationState.HELD:
            self.site.use_cases.commit(what["name"]).saved.result()

    def _release(self, what: dict[str, Any]) -> None:
        if what["name"] in self.site.value.wished.ledger.reservations:
            self.site.use_cases.release(what["name"]).saved.result()

    def _shown(self) -> dict[str, Any]:
        wished = self.site.value.wished
        live = [r for r in wished.ledger.reservations.values() if r.state not in ENDED]
        return {
            "promises": {r.reservation_id: _promise(r) for r in live},
            "purchases": {p.name: str(p.state) for p in wished.purchases[CIRCUIT].values()},
        }


def _promise(known: Reservation) -> dict[str, Any]:
    return {
        "state": str(known.state),
        "rate_bps": known.rate_bps,
        "start_us": known.start_us,
        "end_us": known.end_us,
    }


def main(kind: str, url: str, database: str, now_us: str) -> None:
    """Do what is told until the end of standard input."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(50), logger_factory=structlog.PrintLoggerFactory(sys.stderr)
    )
    controller = BuyingController(kind, url, database, int(now_us))
    print(json.dumps(controller.told({"do": "look", "now_us": int(now_us)})), flush=True)
    for line in sys.stdin:
        print(json.dumps(controller.told(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
