"""What we and OSCARS 1.2 say to each other: our values as its JSON, and its JSON as our values. Pure.

Source: the L2VPN API v2 and the modify calls of esnet/oscars 1.2.37. Its units are Mbit/s and seconds of Unix time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from controller.plan.purchases import Period, PurchaseState
from controller.providers.answers import Unclear, object_of, text_of, whole_of
from controller.providers.oscars_refusals import condensed
from controller.providers.oscars_values import MBPS, SECOND_US, OscarsPeriod, OscarsSettings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def path_request(wanted: OscarsPeriod, settings: OscarsSettings, exclude: frozenset[str]) -> dict[str, object]:
    """Return the question which way between both ends has a rate free; one without ``include`` is refused."""
    a_device, z_device = settings.a_end.device, settings.z_end.device
    rates = {"azBw": wanted.rate_mbps, "zaBw": wanted.rate_mbps}
    interval = {"beginning": wanted.begin_s, "ending": wanted.end_s}
    over = {"include": [a_device, *settings.include, z_device], "exclude": sorted(exclude)}
    return {"interval": interval, "a": a_device, "z": z_device, **rates, **over}


def widest_mbps(answer: dict[str, object]) -> int:
    """Return what the widest way has free, the smaller of both directions; 0 if there is none.

    Raises:
        Unclear: it is no way.
    """
    if answer.get("widestSum") is None:
        return 0
    widest = object_of(answer["widestSum"], "widestSum")
    return min(whole_of(widest, "azAvailable"), whole_of(widest, "zaAvailable"))


def port_rates(answer: dict[str, object]) -> dict[str, tuple[int, int]]:
    """Return by port what it has, in and out, Mbit/s.

    Raises:
        Unclear: a port says something else.
    """
    ports = ((urn, object_of(port, urn)) for urn, port in answer.items())
    return {urn: (_signed(port, "ingressBandwidth"), _signed(port, "egressBandwidth")) for urn, port in ports}


def free_mbps(rates: dict[str, tuple[int, int]], ports: tuple[str, ...]) -> int:
    """Return what all of some ports have, Mbit/s; 0 if one of them is not there."""
    return min(min(rates.get(port, (0, 0))) for port in ports)


def path_found(answer: dict[str, object]) -> tuple[str, ...]:
    """Return the way that has the rate free; empty if none has.

    Raises:
        Unclear: it is no way.
    """
    if answer.get("fits") is None:
        return ()
    return _urns(object_of(answer["fits"], "fits").get("azEro"))


def _urns(steps: object) -> tuple[str, ...]:
    if not isinstance(steps, list):
        raise Unclear("a path is no list")
    return tuple(text_of(object_of(step, "a step of a path"), "urn") for step in steps)


def _path(bundles: object) -> tuple[str, ...]:
    """Return the path of the first pipe; empty if there is none."""
    if not isinstance(bundles, list):
        raise Unclear("no bundles")
    lsps = [lsp for bundle in bundles[:1] for lsp in _listed(object_of(bundle, "a bundle").get("lsps"))]
    primary = [object_of(lsp, "an LSP") for lsp in lsps]
    return next((_urns(lsp.get("path")) for lsp in primary if lsp.get("role") == "PRIMARY"), ())


def _listed(value: object) -> list[object]:
    if not isinstance(value, list):
        raise Unclear("no LSPs")
    return value


def oscars_connection(answer: dict[str, object]) -> OscarsConnection:
    """Return what an ``L2VPN`` says; fields that nobody asked for are ignored.

    Raises:
        Unclear: a field is missing, or is not what it should be.
    """
    status = object_of(answer.get("status"), "status")
    phase, state = text_of(status, "phase"), text_of(status, "state")
    deployment, intent = text_of(status, "deploymentState"), text_of(status, "deploymentIntent")
    standing, reason = _standing(phase, state, deployment, intent)
    qos = object_of(answer.get("qos"), "qos")
    return OscarsConnection(
        state=standing,
        reason=reason,
        period=_period(object_of(answer.get("schedule"), "schedule"), whole_of(qos, "bandwidth") * MBPS),
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
    return yes, condensed(reason) if isinstance(reason, str) else ""


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
    ends = [object_of(end, "an endpoint") for end in endpoints]
    return frozenset((text_of(end, "port"), whole_of(end, "vlan")) for end in ends)


def _signed(fields: dict[str, object], name: str) -> int:
    """Return a field that is a whole number; what is free is below nothing where too much is sold.

    Raises:
        Unclear: it is missing, or something else.
    """
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unclear(f"{name} is no whole number")
    return value
