"""What OSCARS 1.2 reads and writes: requests of both APIs as ``Asked``, circuits as JSON."""

from datetime import UTC, datetime
from typing import Any

from controller.providers.tests.oscars_rules import Bare500, CircuitRequest, Fixture, OscarsCircuit

CAPPED_S = 2_145_916_800  # 2038-01-01: nothing later is ever written


def moment(seconds: float, style: str) -> float | int | str:
    """A time as Jackson writes it, which depends on its settings."""
    if style == "iso":
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    return int(seconds) if style == "integer" else float(seconds)


def of_l2vpn(body: dict[str, Any]) -> CircuitRequest:
    """A request of the L2VPN API; what is missing is a NullPointerException, so a bare 500."""
    try:
        mbps, strict = body["qos"]["bandwidth"], body["qos"].get("excessAction", "SCAVENGER") == "DROP"
        fixtures = tuple(Fixture(e["device"], e["port"], e["vlan"], strict, mbps) for e in body["endpoints"])
        pipes = []
        for bundle in body["bundles"]:
            if any(lsp["role"] == "PRIMARY" for lsp in bundle["lsps"]):
                if bundle["constraints"]["exclude"] is None:
                    raise Bare500
                pipes.append((bundle["a"], bundle["z"], mbps))
        return CircuitRequest(
            name=body["name"],
            begin_s=_int32(body["schedule"]["beginning"]),
            end_s=_int32(body["schedule"]["ending"]),
            mtu=body["tech"].get("mtu", 9000),
            description=body["meta"].get("description"),
            junctions=tuple(dict.fromkeys(f.device for f in fixtures)),
            fixtures=fixtures,
            pipes=tuple(pipes),
            mode=body["tech"].get("mode", "AUTOMATIC"),
            service_id=body["meta"].get("trackingId"),
        )
    except (KeyError, TypeError, AttributeError):
        raise Bare500 from None


def _int32(seconds: float) -> int:
    """What is left of a time in a Java int."""
    return (int(seconds) + 2**31) % 2**32 - 2**31


def l2vpn(circuit: OscarsCircuit, style: str) -> dict[str, Any]:
    """A circuit as the L2VPN API shows it."""
    asked = circuit.asked
    return {
        "name": asked.name,
        "meta": {
            "description": asked.description,
            "username": asked.username,
            "trackingId": asked.service_id,
            "orchId": None,
            "lastModified": moment(circuit.last_modified_s, style),
            "projectIds": [],
        },
        "schedule": _schedule(circuit, style),
        "status": {
            "phase": circuit.phase,
            "state": circuit.state,
            "deploymentState": circuit.deployment,
            "deploymentIntent": circuit.intent,
        },
        "qos": {
            "mode": "GUARANTEED" if circuit.mbps else "BEST_EFFORT",
            "excessAction": "DROP" if any(f.strict for f in asked.fixtures) else "SCAVENGER",
            "bandwidth": circuit.mbps,
        },
        "tech": {"mode": asked.mode, "flavor": "VPLS", "mtu": asked.mtu, "macsec": False},
        "endpoints": [
            {"device": f.device, "port": f.port, "vlan": f.vlan, "tagged": f.vlan != 0, "edgePort": None}
            for f in asked.fixtures
        ],
        "bundles": [
            {
                "name": f"{a}---{z}",
                "a": a,
                "z": z,
                "protection": "NONE",
                "constraints": {"include": [], "exclude": []},
                "lsps": [{"path": [], "role": "PRIMARY"}],
            }
            for a, z, _ in asked.pipes
        ],
    }


def _schedule(circuit: OscarsCircuit, style: str) -> dict[str, Any]:
    """Begin and end; of what was modified and is archived, both the end."""
    begin_s = circuit.archived_begin_s if circuit.phase == "ARCHIVED" else circuit.asked.begin_s
    end_s = circuit.asked.end_s
    return {"beginning": moment(min(begin_s, CAPPED_S), style), "ending": moment(min(end_s, CAPPED_S), style)}


def connection(circuit: OscarsCircuit, style: str) -> dict[str, Any]:
    """A circuit as the classic API shows it."""
    asked = circuit.asked
    part = {
        "connectionId": asked.name,
        "schedule": {**_schedule(circuit, style), "refId": f"{asked.name}-1", "phase": circuit.phase},
        "cmp": {
            "junctions": [{"deviceUrn": device, "refId": device} for device in asked.junctions],
            "fixtures": [
                {
                    "portUrn": f.port,
                    "ingressBandwidth": f.mbps,
                    "egressBandwidth": f.mbps,
                    "strict": f.strict,
                    "vlan": {"urn": f.port, "vlanId": f.vlan},
                    "junction": f.device,
                }
                for f in asked.fixtures
            ],
            "pipes": [
                {"a": a, "z": z, "protect": False, "azBandwidth": m, "zaBandwidth": m} for a, z, m in asked.pipes
            ],
        },
    }
    return {
        "connectionId": asked.name,
        "bandwidth": circuit.mbps,
        "description": asked.description,
        "username": asked.username,
        "mode": asked.mode,
        "phase": circuit.phase,
        "state": circuit.state,
        "deploymentState": circuit.deployment,
        "deploymentIntent": circuit.intent,
        "southbound": circuit.southbound,
        "connection_mtu": asked.mtu,
        "last_modified": circuit.last_modified_s,
        "held": part if circuit.phase == "HELD" else None,
        "reserved": part if circuit.phase == "RESERVED" else None,
        "archived": {**part, "schedule": part["schedule"]["refId"]} if circuit.phase != "HELD" else None,
    }
