"""Buys a circuit from OSCARS 1.2, and believes only what it reads back.

OSCARS refuses by a bare 500, moves times without a word, and says ``success`` where it did nothing. So each change is
read back and compared, and a reason is fetched where none was given. Every method first looks at what is there, so it
may be called again after any failure, and never needs to know the time.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random
from urllib.parse import quote

import structlog

from controller.plan.purchases import Period, PurchaseState, Terms
from controller.providers.answers import Unclear, decoded
from controller.providers.errors import (
    AnswerLost,
    NameTaken,
    NotInForce,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from controller.providers.http_session import Reply
from controller.providers.oscars_change import MINIMUM_US, OscarsChanges
from controller.providers.oscars_compare import BEGIN_NOTICE_US, END_NOTICE_US, compare
from controller.providers.oscars_session import OscarsSession
from controller.providers.oscars_values import SECOND_US, OscarsPeriod, OscarsSettings, oscars_period
from controller.providers.oscars_ways import OscarsWays
from controller.providers.oscars_wire import OscarsConnection, l2vpn, oscars_connection, verdict
from controller.providers.provider import CircuitStatus

log = structlog.get_logger()

GAP_US = SECOND_US  # OSCARS compares closed intervals of whole seconds: what touches is refused

_NAME = re.compile("[a-zA-Z][a-zA-Z0-9_-]{3,11}")
_LETTERS = "CDFGHJKMNPRTWXYZ"
_SYMBOLS = "234679" + _LETTERS  # without those that are mistaken for each other


def oscars_terms(settings: OscarsSettings) -> Terms:
    """Return what OSCARS sells.

    The minimum is longer than its own by the notice: a begin that is moved must not make the period too short.
    """
    return Terms(
        lead_us=BEGIN_NOTICE_US + settings.deploy_us,
        tail_us=0,
        min_duration_us=MINIMUM_US + BEGIN_NOTICE_US,
        gap_us=GAP_US,
        granularity_bps=10**6,
        tick_us=SECOND_US,
        begin_notice_us=BEGIN_NOTICE_US,
        end_notice_us=END_NOTICE_US,
        settle_us=settings.settle_us,
    )


class OscarsProvider:
    """One circuit, bought from one OSCARS over its L2VPN API v2 and its modify calls.

    A begin that OSCARS moved by up to its notice is taken for what was asked, for the lead of the terms has room for
    it; so is an end that it moved by up to a minute, since the circuit is then there for longer. Whatever else differs
    is ``NotInForce``.

    Args:
        settings: of the circuit.
        now_us: the calendar: Unix time, microseconds. OSCARS shows nothing of what its routers are being told, but the
            time does.
    """

    def __init__(self, settings: OscarsSettings, now_us: Callable[[], int]) -> None:
        self._settings = settings
        self._now_us = now_us
        # Since our first look: what an earlier process, or who led before us, has asked for may still be carried out.
        self._since_us: int | None = None
        self._own: set[str] = set()
        self._unanswered_us: dict[str, int] = {}
        self._session = OscarsSession(settings.url, settings.token, settings.timeout_s)
        self._ways = OscarsWays(self._session, settings)
        self._changes = OscarsChanges(self._session, settings, self._ours, now_us)
        self._lacks: dict[str, tuple[Period, str]] = {}  # by name, for which period nothing more need be asked

    def close(self) -> None:
        """Close the connections to the server; nothing is given back."""
        self._session.close()

    @property
    def terms(self) -> Terms | None:
        """Return what OSCARS sells."""
        return oscars_terms(self._settings)

    @property
    def schedule(self) -> tuple[Period, ...]:
        """Return nothing: what OSCARS sells, it carries."""
        return ()

    def new_name(self, random: Random) -> str:
        """Return a name as OSCARS makes them: a letter, and three of ``234679CDFGHJKMNPRTWXYZ``."""
        return random.choice(_LETTERS) + "".join(random.choices(_SYMBOLS, k=3))

    def reserve(self, name: str, period: Period, apart: frozenset[str] = frozenset()) -> bool:
        """Buy ``period`` under ``name``; once only, however often it is called.

        What is there already is looked for first: OSCARS' ``new`` would replace it, even if it is somebody else's. It
        is sent once: a repetition that waits for the same lock makes two of one name, which OSCARS does not survive.

        Raises:
            ProviderRefused: it cannot be had.
            NameTaken: the name is somebody else's, or was used before.
            AnswerLost: it was sent, and nothing is there yet; it will not be sent again.
            ProviderUnavailable: to be tried again with the same name.
            ProviderDenied: our credentials are not accepted.
            NotInForce: something was bought, and ``found`` is what.
        """
        asked = _edge(name, period)
        there = self._ours(name)
        if there is None:
            if name in self._unanswered_us:
                raise AnswerLost("POST /protected/l2vpn/new", "not answered, and not there; it is not asked again")
            self._own.add(name)
            self._put("POST", "/protected/l2vpn/new", name, asked, self._ways.found(name, asked, apart))
        elif there.state is PurchaseState.ENDED:
            raise NameTaken(name, "a circuit of this name is over, and a name is used once")
        else:
            compare(name, asked, there, begun=False)
        return True

    def tend(self, name: str, period: Period) -> None:
        """Do nothing: OSCARS builds, and takes down, by the time."""

    def change(self, name: str, period: Period) -> Period:
        """Make of the purchase what ``period`` says, and return what it then is at OSCARS.

        What has begun keeps its start. Until the routers carry it, OSCARS cannot move its end.

        Raises:
            ProviderRefused: it cannot be had, or there is no such circuit.
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
            NotInForce: confirmed, and yet not so.
        """
        asked = _edge(name, period)
        there = self._ours(name)
        if there is None or there.state is PurchaseState.ENDED or there.period is None:
            raise ProviderRefused(name, "there is no such circuit, or not any more")
        if there.period == asked.period():
            return there.period
        what = f"change of {name}"
        if there.begun:
            if there.state is PurchaseState.DEPLOYING:  # what is wished now would not reach the routers
                raise ProviderUnavailable(what, "the routers are being told of the change before")
            return self._changes.change(name, asked, there.period, there.path)
        if there.period.start_us <= self._now_us():
            raise ProviderUnavailable(what, "the routers are being told of it for the first time")
        asked_us = self._unanswered_us.get(name, None if name in self._own else self._since_us)
        if asked_us is not None and self._now_us() < asked_us + self._settings.settle_us:
            raise ProviderUnavailable(what, "what was asked before may still be carried out")
        self._unanswered_us.pop(name, None)
        # Its own share counts as taken where paths are sought, so it keeps its path; validation sees its own.
        return self._put(
            "PUT", "/protected/l2vpn/replace", name, asked, there.path or self._ways.found(name, asked, frozenset())
        )

    def release(self, name: str) -> bool:
        """Return that the circuit is given back; that it is gone already, or somebody else's, is fine.

        OSCARS deletes what has not begun, and archives and dismantles what has: for us it is gone either way.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
            NotInForce: confirmed, and yet still there.
        """
        if not self._stands(there := self._look(name)):
            return True
        reply = self._session.call("DELETE", f"/protected/l2vpn/release/{quote(name, safe='')}")
        if not reply.done and not _says_gone(reply):
            raise ProviderUnavailable(reply.request, f"{reply.status} without a reason")
        if self._stands(there := self._look(name)):
            raise NotInForce(name, None, there.period if there else None, "it is still there")
        self._lacks.pop(name, None)
        log.info("provider.released", purchase=name)
        return True

    def status(self, name: str) -> CircuitStatus:
        """Return what OSCARS has under ``name``.

        While it rebuilds a circuit for another rate that is DEPLOYING: it may carry no more than the smaller of both.

        Raises:
            ProviderUnavailable: to be tried again.
            ProviderDenied: our credentials are not accepted.
        """
        there = self._look(name)
        if there is None:
            return CircuitStatus(PurchaseState.FAILED, None, "OSCARS has no circuit of this name")
        if there.ports != self._settings.ports:
            return CircuitStatus(PurchaseState.FAILED, None, "OSCARS has a circuit of this name between other ports")
        shown = self._by_the_time(CircuitStatus(there.state, there.period, there.reason))
        if shown.state in {PurchaseState.RESERVED, PurchaseState.DEPLOYING, PurchaseState.UP}:
            ends = {self._settings.a_end.device, self._settings.z_end.device}
            route = tuple(urn for urn in there.path if urn not in ends)
            return replace(shown, lacks=self._lacking(name, there), route=route)
        return shown

    def free_bps(self, start_us: int, end_us: int) -> int | None:
        """Return what OSCARS believes to be free between both ends, bit/s: it counts no holds, and equal rates once.

        Raises:
            ProviderUnavailable: it does not say.
            ProviderDenied: our credentials are not accepted.
        """
        return self._ways.free_bps(start_us, end_us)

    def _lacking(self, name: str, there: OscarsConnection) -> str:
        """Return what of the rate is not kept between its routers; asked for once for what is sold, not at each look.

        Raises:
            ProviderUnavailable: OSCARS does not say.
            ProviderDenied: our credentials are not accepted.
        """
        known = self._lacks.get(name)
        if there.period is not None and (known is None or known[0] != there.period):
            known = self._lacks[name] = there.period, self._ways.lacking(there)
        return known[1] if known is not None else ""

    def _by_the_time(self, shown: CircuitStatus) -> CircuitStatus:
        """Return what is so: OSCARS shows a circuit as it was until the routers have answered."""
        now_us, period = self._now_us(), shown.period
        if period is None or shown.state not in {PurchaseState.RESERVED, PurchaseState.UP}:
            return shown
        if period.end_us <= now_us:
            state = PurchaseState.ENDED if shown.state is PurchaseState.RESERVED else PurchaseState.DEPLOYING
            return CircuitStatus(state, period, "its end is over")
        if shown.state is PurchaseState.RESERVED and period.start_us <= now_us:
            return CircuitStatus(PurchaseState.DEPLOYING, period, "its begin is over; the routers are being told")
        return shown

    def _look(self, name: str) -> OscarsConnection | None:
        """Return what OSCARS has under a name, whoever owns it.

        Raises:
            ProviderUnavailable: it does not say, or not clearly.
            ProviderDenied: our credentials are not accepted.
        """
        if self._since_us is None:
            self._since_us = self._now_us()
        try:
            reply = self._session.call("GET", f"/api/l2vpn/get/{quote(name, safe='')}")
        except AnswerLost as lost:  # nothing is lost by a question
            raise ProviderUnavailable(lost.request, lost.problem) from None
        if _says_gone(reply):
            return None
        try:
            return oscars_connection(decoded(reply.text))
        except Unclear as why:
            raise reply.unclear(str(why)) from None

    def _stands(self, there: OscarsConnection | None) -> bool:
        """Return whether this is a circuit of ours that is not over."""
        return there is not None and there.ports == self._settings.ports and there.state is not PurchaseState.ENDED

    def _ours(self, name: str) -> OscarsConnection | None:
        """Return our circuit of this name, without what a lost or refused request of ours may still hold.

        OSCARS answers with what is held, in force or not, before what is reserved; and counts it against everybody.

        Raises:
            NameTaken: the name is somebody else's.
            ProviderUnavailable: OSCARS does not say.
            ProviderDenied: our credentials are not accepted.
        """
        there = self._look(name)
        if there is not None and there.held and there.ports == self._settings.ports:
            if self._now_us() < self._unanswered_us.get(name, -self._settings.settle_us) + self._settings.settle_us:
                raise AnswerLost(f"hold of {name}", "it waits to be committed")
            self._clear(name)
            there = self._look(name)
        if there is not None and there.ports != self._settings.ports:
            raise NameTaken(name, "the name is that of a circuit between other ports")
        return there

    def _clear(self, name: str) -> None:
        """Drop what is held under a name, and nothing that is reserved.

        Raises:
            ProviderUnavailable: it was not done.
            ProviderDenied: our credentials are not accepted.
        """
        reply = self._session.call("GET", f"/protected/held/clear/{quote(name, safe='')}")
        if not reply.done:
            raise ProviderUnavailable(reply.request, f"{reply.status} without a reason")

    def _put(self, method: str, path: str, name: str, asked: OscarsPeriod, way: tuple[str, ...]) -> Period:
        """Create or replace a circuit, and return what it then is.

        No answer is no failure: OSCARS may have acted, or may yet, so what is there decides.
        """
        body = l2vpn(name, asked, self._settings, way)
        lost: AnswerLost | None = None
        try:
            reply = self._session.call(method, path, body)
        except AnswerLost as error:
            lost = error
            self._unanswered_us[name] = self._now_us()
        else:
            if not reply.done:
                raise self._refusal(method, name, body, reply)
        try:
            period = compare(name, asked, self._ours(name), begun=False)
        except NotInForce:
            if lost is not None:
                raise lost from None
            raise
        self._unanswered_us.pop(name, None)
        log.info("provider.reserved", purchase=name, rate_bps=period.rate_bps, start_us=period.start_us)
        return period

    def _refusal(self, method: str, name: str, body: dict[str, object], refused: Reply) -> ProviderError:
        """Return why OSCARS refused a circuit, which it says on validation only; and let go of what it holds of it."""
        reply = self._session.call(method, "/api/l2vpn/validate", body)
        with suppress(ProviderError):  # it lapses by itself, after 15 minutes
            self._clear(name)
        try:
            valid, reason = verdict(decoded(reply.text), "valid", "message")
        except Unclear as why:
            return reply.unclear(str(why))
        if valid:
            return ProviderUnavailable(refused.request, f"{refused.status}, and validation finds nothing wrong")
        return ProviderRefused(name, reason or "OSCARS gives no reason")


def _says_gone(reply: Reply) -> bool:
    """Return whether OSCARS says that it has no such circuit: 404 without a word.

    Raises:
        ProviderUnavailable: it is a 404 with words: of what stands before OSCARS, or of a server without its API.
    """
    if reply.status == 404 and reply.text.strip():
        raise reply.unclear("OSCARS' own has no body")
    return reply.status == 404


def _edge(name: str, period: Period) -> OscarsPeriod:
    """Return a period in OSCARS' units.

    Raises:
        ProviderRefused: OSCARS has no way to say it, or to call it so.
    """
    if not _NAME.fullmatch(name):
        raise ProviderRefused(name, "a name at OSCARS is a letter, and 3 to 11 letters, digits, - or _")
    try:
        return oscars_period(period)
    except ValueError as error:
        raise ProviderRefused(name, str(error)) from None
