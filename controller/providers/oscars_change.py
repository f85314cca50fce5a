"""Changes of what is in OSCARS' routers already: only its end and its rate, and each with a trap of its own."""

from collections.abc import Callable

import structlog

from controller.plan.purchases import Period
from controller.providers.answers import Unclear, decoded
from controller.providers.errors import ProviderRefused, ProviderUnavailable
from controller.providers.oscars_compare import BEGIN_NOTICE_US, compare
from controller.providers.oscars_session import OscarsSession
from controller.providers.oscars_values import SECOND_US, OscarsPeriod, OscarsSettings, oscars_period
from controller.providers.oscars_wire import OscarsConnection, l2vpn, verdict

log = structlog.get_logger()

MINIMUM_US = 15 * 60 * SECOND_US  # resv.minimum-duration
_Step = tuple[str, dict[str, object]]  # path and body of a modify call


class OscarsChanges:
    """Changes circuits that have begun.

    Args:
        session: with the server.
        settings: of the circuit.
        ours: returns our circuit of a name as it is at OSCARS.
        now_us: Unix time, microseconds.
    """

    def __init__(
        self,
        session: OscarsSession,
        settings: OscarsSettings,
        ours: Callable[[str], OscarsConnection | None],
        now_us: Callable[[], int],
    ) -> None:
        self._session = session
        self._settings = settings
        self._ours = ours
        self._now_us = now_us

    def change(self, name: str, asked: OscarsPeriod, now: Period, way: tuple[str, ...]) -> Period:
        """Change end and rate of a circuit that has begun, and return what it then is; only what differs is sent.

        What takes less goes first: an end further away may only be free at the smaller rate, and the other way round.
        OSCARS moves an end before it looks whether that is free, so what takes more is validated before, and after it,
        for somebody may have been quicker; then it is undone.
        """
        wanted = asked.period()
        more = wanted.rate_bps > now.rate_bps or wanted.end_us > now.end_us
        if more and (why := self._conflict(name, asked, now, way)):
            raise ProviderRefused(name, why)
        period = self._send_changes(name, asked, now)
        if more and (why := self._conflict(name, asked, now, way)):
            self._send_changes(name, oscars_period(now), period)
            raise ProviderRefused(name, f"somebody was quicker, so it is undone: {why}")
        return period

    def _conflict(self, name: str, asked: OscarsPeriod, now: Period, way: tuple[str, ...]) -> str:
        """Return why a circuit cannot become what is asked; empty if it can. It validates nothing under 15 minutes."""
        least_s = (self._now_us() + MINIMUM_US + BEGIN_NOTICE_US) // SECOND_US + 1
        whole = OscarsPeriod(now.start_us // SECOND_US, max(asked.end_s, least_s), asked.rate_mbps)
        reply = self._session.call("PUT", "/api/l2vpn/validate", l2vpn(name, whole, self._settings, way))
        try:
            valid, reason = verdict(decoded(reply.text), "valid", "message")
        except Unclear as why:
            raise reply.unclear(str(why)) from None
        return "" if valid else reason or "OSCARS gives no reason"

    def _send_changes(self, name: str, asked: OscarsPeriod, now: Period) -> Period:
        """Send what differs, and return what the circuit then is."""
        rate: _Step = ("/protected/modify/bandwidth", {"bandwidth": asked.rate_mbps})
        end: _Step = ("/protected/modify/schedule", {"type": "END", "timestamp": asked.end_s})
        wanted = asked.period()
        todo = [rate] if wanted.rate_bps != now.rate_bps else []
        if wanted.end_us != now.end_us:
            todo = [*todo, end] if wanted.rate_bps < now.rate_bps else [end, *todo]
        for path, fields in todo:
            self._tell(name, path, {"connectionId": name, **fields})
        period = compare(name, asked, self._ours(name), begun=True)
        log.info("provider.changed", purchase=name, rate_bps=period.rate_bps, end_us=period.end_us)
        return period

    def _tell(self, name: str, path: str, body: dict[str, object]) -> None:
        """Ask for one modification.

        Raises:
            ProviderRefused: OSCARS says no, and why.
            ProviderUnavailable: it cannot do it now.
            ProviderDenied: our credentials are not accepted.
        """
        reply = self._session.call("POST", path, body)
        if not reply.done:
            why = f"{reply.status} without a reason; OSCARS cannot move the end of what was never in the routers"
            raise ProviderUnavailable(reply.request, why)
        try:
            success, reason = verdict(decoded(reply.text), "success", "explanation")
        except Unclear as unclear:
            raise reply.unclear(str(unclear)) from None
        if not success:
            raise ProviderRefused(name, reason or "OSCARS gives no reason")
