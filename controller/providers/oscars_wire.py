"""What we and OSCARS 1.2 say to each other: our values as its JSON, and its JSON as our values. Pure.

Source: the L2VPN API v2 and the modify calls of esnet/oscars 1.2.37. Its units are Mbit/s and seconds of Unix time.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import urlsplit

from controller.plan.purchases import Period, PurchaseState
from controller.providers.secrets import Secret

MBPS = 10**6
SECOND_US = 10**6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_US = 2_145_916_800 * SECOND_US  # 2038-01-01T00:00:00Z: OSCARS keeps times in 32 bits and shows none beyond this


@dataclass(frozen=True, slots=True)
class OscarsPort:
    """Where the circuit leaves OSCARS' network.

    Attributes:
        device: URN of the device.
        port: URN of the port, ``device:port``.
        vlan_vid: 1 to 4094; 0 for untagged.

    Raises:
        ValueError: the port is none of the device's, or there is no such VLAN.
    """

    device: str
    port: str
    vlan_vid: int

    def __post_init__(self) -> None:
        """Refuse what OSCARS would not find."""
        if not self.device or not self.port.startswith(f"{self.device}:"):
            raise ValueError(f'"{self.port}" is no port of "{self.device}", try "{self.device}:1/1/c9/1"')
        if not 0 <= self.vlan_vid <= 4094:
            raise ValueError(f"VLAN {self.vlan_vid} is outside 0..4094 (0 for untagged)")


@dataclass(frozen=True, slots=True)
class OscarsSettings:
    """One circuit at one OSCARS.

    Attributes:
        url: of the server, without a path, as ``https://oscars.example:8201``.
        a_end: one end.
        z_end: the other.
        mtu_bytes: 1500 to 9000.
        token: access token, sent as bearer (RFC 6750).
        deploy_us: how long it takes from a begin until the routers carry it, microseconds. Its own loops take 3 s
            each, and each of up to 5 tries on the routers 30 s.
        settle_us: how long a request without an answer may still be carried out, microseconds. OSCARS holds one lock
            while it tells routers of any circuit: 5 tries with 30 s between them, and more if there are more circuits.
        timeout_s: how long to wait for one answer. A commit computes paths and locks all reservations.

    Raises:
        ValueError: a value that OSCARS could not accept.
    """

    url: str
    a_end: OscarsPort
    z_end: OscarsPort
    mtu_bytes: int
    token: Secret
    deploy_us: int = 120 * SECOND_US
    settle_us: int = 300 * SECOND_US
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what could not work."""
        url = urlsplit(self.url)
        if url.scheme not in {"http", "https"} or not url.hostname or url.username is not None:
            raise ValueError('need the URL of an OSCARS server without user and password, try "https://oscars:8201"')
        if self.a_end == self.z_end:
            raise ValueError(f"both ends of the circuit are VLAN {self.a_end.vlan_vid} of {self.a_end.port}")
        if not 1500 <= self.mtu_bytes <= 9000:
            raise ValueError(f"OSCARS carries an MTU of 1500 to 9000 bytes, got {self.mtu_bytes}")
        if self.deploy_us < 0 or self.timeout_s <= 0:
            raise ValueError(f"need a time to wait, got {self.deploy_us} us and {self.timeout_s:g} s")

    @property
    def ports(self) -> frozenset[tuple[str, int]]:
        """Return port and VLAN of both ends: what tells our circuits from others' of the same name."""
        return frozenset((end.port, end.vlan_vid) for end in (self.a_end, self.z_end))


@dataclass(frozen=True, slots=True)
class OscarsPeriod:
    """A period in OSCARS' units."""

    begin_s: int
    end_s: int
    rate_mbps: int

    def period(self) -> Period:
        """Return it in ours."""
        return Period(self.begin_s * SECOND_US, self.end_s * SECOND_US, self.rate_mbps * MBPS)


@dataclass(frozen=True, slots=True)
class OscarsConnection:
    """What OSCARS has under a name.

    Attributes:
        state: where it stands.
        reason: why, in OSCARS' words.
        period: what is sold; None where OSCARS' times make none, as for what was modified and is archived.
        held: it is only held: in the server's memory, and until it lapses.
        begun: it is, or was, in the routers, or on the way there: only its end and its rate may change.
        drops_excess: what is above the rate is dropped.
        ports: port and VLAN of each end.
        path: what is reserved between its routers, as device, port, port, device, ...; empty if nothing is.
    """

    state: PurchaseState
    reason: str
    period: Period | None
    held: bool
    begun: bool
    drops_excess: bool
    ports: frozenset[tuple[str, int]]
    path: tuple[str, ...]


class Unclear(Exception):
    """An answer that cannot be understood; the text says what was missing."""


def oscars_period(period: Period) -> OscarsPeriod:
    """Return a period in OSCARS' units: its rate exactly, its times outwards to whole seconds.

    Raises:
        ValueError: the rate is no whole number of Mbit/s, or OSCARS could not say the end.
    """
    rate_mbps, rest_bps = divmod(period.rate_bps, MBPS)
    if rest_bps or not rate_mbps:
        raise ValueError(f"{period.rate_bps:,} bit/s is not a positive whole number of Mbit/s")
    if period.end_us > LAST_US:
        raise ValueError("OSCARS has no times after 2038-01-01T00:00:00Z")
    return OscarsPeriod(period.start_us // SECOND_US, -(-period.end_us // SECOND_US), rate_mbps)


def l2vpn(name: str, wanted: OscarsPeriod, settings: OscarsSettings, path: tuple[str, ...]) -> dict[str, object]:
    """Return the ``L2VPN`` of a circuit along a path.

    ``excessAction`` is DROP, not OSCARS' default SCAVENGER: it is stored and shown, and the routers are told to keep
    what is above the rate.
    """
    ends = (settings.a_end, settings.z_end)
    return {
        "name": name,
        "meta": {"description": f"Headway {name}"},
        "schedule": {"beginning": wanted.begin_s, "ending": wanted.end_s},
        "qos": {"mode": "GUARANTEED", "excessAction": "DROP", "bandwidth": wanted.rate_mbps},
        "tech": {"mode": "AUTOMATIC", "flavor": "VPLS", "mtu": settings.mtu_bytes, "macsec": False},
        "endpoints": [
            {"device": end.device, "port": end.port, "vlan": end.vlan_vid, "tagged": end.vlan_vid != 0} for end in ends
        ],
        "bundles": _bundles(settings.a_end.device, settings.z_end.device, path),
    }


def _bundles(a_device: str, z_device: str, path: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the pipe between two devices; none within one device.

    OSCARS never fills in a path that is empty: such a pipe takes nothing of its backbone, and guarantees nothing there.

    Without a PRIMARY path of its own a bundle makes no pipe, and the commit finds the circuit unconnected.
    """
    if a_device == z_device:
        return []
    return [
        {
            "name": f"{a_device}---{z_device}",
            "a": a_device,
            "z": z_device,
            "protection": "NONE",
            "constraints": {"include": [], "exclude": []},
            "lsps": [{"path": [_waypoint(urn) for urn in path], "role": "PRIMARY"}],
        }
    ]


def _waypoint(urn: str) -> dict[str, object]:
    """Return one step of a path: a port is called by its device too."""
    return {"urn": urn, "type": "PORT" if ":" in urn else "DEVICE"}


def path_request(wanted: OscarsPeriod, settings: OscarsSettings) -> dict[str, object]:
    """Return the question which way between both ends has a rate free; one without ``include`` is refused."""
    ends = [settings.a_end.device, settings.z_end.device]
    rates = {"azBw": wanted.rate_mbps, "zaBw": wanted.rate_mbps}
    interval = {"beginning": wanted.begin_s, "ending": wanted.end_s}
    return {"interval": interval, "a": ends[0], "z": ends[1], **rates, "include": ends, "exclude": []}


def path_found(answer: dict[str, object]) -> tuple[str, ...]:
    """Return the way that has the rate free; empty if none has.

    Raises:
        Unclear: it is no way.
    """
    if answer.get("fits") is None:
        return ()
    return _urns(_object(answer["fits"], "fits").get("azEro"))


def _urns(steps: object) -> tuple[str, ...]:
    if not isinstance(steps, list):
        raise Unclear("a path is no list")
    return tuple(_text(_object(step, "a step of a path"), "urn") for step in steps)


def _path(bundles: object) -> tuple[str, ...]:
    """Return the path of the first pipe; empty if there is none."""
    if not isinstance(bundles, list):
        raise Unclear("no bundles")
    lsps = [lsp for bundle in bundles[:1] for lsp in _listed(_object(bundle, "a bundle").get("lsps"))]
    primary = [_object(lsp, "an LSP") for lsp in lsps]
    return next((_urns(lsp.get("path")) for lsp in primary if lsp.get("role") == "PRIMARY"), ())


def _listed(value: object) -> list[object]:
    if not isinstance(value, list):
        raise Unclear("no LSPs")
    return value


def decoded(text: str) -> dict[str, object]:
    """Return a JSON object; its decimal fractions exactly.

    Raises:
        Unclear: it is none.
    """
    try:
        value: object = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        raise Unclear("not JSON") from None
    return _object(value, "the answer")


def found(answer: dict[str, object]) -> OscarsConnection:
    """Return what an ``L2VPN`` says; fields that nobody asked for are ignored.

    Raises:
        Unclear: a field is missing, or is not what it should be.
    """
    status = _object(answer.get("status"), "status")
    phase, state = _text(status, "phase"), _text(status, "state")
    deployment, intent = _text(status, "deploymentState"), _text(status, "deploymentIntent")
    standing, reason = _standing(phase, state, deployment, intent)
    qos = _object(answer.get("qos"), "qos")
    return OscarsConnection(
        state=standing,
        reason=reason,
        period=_period(_object(answer.get("schedule"), "schedule"), _whole(qos, "bandwidth") * MBPS),
        held=phase == "HELD",
        begun=state == "ACTIVE" or deployment != "UNDEPLOYED" or intent != "SHOULD_BE_UNDEPLOYED",
        drops_excess=qos.get("excessAction") == "DROP",
        ports=_ports(answer.get("endpoints")),
        path=_path(answer.get("bundles")),
    )


def verdict(answer: dict[str, object], said: str, why: str) -> tuple[bool, str]:
    """Return yes or no, and why: ``valid`` and ``message``, or ``success`` and ``explanation``.

    Raises:
        Unclear: there is no yes or no.
    """
    yes, reason = answer.get(said), answer.get(why)
    if not isinstance(yes, bool):
        raise Unclear(f"no {said}")
    return yes, " ".join(reason.split()) if isinstance(reason, str) else ""


def time_us(value: object) -> int:
    """Return a time as OSCARS writes it, in Unix microseconds: seconds, decimal seconds or ISO 8601.

    >>> time_us(1_767_225_600), time_us(Decimal("1767225600.250000000")), time_us("2026-01-01T00:00:00.25Z")
    (1767225600000000, 1767225600250000, 1767225600250000)

    Raises:
        Unclear: it is none of them.
    """
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and 0 <= value < 10**11:  # year 5138
        return int(value * SECOND_US)
    if isinstance(value, str):
        try:
            return (datetime.fromisoformat(value) - _EPOCH) // timedelta(microseconds=1)
        except (ValueError, TypeError):  # TypeError: it has no offset, so it is no moment
            pass
    raise Unclear("a time is neither a number of seconds nor ISO 8601 with an offset")


def _standing(phase: str, state: str, deployment: str, intent: str) -> tuple[PurchaseState, str]:
    """Return where a circuit stands, and why.

    RESERVED says that it is sold, not that it carries traffic: that is DEPLOYED, and not to be rebuilt.

    Raises:
        Unclear: a phase that OSCARS 1.2 does not have.
    """
    said = f"OSCARS says {phase}, {state}, {deployment}, {intent}"
    if phase in {"DESIGN", "HELD"}:
        return PurchaseState.ASKED, said
    if phase == "ARCHIVED":
        return PurchaseState.ENDED, said
    if phase != "RESERVED":
        raise Unclear(f'phase is "{phase}"')
    if state == "FAILED" or deployment.endswith("_FAILED"):
        return PurchaseState.FAILED, said
    if deployment == "DEPLOYED" and intent == "SHOULD_BE_DEPLOYED":
        return PurchaseState.UP, ""
    if deployment == "UNDEPLOYED" and intent == "SHOULD_BE_UNDEPLOYED":
        return (PurchaseState.ENDED, said) if state == "FINISHED" else (PurchaseState.RESERVED, "")
    return PurchaseState.DEPLOYING, said


def _period(schedule: dict[str, object], rate_bps: int) -> Period | None:
    """Return what is sold; None where the times make no period.

    Raises:
        Unclear: one of them is no time.
    """
    start_us, end_us = time_us(schedule.get("beginning")), time_us(schedule.get("ending"))
    return Period(start_us, end_us, rate_bps) if start_us < end_us else None


def _ports(endpoints: object) -> frozenset[tuple[str, int]]:
    """Return port and VLAN of each endpoint.

    Raises:
        Unclear: it is no list of endpoints.
    """
    if not isinstance(endpoints, list):
        raise Unclear("no endpoints")
    ends = [_object(end, "an endpoint") for end in endpoints]
    return frozenset((_text(end, "port"), _whole(end, "vlan")) for end in ends)


def _object(value: object, what: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        Unclear: it is something else.
    """
    if not isinstance(value, dict):
        raise Unclear(f"{what} is no object")
    return value


def _text(fields: dict[str, object], name: str) -> str:
    """Return a field that is text.

    Raises:
        Unclear: it is missing, or something else.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise Unclear(f"{name} is no text")
    return value


def _whole(fields: dict[str, object], name: str) -> int:
    """Return a field that is a whole number, not negative.

    Raises:
        Unclear: it is missing, or something else.
    """
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Unclear(f"{name} is no whole number")
    return value
