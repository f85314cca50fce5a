"""Buys a circuit through NSI CS v2, of an aggregator behind nsi-aggregator-proxy.

All is asynchronous: a request is taken, and a look tells what became of it. The proxy has neither begin nor end, so it
is told to build at the begin of what is bought (provision), and to take it down and forget it at the end. What is
reserved cannot be changed. A purchase is known by its global reservation id, which we choose; the proxy answers by
the aggregator's connection id, which is looked up by the former.
"""

from collections.abc import Callable
from random import Random
from typing import TypeVar
from urllib.parse import quote
from uuid import UUID

import structlog

from controller.plan.purchases import Period, PurchaseState, Terms
from controller.providers.answers import Unclear
from controller.providers.errors import AnswerLost, ProviderDenied, ProviderRefused, ProviderUnavailable
from controller.providers.http_session import HttpSession, Reply
from controller.providers.nsi_tls import proxy_tls
from controller.providers.nsi_values import MBPS, NsiSettings
from controller.providers.nsi_wire import (
    NsiConnection,
    accepted,
    called_back,
    error_reason,
    global_id,
    nsi_connection,
    nsi_connections,
    reserve_body,
)
from controller.providers.provider import CircuitStatus

log = structlog.get_logger()

T = TypeVar("T")
_LIVE = frozenset(PurchaseState) - {PurchaseState.ENDED}


class NsiProvider:
    """One circuit, bought through one proxy.

    Args:
        settings: of the circuit.
        now_us: the calendar: Unix time, microseconds.
    """

    def __init__(self, settings: NsiSettings, now_us: Callable[[], int]) -> None:
        self._settings = settings
        self._now_us = now_us
        self._ids: dict[str, str] = {}  # by purchase, its connection's id
        self._sent: set[str] = set()
        self._wanted: dict[str, Period] = {}
        self._leaving_us: dict[str, int] = {}  # by purchase, since when it is to be given back
        self._session = HttpSession(settings.url, settings.token, settings.timeout_s, proxy_tls(settings.tls))

    def close(self) -> None:
        """Close the connections to the proxy; nothing is given back."""
        self._session.close()

    @property
    def terms(self) -> Terms | None:
        """Return what is sold."""
        return self._settings.terms

    @property
    def schedule(self) -> tuple[Period, ...]:
        """Return nothing: what is sold is carried."""
        return ()

    def new_name(self, random: Random) -> str:
        """Return a UUID, which the proxy wants for a global reservation id."""
        return str(UUID(int=random.getrandbits(128), version=4))

    def reserve(self, name: str, period: Period, apart: frozenset[str] = frozenset()) -> bool:  # noqa: ARG002
        """Return whether the rate of ``period`` is reserved under ``name``; sent once only, however often called.

        NSI has no way to ask for a path apart from another one: a look says what it crosses.

        Raises:
            ProviderRefused: it cannot be had.
            AnswerLost: it was sent, and nothing is there yet; it will not be sent again.
            ProviderUnavailable: to be tried again with the same name.
            ProviderDenied: our credentials are not accepted.
        """
        if period.rate_bps % MBPS or not period.rate_bps:
            raise ProviderRefused(name, f"{period.rate_bps:,} bit/s is not a positive whole number of Mbit/s")
        self._wanted[name] = period
        there = self._found(name)
        if there is None:
            if name in self._sent:
                raise AnswerLost("POST /reservations", "not answered, and not there; it is not asked again")
            reply = self._answered("POST", "/reservations", reserve_body(name, period, self._settings), sent=name)
            try:
                self._ids[name] = accepted(reply.text)
            except Unclear as unclear:
                raise AnswerLost(reply.request, f"is unclear ({unclear}): {reply.shown}") from None
            return False
        if there.state is PurchaseState.FAILED:
            raise ProviderRefused(name, there.reason or "the aggregator gives no reason")
        return there.state is not PurchaseState.ASKED

    def change(self, name: str, period: Period) -> Period:
        """Return ``period``, if it needs no more than is reserved: begin and end are ours alone.

        Raises:
            ProviderRefused: it needs more.
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """
        there = self._found(name)
        if there is None or there.state in {PurchaseState.ENDED, PurchaseState.FAILED}:
            raise ProviderRefused(name, "there is no such connection, or not any more")
        has_bps = period.rate_bps if there.rate_bps is None else there.rate_bps
        if period.rate_bps > has_bps:
            more = f"{period.rate_bps // MBPS} Mbit/s, and {has_bps // MBPS} are reserved"
            raise ProviderRefused(name, f"it would need {more}: what is reserved through the proxy cannot grow")
        self._wanted[name] = Period(period.start_us, period.end_us, has_bps)
        return self._wanted[name]

    def tend(self, name: str, period: Period) -> None:
        """Have it built, once its begin has come.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """
        self._wanted[name] = period
        if period.start_us <= self._now_us() < period.end_us:
            there = self._found(name)
            if there is not None and there.state is PurchaseState.RESERVED:
                self._told(there, "provision")

    def release(self, name: str) -> bool:
        """Return whether nothing is reserved under ``name``; what is built is taken down first, and then terminated.

        What the networks have not decided on can neither be used nor terminated, and may stay so for ever.

        Raises:
            ProviderUnavailable: to be tried again; or it is still there, longer than both a decision and building take.
            ProviderDenied: our credentials are not accepted.
        """
        live = [one for one in self._all(name) if one.state in _LIVE]
        for there in live:
            if there.state is PurchaseState.UP:
                self._told(there, "release")
            elif there.state in {PurchaseState.RESERVED, PurchaseState.FAILED}:
                self._told(there, "")
        if not live:
            for kept in (self._ids, self._wanted, self._leaving_us):
                kept.pop(name, None)
            return True
        settings, now_us = self._settings, self._now_us()
        if now_us >= self._leaving_us.setdefault(name, now_us) + settings.settle_us + settings.deploy_us:
            still = f"{live[0].connection_id} is still {live[0].state}, long after it was to be given back"
            raise ProviderUnavailable(f"release of {name}", f"{still} (its aggregator's operators can terminate it)")
        return False

    def status(self, name: str) -> CircuitStatus:
        """Return what is reserved under ``name``.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """
        there = self._found(name)
        if there is None:
            return CircuitStatus(PurchaseState.FAILED, None, "the aggregator has no connection of this name")
        if there.state is PurchaseState.FAILED:
            return CircuitStatus(there.state, None, there.reason or "the aggregator gives no reason", refused=True)
        if there.state in {PurchaseState.ASKED, PurchaseState.ENDED}:
            return CircuitStatus(there.state, None, there.reason)
        ends = {self._settings.source_stp, self._settings.dest_stp}
        route = tuple(dict.fromkeys(stp for part in there.segments for stp in part.stps if stp not in ends))
        return CircuitStatus(there.state, None, there.reason, lacks=self._lacking(name, there), route=route)

    def free_bps(self, start_us: int, end_us: int) -> int | None:  # noqa: ARG002 - the interface's
        """Return None: NSI says what it has only by reserving it."""
        return None

    def _lacking(self, name: str, there: NsiConnection) -> str:
        """Return what of the rate is not reserved in each network, in words; empty if all of it is."""
        wanted = self._wanted.get(name)
        if wanted is None:
            return ""
        parts = [("in all", there.rate_bps), *((f"in {one.network}", one.rate_bps) for one in there.segments)]
        short = [f"{has // MBPS} {where}" for where, has in parts if has is not None and has < wanted.rate_bps]
        unsaid = [where for where, has in parts if has is None]
        asked = f"of {wanted.rate_bps // MBPS} Mbit/s are reserved"
        said = [f"{', '.join(short)} {asked}"] if short else []
        return "; ".join((*said, *(f"nobody says what is reserved {where}" for where in unsaid)))

    def _told(self, there: NsiConnection, what: str) -> None:
        """Ask for the next step of a connection; to ask again is fine, and that it is elsewhere by now too."""
        path = f"/reservations/{quote(there.connection_id, safe='')}"
        method, path = ("POST", f"{path}/{what}") if what else ("DELETE", path)
        reply = self._answered(method, path, called_back(self._settings), fine=frozenset({404, 409}))
        log.info("provider.told", connection=there.connection_id, step=what or "terminate", status=reply.status)

    def _found(self, name: str) -> NsiConnection | None:
        """Return the connection of a purchase with its parts; one that is not over, if there are several.

        Its id is only where to look first: by which name it was asked for says whose it is.
        """
        known = self._ids.get(name)
        if known is not None:
            path = f"/reservations/{quote(known, safe='')}?detail=full"
            reply = self._answered("GET", path, fine=frozenset({404}))
            there = self._understood(reply, nsi_connection) if reply.done else None
            if there is not None and there.global_id == global_id(name):
                return there
            del self._ids[name]
        found = self._all(name)
        there = next((one for one in found if one.state in _LIVE), found[0] if found else None)
        if there is not None:
            self._ids[name] = there.connection_id
        return there

    def _all(self, name: str) -> list[NsiConnection]:
        """Return all connections that were asked for by the name of a purchase."""
        wanted = global_id(name)
        reply = self._answered("GET", "/reservations?detail=full")
        return [one for one in self._understood(reply, nsi_connections) if one.global_id == wanted]

    def _understood(self, reply: Reply, parse: Callable[[str], T]) -> T:
        try:
            return parse(reply.text)
        except Unclear as unclear:
            raise reply.unclear(str(unclear)) from None

    def _answered(
        self,
        method: str,
        path: str,
        body: dict[str, object] | None = None,
        *,
        sent: str = "",
        fine: frozenset[int] = frozenset(),
    ) -> Reply:
        """Return an answer that says that it is done, or has one of the statuses that are ``fine``.

        Args:
            method: of HTTP.
            path: of the question.
            body: what is sent.
            sent: the purchase that this asks for, which must not be asked for twice.
            fine: statuses that mean something to who asks.

        Raises:
            ProviderDenied: our credentials are not accepted.
            AnswerLost: it asks for a purchase, and nobody knows what became of it.
            ProviderUnavailable: any other answer, or none.
        """
        try:
            reply = self._session.sent(method, path, body)
        except AnswerLost as lost:
            if sent:
                self._sent.add(sent)
                raise
            raise ProviderUnavailable(lost.request, lost.problem) from None
        if reply.status in {401, 403}:
            cure = "look after the certificate or token, and who the proxy lets in"
            raise ProviderDenied(
                reply.request, f"{reply.status}, {error_reason(reply.text) or 'we are not let in'}", cure
            )
        if sent and (reply.done or reply.status >= 500):  # of 502 the aggregator may have heard
            self._sent.add(sent)
        if reply.done or reply.status in fine:
            return reply
        problem = f"{reply.status}, {error_reason(reply.text) or reply.shown or 'without a reason'}"
        if sent and reply.status >= 500:
            raise AnswerLost(reply.request, problem)
        raise ProviderUnavailable(reply.request, problem)
