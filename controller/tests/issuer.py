"""A small issuer of OpenID Connect in a process of its own, by TLS: discovery, keys, the authorization code flow.

It keeps to what the specifications ask of a provider where the tests look: PKCE (S256), the redirect address, a code
that is good once, ``iss``, ``aud``, ``exp``, ``nonce``. Beside that it does as a test says: ``/mint`` signs claims,
``/rotate`` changes the key, and says of which type it is, ``/anew`` forgets everything.
"""

import json
import secrets
import ssl
import subprocess
import sys
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT, SECRET, AUDIENCE = "headway-page", "the page's secret", "headway"
PERSON = {"sub": "ana-4711", "groups": ["lsst", "tea"]}


class OpenIdProvider(ThreadingHTTPServer):
    """What the issuer knows."""

    daemon_threads = True
    issuer = ""

    def begin(self) -> None:
        """Have a first key, and no codes."""
        self.keys: dict[str, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: dict[str, int] = {}
        self.devices: dict[str, str] = {}  # by device code: what is said of it
        self.refreshes: set[str] = set()
        self.rotate()

    def rotate(self, kind: str = "EC", algorithm: str | None = "ES256") -> None:
        """Sign with another key, which may name its algorithm; the one before is gone."""
        made = ec.generate_private_key(ec.SECP256R1()) if kind == "EC" else rsa.generate_private_key(65537, 2048)
        self.keys = {secrets.token_hex(4): made}
        self.named = {} if algorithm is None else {"alg": algorithm}

    def signed(self, claims: dict, algorithm: str = "ES256") -> str:
        """Return a token with claims, and what is usual where they say nothing."""
        ((name, key),) = self.keys.items()
        now_s = int(time.time())
        usual = {"iss": self.issuer, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 300} | PERSON
        whole = {field: value for field, value in (usual | claims).items() if value is not None}
        return jwt.encode(whole, key, algorithm, headers={"kid": name})

    def known(self) -> dict:
        """Return the keys as anybody may know them (RFC 7517)."""
        shown = []
        for name, key in self.keys.items():
            is_rsa = isinstance(key, rsa.RSAPrivateKey)
            kind = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
            shown.append(json.loads(kind.to_jwk(key.public_key())) | {"kid": name, "use": "sig"} | self.named)
        return {"keys": shown}


class Handler(BaseHTTPRequestHandler):
    """Its endpoints."""

    server: OpenIdProvider

    def log_message(self, *_args):
        """Say nothing."""

    def _said(self, status, body=None, **headers):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        """Discovery, keys, how often each was asked for, and a login by somebody who says yes."""
        parts, provider = urlsplit(self.path), self.server
        provider.asked[parts.path] = provider.asked.get(parts.path, 0) + 1
        if parts.path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            names["device_authorization_endpoint"] = "/device"
            self._said(200, {"issuer": provider.issuer} | {n: provider.issuer + p for n, p in names.items()})
        elif parts.path == "/keys":
            self._said(200, provider.known())
        elif parts.path == "/asked":
            self._said(200, provider.asked)
        elif parts.path.startswith("/device/"):
            _, _, answer, code = parts.path.split("/")
            provider.devices[code] = answer
            self._said(200, {})
        elif parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            good = (asked["response_type"], asked["client_id"], asked["code_challenge_method"])
            if good != ("code", CLIENT, "S256") or "openid" not in asked["scope"].split():
                self._said(400, {"error": "invalid_request"})
                return
            code = secrets.token_urlsafe(16)
            provider.codes[code] = asked
            back = urlencode({"code": code, "state": asked["state"]})
            self._said(303, None, Location=f"{asked['redirect_uri']}?{back}")

    def do_POST(self):
        """What a code is worth; and what tests want."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/anew":
            self._said(200, self.server.begin())
        elif self.path == "/mint":
            self._said(200, {"token": self.server.signed(**json.loads(text))})
        elif self.path == "/rotate":
            self._said(200, self.server.rotate(**json.loads(text)))
        elif self.path == "/device":
            code = secrets.token_hex(8)
            self.server.devices[code] = "authorization_pending"
            where = f"{self.server.issuer}/device"
            said = {"device_code": code, "user_code": code[:4], "expires_in": 30, "interval": 0.05}
            self._said(200, said | {"verification_uri": where, "verification_uri_complete": f"{where}/yes/{code}"})
        elif self.path == "/token":
            form = {name: values[0] for name, values in parse_qs(text).items()}
            if form["grant_type"] != "authorization_code":
                self._at_a_terminal(form)
                return
            asked = self.server.codes.pop(form["code"], None)
            shown = b64decode(self.headers.get("Authorization", "Basic ").partition(" ")[2]).decode()
            hashed = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
            proper = asked and (asked["redirect_uri"], asked["code_challenge"]) == (form["redirect_uri"], hashed)
            if not proper or form["grant_type"] != "authorization_code" or shown != f"{CLIENT}:{SECRET}":
                self._said(400, {"error": "invalid_grant"})
                return
            claims = {"aud": CLIENT, "nonce": asked["nonce"]}
            self._said(200, {"token_type": "Bearer", "access_token": "x", "id_token": self.server.signed(claims)})

    def _at_a_terminal(self, form):
        """What a code at a terminal, or a refresh token, is worth; a token lasts as long as the client's name says."""
        provider, said = self.server, "invalid_grant"
        if form["grant_type"] == "refresh_token" and form["refresh_token"] in provider.refreshes:
            provider.refreshes.remove(form["refresh_token"])
            said = "yes"
        elif form["grant_type"].endswith(":device_code"):
            said = provider.devices.get(form["device_code"], said)
        if said != "yes":
            self._said(400, {"error": said})
            return
        provider.devices.pop(form.get("device_code"), None)
        life, refresh = int(form["client_id"].rpartition("-")[2]), secrets.token_hex(8)
        provider.refreshes.add(refresh)
        token = provider.signed({"exp": int(time.time()) + life})
        self._said(200, {"access_token": token, "refresh_token": refresh, "expires_in": life, "token_type": "Bearer"})


def main() -> None:
    """Serve with a certificate and its key, at a port or at any; say where."""
    certificate, key, port = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = OpenIdProvider(("127.0.0.1", int(port)), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.issuer = f"https://127.0.0.1:{server.server_address[1]}"
    server.begin()
    sys.stdout.write(f"{server.issuer}\n")
    sys.stdout.flush()
    server.serve_forever()


class IssuerProcess:
    """The process, as a test has it."""

    def __init__(self, issuer: str, authority: Path) -> None:
        self.issuer, self.authority = issuer, authority
        self._client = httpx.Client(verify=ssl.create_default_context(cafile=str(authority)), base_url=issuer)

    def begins_anew(self) -> None:
        """Let it be as if it had just started: another key, no codes, and nobody has asked."""
        self._client.post("/anew", json={})

    def token(self, algorithm: str = "ES256", **claims) -> str:
        """Return a token that it has signed."""
        return self._client.post("/mint", json={"claims": claims, "algorithm": algorithm}).json()["token"]

    def rotate(self, **how) -> None:
        """Let it have another key: of which type, and whether that names an algorithm."""
        self._client.post("/rotate", json=how)

    def asked(self, path: str) -> int:
        """Return how often something was asked for."""
        return self._client.get("/asked").json().get(path, 0)

    def login(self, address: str) -> str:
        """Return where a browser is led that follows the way to it, and whose user says yes."""
        return self._client.get(address).headers["location"]


@contextmanager
def serving_issuer(certificate: Path, key: Path, authority: Path, port: int = 0) -> Iterator[IssuerProcess]:
    """Run it meanwhile."""
    command = [sys.executable, __file__, str(certificate), str(key), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield IssuerProcess(process.stdout.readline().strip(), authority)
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
