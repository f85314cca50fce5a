"""Ways through OSCARS' backbone: found before a purchase, and compared with what is taken of it afterwards.

OSCARS computes no path of its own for what is bought by its L2VPN API, and an empty one takes nothing of its backbone.
"""

from controller.providers.answers import Unclear, decoded
from controller.providers.errors import AnswerLost, ProviderRefused, ProviderUnavailable
from controller.providers.http_session import Reply
from controller.providers.oscars_session import OscarsSession
from controller.providers.oscars_values import MBPS, SECOND_US, OscarsPeriod, OscarsSettings
from controller.providers.oscars_wire import (
    OscarsConnection,
    free_mbps,
    path_found,
    path_request,
    port_rates,
    widest_mbps,
)


class OscarsWays:
    """Asks one OSCARS about ways between the two ends of a circuit."""

    def __init__(self, session: OscarsSession, settings: OscarsSettings) -> None:
        self._session = session
        self._settings = settings
        self._ends = settings.a_end.device, settings.z_end.device

    def found(self, name: str, asked: OscarsPeriod, apart: frozenset[str]) -> tuple[str, ...]:
        """Return a way that has the rate free, one without ``apart`` if there is any; nothing within one device.

        Raises:
            ProviderRefused: there is none.
            ProviderUnavailable: OSCARS does not say.
            ProviderDenied: our credentials are not accepted.
        """
        if self._ends[0] == self._ends[1]:
            return ()
        settings = self._settings
        apart -= {*self._ends, *settings.include}
        for exclude in dict.fromkeys((frozenset(settings.exclude) | apart, frozenset(settings.exclude))):
            reply = self._asked("POST", "/api/pce/paths", path_request(asked, settings, exclude))
            try:
                way = path_found(decoded(reply.text))
            except Unclear as why:
                raise reply.unclear(str(why)) from None
            if way:
                return way
        limits = [f"over {', '.join(settings.include)}"] if settings.include else []
        limits += [f"without {', '.join(settings.exclude)}"] if settings.exclude else []
        between = f"no path from {self._ends[0]} to {self._ends[1]}"
        raise ProviderRefused(name, " ".join((between, *limits, f"has {asked.rate_mbps} Mbit/s free")))

    def lacking(self, there: OscarsConnection) -> str:
        """Return what is not kept between the routers of what is sold, in words; empty if all of it is.

        At each port of the path less must be free than the port has, by the rate at least: OSCARS counts equal rates
        of the same second once, and nothing of a path that it was not given.

        Raises:
            ProviderUnavailable: OSCARS does not say.
            ProviderDenied: our credentials are not accepted.
        """
        if self._ends[0] == self._ends[1] or there.period is None:
            return ""
        if not there.path:
            return f"nothing is reserved between {self._ends[0]} and {self._ends[1]}"
        asked = OscarsPeriod(there.period.start_us // SECOND_US, there.period.end_us // SECOND_US, 1)
        whole, free = self._rates("GET", "/api/topo/baseline", None), self._available(asked)
        rate_mbps = there.period.rate_bps // MBPS
        for port in (urn for urn in there.path if ":" in urn):
            if port not in whole or port not in free:
                return f"{port} is on its path, and not in the topology"
            kept_mbps = min(has - left for has, left in zip(whole[port], free[port], strict=True))
            if kept_mbps < rate_mbps:
                return f"at {port} {kept_mbps} of {rate_mbps} Mbit/s are reserved"
        return ""

    def free_bps(self, start_us: int, end_us: int) -> int:
        """Return what OSCARS believes to be free between both ends, bit/s.

        Raises:
            ProviderUnavailable: OSCARS does not say.
            ProviderDenied: our credentials are not accepted.
        """
        asked = OscarsPeriod(start_us // SECOND_US, -(-end_us // SECOND_US), 1)
        ports = (self._settings.a_end.port, self._settings.z_end.port)
        found_mbps = free_mbps(self._available(asked), ports)
        if self._ends[0] != self._ends[1]:
            reply = self._asked(
                "POST", "/api/pce/paths", path_request(asked, self._settings, frozenset(self._settings.exclude))
            )
            try:
                found_mbps = min(found_mbps, widest_mbps(decoded(reply.text)))
            except Unclear as why:
                raise reply.unclear(str(why)) from None
        return max(0, found_mbps) * MBPS

    def _available(self, asked: OscarsPeriod) -> dict[str, tuple[int, int]]:
        return self._rates("POST", "/api/topo/available", {"beginning": asked.begin_s, "ending": asked.end_s})

    def _rates(self, method: str, path: str, body: dict[str, object] | None) -> dict[str, tuple[int, int]]:
        reply = self._asked(method, path, body)
        try:
            return port_rates(decoded(reply.text))
        except Unclear as why:
            raise reply.unclear(str(why)) from None

    def _asked(self, method: str, path: str, body: dict[str, object] | None) -> Reply:
        """Return the answer to a question: nothing is lost by one that is not answered.

        Raises:
            ProviderUnavailable: it is not answered.
            ProviderDenied: our credentials are not accepted.
        """
        try:
            reply = self._session.call(method, path, body)
        except AnswerLost as lost:
            raise ProviderUnavailable(lost.request, lost.problem) from None
        if not reply.done:
            a_device, z_device = self._ends
            raise ProviderUnavailable(reply.request, f"{reply.status}; does OSCARS know {a_device} and {z_device}?")
        return reply
