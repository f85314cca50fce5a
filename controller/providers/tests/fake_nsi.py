"""An NSI aggregator behind its REST proxy to test against: real HTTP on this machine, a clock that is set by hand.

What the aggregator has are NSI CS v2's state machines, of which the proxy makes one status at each look; what it does
takes time, and whoever asks is told at once that it is accepted. Ids are the aggregator's.
"""

import itertools
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.types import Scope

from controller.providers.tests.faulty import Faults, Wire
from controller.providers.tests.faulty import running as serving

PROVIDER = "urn:ogf:network:aggregator.example:2025:nsa:safnari"
DOMAINS = ("urn:ogf:network:north.example:2025:nsa:supa", "urn:ogf:network:south.example:2025:nsa:supa")
BETWEEN = "urn:ogf:network:north.example:2025:topology:sdp-1?vlan=77"
_URN = re.compile(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NOT_LIVE = frozenset({"TERMINATED"})


@dataclass
class NsiRules:
    """What the networks behind it are; seconds and Mbit/s."""

    decide_s: float = 4  # reserve and commit, through all networks
    build_s: float = 12
    confirm_s: float = 2
    port_mbps: int = 100_000
    segment_mbps: int | None = None  # what each network says that it has reserved; None: all that was asked for
    plane_fails: bool = False
    token: str = ""


@dataclass
class NsiRow:
    """One connection: when somebody last wished what of each of its state machines."""

    connection_id: str
    body: dict[str, Any]
    asked_s: float
    error: str = ""
    decided: bool = False
    provisioned_s: float | None = None
    released_s: float | None = None
    terminated_s: float | None = None

    @property
    def p2ps(self) -> dict[str, Any]:
        """What it is."""
        return dict(self.body["criteria"]["p2ps"])

    def status(self, now_s: float, rules: NsiRules) -> str:
        """The proxy's one status, in its order of precedence."""
        if self.terminated_s is not None and now_s >= self.terminated_s + rules.confirm_s:
            return "TERMINATED"
        if not self.decided or self.error:
            return "FAILED" if self.error else "RESERVING"
        if self.provisioned_s is not None:
            up = "FAILED" if rules.plane_fails else "ACTIVATED"
            return "ACTIVATING" if now_s < self.provisioned_s + rules.build_s else up
        going = self.released_s is not None and now_s < self.released_s + rules.build_s
        return "DEACTIVATING" if going else "RESERVED"


@dataclass
class FakeNsi:
    """A proxy, the aggregator behind it, and what may be done to them."""

    clock: Callable[[], float] = time.time
    rules: NsiRules = field(default_factory=NsiRules)

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.reset()

    def reset(self) -> None:
        """Forget everything, faults too."""
        self.ahead_s = 0.0
        self.requests: list[str] = []
        self.creates: list[str] = []  # the global ids that came by POST
        self.rows: list[NsiRow] = []
        self.faults = Faults()
        self._ids = itertools.count(1)

    def now_s(self) -> float:
        """The time, with everything decided until then."""
        now_s = self.clock() + self.ahead_s
        for row in self.rows:
            if not row.decided and now_s >= row.asked_s + self.rules.decide_s:
                row.error, row.decided = self._conflict(row), True
        return now_s

    def live(self) -> list[NsiRow]:
        """What holds anything, or will."""
        now_s = self.now_s()
        return [r for r in self.rows if r.status(now_s, self.rules) not in _NOT_LIVE and not r.error]

    def _conflict(self, asked: NsiRow) -> str:
        """Why a reservation fails; empty if it is confirmed and committed."""
        others = [r for r in self.rows if r is not asked and r.decided and not r.error and r.terminated_s is None]
        for stp in (asked.p2ps["sourceSTP"], asked.p2ps["destSTP"]):
            port = stp.partition("?")[0]
            there = [r for r in others if any(port == s.partition("?")[0] for s in _stps(r))]
            if any(stp in _stps(r) for r in there):
                return f"reserveFailed: [00603] STP_UNAVALABLE: {stp} is in use (nsaId={DOMAINS[0]})"
            free = self.rules.port_mbps - sum(r.p2ps["capacity"] for r in there)
            if asked.p2ps["capacity"] > free:
                return f"reserveFailed: [00600] CAPACITY_UNAVAILABLE: {free} Mbit/s at {port} (nsaId={DOMAINS[0]})"
        return ""

    def asked(self, body: dict[str, Any]) -> NsiRow:
        """A new connection; that of the same global id, if it is not over."""
        now_s, name = self.now_s(), body.get("globalReservationId")
        for row in self.rows:
            is_same = name is not None and row.body.get("globalReservationId") == name
            if is_same and row.status(now_s, self.rules) != "TERMINATED":
                return row
        self.rows.append(NsiRow(f"c0ffee{next(self._ids):04}", body, now_s))
        return self.rows[-1]

    def turned_away(self, scope: Scope, fault: Faults) -> Response | None:
        """The answer to who may not come in, or not now."""
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if self.rules.token and given != f"Bearer {self.rules.token}":
            return JSONResponse({"detail": "Authentication required"}, 401, {"WWW-Authenticate": "Bearer"})
        if fault.status:
            return JSONResponse({"detail": "Failed to reach NSI aggregator"}, fault.status)
        return None

    def altered(self, scope: Scope) -> Response | None:
        """Nothing."""
        return None

    def shown(self, row: NsiRow, detail: str) -> dict[str, Any]:
        """A connection as the proxy shows it."""
        rules, p2ps = self.rules, row.p2ps
        p2ps.pop("ero", None)
        status = row.status(self.now_s(), rules)
        capacity = p2ps["capacity"] if rules.segment_mbps is None else rules.segment_mbps
        ends = ((p2ps["sourceSTP"], BETWEEN), (BETWEEN, p2ps["destSTP"]))
        segments = [
            {
                "order": order,
                "connectionId": f"{row.connection_id}-{order}",
                "providerNSA": nsa,
                "serviceType": None,
                "capacity": capacity,
                "sourceSTP": source,
                "destSTP": dest,
                "status": status,
            }
            for order, (nsa, (source, dest)) in enumerate(zip(DOMAINS, ends, strict=True))
        ]
        lost = "data plane not active within 300s of provision" if status == "FAILED" and not row.error else None
        return {
            "globalReservationId": row.body.get("globalReservationId"),
            "connectionId": row.connection_id,
            "description": row.body["description"],
            "criteria": {"version": 1, "serviceType": None, "p2ps": p2ps},
            "status": status,
            "lastError": row.error or lost,
            "segments": segments if detail == "full" else None,
        }


def _stps(row: NsiRow) -> tuple[str, str]:
    return row.p2ps["sourceSTP"], row.p2ps["destSTP"]


def _wrong(body: dict[str, Any]) -> str:
    """What is not well-formed in a request; the proxy looks closer than this."""
    p2ps = body.get("criteria", {}).get("p2ps", {})
    wrong = {
        "body.criteria.p2ps.capacity": not isinstance(p2ps.get("capacity"), int) or p2ps["capacity"] <= 0,
        "body.globalReservationId": not _URN.fullmatch(str(body.get("globalReservationId", ""))),
        "body.callbackURL": not str(body.get("callbackURL", "")).startswith("http"),
        "body.requesterNSA": not body.get("requesterNSA"),
    }
    return next((place for place, is_so in wrong.items() if is_so), "")


def _app(fake: FakeNsi) -> FastAPI:
    """All that is answered."""
    app = FastAPI(openapi_url=None)

    def found(connection_id: str) -> NsiRow | None:
        return next((row for row in fake.rows if row.connection_id == connection_id), None)

    def accepted(row: NsiRow) -> JSONResponse:
        kind = "https://github.com/workfloworchestrator/nsi-aggregator-proxy#202-accepted"
        title = {"type": kind, "title": "Accepted", "status": 202, "detail": "The request is accepted."}
        return JSONResponse({**title, "instance": f"/reservations/{row.connection_id}"}, 202)

    @app.get("/reservations")
    async def listed(detail: str = "summary") -> Any:
        return {"reservations": [fake.shown(row, detail) for row in fake.rows]}

    @app.get("/reservations/{connection_id}")
    async def one(connection_id: str, detail: str = "summary") -> Any:
        row = found(connection_id)
        return _not_found(connection_id) if row is None else fake.shown(row, detail)

    @app.post("/reservations")
    async def reserve(request: Request) -> Any:
        body = await request.json()
        if place := _wrong(body):
            return JSONResponse({"detail": [{"loc": place.split("."), "msg": "is not well-formed"}]}, 422)
        if body["providerNSA"] != PROVIDER:
            return JSONResponse({"detail": f"providerNSA {body['providerNSA']!r} does not match"}, 400)
        fake.creates.append(body["globalReservationId"])
        return accepted(fake.asked(body))

    @app.post("/reservations/{connection_id}/{what}")
    @app.delete("/reservations/{connection_id}")
    async def told(connection_id: str, what: str = "terminate") -> Any:
        row = found(connection_id)
        return _not_found(connection_id) if row is None else _step(fake, row, what) or accepted(row)

    return app


_MAY = {
    "provision": {"RESERVED", "ACTIVATING", "ACTIVATED"},
    "release": {"ACTIVATED", "DEACTIVATING", "RESERVED"},
    "terminate": {"RESERVED", "FAILED", "TERMINATED"},
}


def _step(fake: FakeNsi, row: NsiRow, what: str) -> Response | None:
    """Take a connection a step further, if it may go there now; to ask again is nothing."""
    now_s = fake.now_s()
    status = row.status(now_s, fake.rules)
    if status not in _MAY[what]:
        return JSONResponse({"detail": f"Reservation is in {status} state, which is not one to {what}"}, 409)
    if what == "provision" and status == "RESERVED":
        row.provisioned_s, row.released_s = now_s, None
    elif what == "release" and status == "ACTIVATED":
        row.provisioned_s, row.released_s = None, now_s
    elif what == "terminate" and row.terminated_s is None:
        row.terminated_s = now_s
    return None


def _not_found(connection_id: str) -> JSONResponse:
    return JSONResponse({"detail": f"Reservation {connection_id!r} not found"}, 404)


@contextmanager
def running_nsi(fake: FakeNsi) -> Iterator[str]:
    """Serve one, and give the URL."""
    with serving(Wire(fake, _app(fake))) as url:
        yield url
