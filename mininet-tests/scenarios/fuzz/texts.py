"""What is fuzzed of texts and files: configurations, tokens, certificates, providers' answers, quantities."""

import base64
import json
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from apps.configuration import parsed
from controller.northbound.access import AccessRules, principal
from controller.providers import nsi_wire, oscars_wire
from controller.providers.answers import decoded
from controller.security import pki
from controller.security.issuer import Issuer, is_jwt
from controller.security.oidc_settings import OidcSettings
from controller.security.tls import shown_client, shown_dpid, shown_serial
from controller.security.tokens import Role, Tokens, new_token
from controller.whatif.file import scenario_of
from topology import certificates, units
from topology.certificates import Kind, Pems
from topology.network_file import network_of
from topology.problems import Problems
from topology.yaml_text import read

Take = Callable[[bytes], object]
NOW, LATER = datetime(2026, 11, 24, tzinfo=UTC), datetime(2027, 11, 24, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[3]


def network_files() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes a file of a network."""
    folder = ROOT / "mininet-tests" / "networks"
    seeds = tuple((folder / name).read_bytes() for name in ("chile-illinois.yaml", "two-lines.yaml"))
    return lambda data: network_of(read(data.decode(errors="replace")).values, Problems()), seeds


def configuration_files() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes a controller's configuration, and a scenario of what-if."""

    def take(data: bytes) -> object:
        values = read(data.decode(errors="replace")).values
        return scenario_of(values, "x", Path("/nonexistent")) if data[:1] == b"#" else parsed(values, "x")

    network = str(ROOT / "mininet-tests" / "networks" / "chile-illinois.yaml").encode()
    scenario = (ROOT / "contrib" / "what-if" / "night.yaml").read_bytes()
    return take, (
        _CONFIGURATION.replace(b"NETWORK", network),
        b"#\n" + scenario[:2_000],
        b"a: &x [*x]",
        b"? {a: 1}\n: !!int ''",
    )


_CONFIGURATION = b"""
network: NETWORK
flows: [{name: f, class: predictable, from: base22, to: arch}]
"""


def bearer_tokens() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes the headers ``Authorization`` of a request.

    Raises:
        AssertionError: in ``take``, if somebody is let in by anything but the one token.
    """
    text, kept = new_token("ana", Role.READ, NOW, LATER)
    rules = AccessRules(lambda: Tokens((kept,)), lambda: NOW)

    def take(data: bytes) -> object:
        shown = data.decode("latin-1").split("\n")
        who = principal(rules, shown, "192.0.2.1")
        if who is not None and text not in shown[0] and text not in _unpacked(shown[0]):
            raise AssertionError(f"{shown} is {who}")
        return who

    basic = base64.b64encode(f"ana:{text}".encode()).decode()
    return take, (f"Bearer {text}".encode(), f"Basic {basic}".encode(), b"Bearer hw_00000000_x", b"Basic ????")


def _unpacked(header: str) -> str:
    try:
        return base64.b64decode(header.partition(" ")[2].strip()).decode()
    except ValueError:
        return ""


def web_tokens() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes an issuer's tokens: any text, and after a ``{`` claims that are signed as the issuer would.

    Raises:
        AssertionError: in ``take``, if a token that is not signed lets somebody in.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = Issuer(OidcSettings("https://i", "headway", {"a": Role.READ}), lambda: 0.0)
    shown = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())) | {"kid": "k"}
    issuer._keys, issuer._fetched_s = {"k": jwt.PyJWK(shown)}, 0.0
    far = {"exp": 4_102_444_800, "iss": "https://i", "aud": "headway", "sub": "ana", "groups": ["a"]}

    def take(data: bytes) -> object:
        text = data.decode("latin-1")
        if not text.startswith("{"):
            if is_jwt(text) and (who := issuer.principal(text)) is not None and text not in good:
                raise AssertionError(f"{text} is {who}")
            return issuer.freshness(text), issuer.has_key(text)
        try:
            claims = json.loads(text)
            signed = jwt.encode(claims, key, "ES256", headers={"kid": "k"})
        except (ValueError, TypeError, RecursionError, OverflowError):
            return None
        return issuer.principal(signed) if is_jwt(signed) else None

    good = (jwt.encode(far, key, "ES256", headers={"kid": "k"}), jwt.encode(far, key, "ES256"))
    return take, (*(one.encode() for one in good), json.dumps(far).encode(), b'{"exp": 1e400, "groups": {"a": 1}}')


def certificate_files() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes certificates and lists of revoked ones: DER behind a letter, or PEM as it is."""
    authority = pki.new_authority("site", NOW)
    key = pki.new_key()
    made = [
        pki.certificate(authority, kind, names, key.public_key(), LATER)
        for kind, names in ((Kind.AGENT, ("base20",)), (Kind.REST, ("127.0.0.1", certificates.REST_URI)))
    ]
    switch = pki.certificate(authority, Kind.SWITCH, ("ls1", certificates.switch_uri(1)), key.public_key(), LATER)
    revoked = pki.revocations(authority, [(7, NOW)], NOW)
    ours, own = pki.certificate_pem(authority.certificate), pki.key_pem(key)

    def take(data: bytes) -> object:
        what, body = data[:1], data[1:]
        names = {b"c": "CERTIFICATE", b"r": "X509 CRL"}
        if what not in names:
            return certificates.certificate_faults(Pems(body, body, body, body), Kind.AGENT, NOW)
        framed = base64.encodebytes(body).decode()
        pem = f"-----BEGIN {names[what]}-----\n{framed}-----END {names[what]}-----\n".encode()
        if what == b"r":
            return certificates.certificate_faults(Pems(ours, ours, own, pem), Kind.AGENT, NOW), _serials(pem)
        return [
            certificates.certificate_faults(Pems(ours, pem, own, None), kind, NOW) for kind in (Kind.AGENT, Kind.SWITCH)
        ]

    ders = [b"c" + one.public_bytes(Encoding.DER) for one in (*made, switch)]
    return take, (*ders, b"r" + ssl.PEM_cert_to_DER_cert(_as_certificate(revoked)), b"p" + ours + own + revoked)


def _as_certificate(revoked: bytes) -> str:
    return revoked.decode().replace("X509 CRL", "CERTIFICATE")


def _serials(pem: bytes) -> frozenset[int]:
    try:
        return certificates.revoked_serials(pem)
    except ValueError:
        return frozenset()


def shown_certificates() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes certificates as Python's ``ssl`` shows those of whom it let in."""

    def take(data: bytes) -> object:
        value = data.decode("latin-1")
        pairs = tuple(tuple(one.split("=", 1)) if "=" in one else ("URI", one) for one in value.split("\n"))
        shown = {"serialNumber": "0A", "subjectAltName": pairs}
        return shown_serial(shown), shown_dpid(shown), shown_client(shown)

    return take, (b"URI=headway:switch:0000000000000001", b"URI=headway:client:ana\nDNS=base20", b"headway:client:")


def oscars_answers() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes OSCARS's answers."""
    readers: Sequence[Callable[[dict[str, object]], object]] = (
        oscars_wire.oscars_connection,
        oscars_wire.widest_mbps,
        oscars_wire.port_rates,
        oscars_wire.path_found,
        lambda answer: oscars_wire.verdict(answer, "valid", "message"),
        lambda answer: oscars_wire.time_us(answer.get("beginning")),
    )

    def take(data: bytes) -> object:
        return readers[data[0] % len(readers) if data else 0](decoded(data[1:].decode(errors="replace")))

    lsp = {"path": [{"urn": "a:1"}, {"urn": "b:1"}], "role": "PRIMARY"}
    circuit = {
        "connectionId": "C",
        "phase": "RESERVED",
        "state": "WAITING",
        "deploymentState": "UNDEPLOYED",
        "deploymentIntent": "SHOULD_BE_UNDEPLOYED",
        "archived": {
            "cmp": {"fixtures": [], "junctions": [], "pipes": []},
            "schedule": {"beginning": 1, "ending": 2},
        },
        "endpoints": [{"device": "a", "port": "1", "vlan": 5}],
        "bundles": [{"a": "a", "z": "b", "lsps": [lsp]}],
        "schedule": {"beginning": 1, "ending": 2},
        "qos": {"bandwidth": 100},
    }
    paths = {"widestAZ": {"ero": [{"urn": "a"}], "azBandwidth": 5, "zaBandwidth": 5}, "shortest": None}
    ports = {"a:1": {"ingressBandwidth": 5, "egressBandwidth": 1.5}}
    said = (circuit, paths, ports, paths, {"valid": True, "message": "x"}, {"beginning": "2026-11-24T00:00:00Z"})
    return take, tuple(bytes([at]) + json.dumps(one).encode() for at, one in enumerate(said))


def nsi_answers() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes an NSI aggregator's answers."""
    readers: Sequence[Callable[[str], object]] = (
        nsi_wire.nsi_connection,
        nsi_wire.nsi_connections,
        nsi_wire.accepted,
        nsi_wire.error_reason,
    )

    def take(data: bytes) -> object:
        return readers[data[0] % len(readers) if data else 0](data[1:].decode(errors="replace"))

    one = {
        "connectionId": "c",
        "globalReservationId": "urn:uuid:1",
        "status": "ACTIVATED",
        "criteria": {"p2ps": {"capacity": 100, "sourceSTP": "a", "destSTP": "b"}},
        "segments": [{"providerNSA": "n", "capacity": 5, "sourceSTP": "a"}],
        "lastError": "x\ny",
    }
    said = (one, {"reservations": [one]}, {"instance": "/r/1"}, {"detail": [{"loc": ["a", 1], "msg": "m"}]})
    return take, tuple(bytes([at]) + json.dumps(each).encode() for at, each in enumerate(said))


def quantities() -> tuple[Take, tuple[bytes, ...]]:
    """Return what takes rates, sizes and times as people write them."""
    readers: Sequence[Callable[[str], int]] = (units.rate_bps, units.size_bytes, units.duration_us, units.instant_us)

    def take(data: bytes) -> object:
        return readers[data[0] % len(readers) if data else 0](data[1:].decode(errors="replace"))

    said = ("9.5 Gbit/s", "2.7 GB", "1.5 h", "2026-11-24T00:00:00.5+02:00")
    return take, tuple(bytes([at]) + one.encode() for at, one in enumerate(said))
