"""What OSCARS 1.2 reads and writes: requests of the L2VPN API, and circuits as both APIs show them."""

from typing import Any

from controller.providers.tests.oscars_rules import Bare500, CircuitRequest, Fixture, OscarsCircuit

CAPPED_S = 2_145_916_800  # 2038-01-01: nothing later is ever written


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
                pipes.append((bundle["a"], bundle["z"], mbps, _path(bundle)))
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


def _path(bundle: dict[str, Any]) -> tuple[str, ...]:
    """The path of the primary LSP, or what is to be included; nothing fills in one that is empty."""
    (primary,) = (lsp for lsp in bundle["lsps"] if lsp["role"] == "PRIMARY")
    return tuple(hop["urn"] for hop in primary["path"] or bundle["constraints"]["include"])


def _waypoints(path: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"urn": urn, "type": "PORT" if ":" in urn else "DEVICE"} for urn in path]


def _int32(seconds: float) -> int:
    """What is left of a time in a Java int."""
    return (int(seconds) + 2**31) % 2**32 - 2**31


def l2vpn(circuit: OscarsCircuit) -> dict[str, Any]:
    """A circuit as the L2VPN API shows it."""
    asked = circuit.asked
    return {
        "name": asked.name,
        "meta": {
            "description": asked.description,
            "username": asked.username,
            "trackingId": asked.service_id,
            "orchId": None,
            "lastModified": float(circuit.last_modified_s),
            "projectIds": [],
        },
        "schedule": _schedule(circuit),
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
                "constraints": {"include": _waypoints(path), "exclude": []},
                "lsps": [{"path": _waypoints(path), "role": "PRIMARY"}],
            }
            for a, z, _, path in asked.pipes
        ],
    }


def _schedule(circuit: OscarsCircuit) -> dict[str, Any]:
    """Begin and end; of what was modified and is archived, both the end."""
    begin_s = circuit.archived_begin_s if circuit.phase == "ARCHIVED" else circuit.asked.begin_s
    end_s = circuit.asked.end_s
    return {"beginning": float(min(begin_s, CAPPED_S)), "ending": float(min(end_s, CAPPED_S))}


def connection(circuit: OscarsCircuit) -> dict[str, Any]:
    """What the classic API shows of a circuit, its names as it writes them."""
    asked = circuit.asked
    part = {"connectionId": asked.name, "schedule": {**_schedule(circuit), "phase": circuit.phase}}
    return {
        "connectionId": asked.name,
        "bandwidth": circuit.mbps,
        "phase": circuit.phase,
        "state": circuit.state,
        "deployment-state": circuit.deployment,
        "deployment-intent": circuit.intent,
        "projectId": [],
        "southbound": "NSO" if circuit.was_built else "RANCID",
        "connection_mtu": asked.mtu,
        "reserved": part if circuit.phase == "RESERVED" else None,
    }
