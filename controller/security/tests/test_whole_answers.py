"""Servers that answer by drops, without end or with odd headers: who asks them waits for a time, and goes on."""

import gzip
import json
import socket
import struct
import threading

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from controller.providers.errors import AnswerLost, ProviderUnavailable, SecretUnusable
from controller.providers.http_session import HttpSession
from controller.providers.tests.buying import of
from controller.providers.tokens import Login, LoginSettings
from controller.security.issuer import Issuer, IssuerSilent
from controller.security.oidc_settings import OidcSettings
from controller.security.tokens import Role
from controller.security.whole_answers import MOST_BYTES
from controller.tests.dripping import DROPS, PART_S, Dripped, at_once, dripping, slow_body, slow_head

INTERIM = Dripped(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 3, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
SLOW = {"body": slow_body(b"{}"), "head": slow_head(b"{}"), "interim answers": INTERIM}
DISCOVERY = "/.well-known/openid-configuration"
QUICK = at_once(b'{"quick": true}')


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_an_answer_of_a_provider_that_comes_by_drops_is_lost_and_the_next_one_is_had(slow, method):
    with dripping({"/slow": slow, "/quick": QUICK}) as server:
        session = HttpSession(server.url, None, PART_S)
        with pytest.raises(AnswerLost):
            session.sent(method, "/slow", {"a": 1} if method == "POST" else None)
        assert session.sent("GET", "/quick").text == '{"quick": true}'
        assert [line.split()[1] for line in server.asked] == ["/slow", "/quick"]
        session.close()


def squeezed(body):
    """A good answer, compressed."""
    short = gzip.compress(body)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(short)
    return Dripped(b"", b"", head + short)


@pytest.mark.parametrize("given", [at_once, squeezed])
def test_an_answer_is_taken_up_to_a_size_and_the_next_one_is_had(given):
    longest = b" " * (MOST_BYTES - 2) + b"{}"
    with dripping({"/most": given(longest), "/more": given(longest + b" ")}) as server:
        session = HttpSession(server.url, None, 60.0)
        with pytest.raises(AnswerLost, match="longer than 16 MiB"):
            session.sent("GET", "/more")
        assert session.sent("GET", "/most").text.strip() == "{}"
        session.close()


def headed(header, body=b"{}"):
    """A good answer with one header more."""
    return Dripped(b"", b"", b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n%s" % (header, len(body), body))


CODECS = [b"undefined", b"hex", b"zlib", b"idna", b"utf-7", b"none"]
ODD_HEADERS = [*(b"Content-Type: text/html; charset=%s" % one for one in CODECS), b"Server: caf\xe9"]


@pytest.mark.parametrize("header", ODD_HEADERS)
def test_an_answer_is_read_as_utf_8_whatever_its_headers_say(header):
    body = '{"access_token": "+AGE-", "expires_in": 300, "name": "café \ufffd"}'
    with dripping({"/x": headed(header, body.encode().replace("\ufffd".encode(), b"\xe9"))}) as server:
        session = HttpSession(server.url, None, PART_S)
        assert session.sent("GET", "/x").text == body
        assert Login(LoginSettings(f"{server.url}/x", "headway", "", of("a-secret")), lambda: 1.0).token() == "+AGE-"
        session.close()


@pytest.mark.parametrize(
    "place", [b"https://xn--0/", b"http://[::1", b"/" + b"a" * 65_530], ids=["idna", "port", "long"]
)
def test_an_answer_that_sends_us_nowhere_is_lost(place):
    away = Dripped(b"", b"", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % place)
    with dripping({"/x": away, "/token": away, DISCOVERY: away}) as server:
        session = HttpSession(server.url, None, PART_S)
        with pytest.raises(AnswerLost):
            session.sent("POST", "/x", {})
        with pytest.raises(SecretUnusable, match="does not answer"):
            Login(LoginSettings(f"{server.url}/token", "headway", "", of("a-secret"))).token()
        with pytest.raises(IssuerSilent):
            issuer_of(server).document()
        session.close()


def test_who_cannot_be_asked_by_his_name_is_not_there():
    session = HttpSession("https://xn--0/", None, PART_S)
    with pytest.raises(ProviderUnavailable) as told:
        session.sent("POST", "/x", {})
    assert not isinstance(told.value, AnswerLost)
    with pytest.raises(SecretUnusable, match="does not answer"):
        Login(LoginSettings("https://xn--0/token", "headway", "", of("a-secret"))).token()
    session.close()


def test_what_was_not_sent_since_tls_comes_by_drops_is_not_lost():
    with dripping({}, Dripped(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\0" * DROPS)) as server:
        session = HttpSession(server.url.replace("http:", "https:"), None, PART_S)
        with pytest.raises(ProviderUnavailable) as told:
            session.sent("POST", "/reservations", {})
        assert not isinstance(told.value, AnswerLost)
        session.close()


def test_a_login_that_answers_by_drops_gives_no_token():
    with dripping({"/token": slow_body(b'{"access_token": "t", "expires_in": 300}')}) as server:
        login = Login(LoginSettings(f"{server.url}/token", "headway", "", of("a-secret")), lambda: 1_000.0, PART_S)
        with pytest.raises(SecretUnusable, match="does not answer"):
            login.token()


def issuer_of(server):
    """What asks an issuer."""
    return Issuer(OidcSettings(server.url, "headway", {"staff": Role.READ}), part_s=PART_S)


@pytest.fixture(scope="module")
def keys():
    """The keys of an issuer, as it tells them; and a token that names one of them."""
    key = ec.generate_private_key(ec.SECP256R1())
    shown = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())) | {"kid": "k", "alg": "ES256"}
    return json.dumps({"keys": [shown]}).encode(), jwt.encode({}, key, "ES256", {"kid": "k"})


def of_itself(server):
    """What the server says of itself as an issuer."""
    names = {"jwks_uri": "/keys", "token_endpoint": "/token"}
    return json.dumps({"issuer": server.url} | {name: server.url + path for name, path in names.items()}).encode()


@pytest.mark.parametrize(
    ("document", "answers", "is_known"),
    [(at_once, at_once, True), (slow_body, at_once, False), (at_once, slow_body, False)],
    ids=["all at once", "what it says of itself", "its keys"],
)
def test_keys_of_an_issuer_that_answers_by_drops_are_not_waited_for(keys, document, answers, is_known):
    said, token = keys
    parts = {"/keys": answers(said)}
    with dripping(parts) as server, capture_logs() as logs:
        parts[DISCOVERY] = document(of_itself(server))
        issuer = issuer_of(server)
        issuer.refresh()
        assert issuer.has_key(token) is is_known
    assert [one["event"] for one in logs] == ([] if is_known else ["oidc.silent"])
    assert all(one["why"] for one in logs)


def test_keys_that_are_too_deep_to_be_read_are_none():
    parts = {"/keys": at_once(b"[" * 100_000)}
    with dripping(parts) as server, capture_logs() as logs:
        parts[DISCOVERY] = at_once(of_itself(server))
        issuer_of(server).refresh()
    assert [(one["event"], one["why"].split(": ")[0]) for one in logs] == [("oidc.silent", server.url + "/keys")]


def test_a_login_of_somebody_whose_issuer_answers_by_drops_fails():
    parts = {"/token": slow_body(b'{"id_token": "t"}')}
    with dripping(parts) as server:
        parts[DISCOVERY] = at_once(of_itself(server))
        with pytest.raises(IssuerSilent, match="TimeoutError"):
            issuer_of(server).redeemed("code", "verifier", "https://here/login/done")


def refused():
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_who_does_not_listen_is_said_to():
    session = HttpSession(refused(), None, PART_S)
    with pytest.raises(ProviderUnavailable, match=r"ConnectError: \[Errno 111\] Connect call failed"):
        session.sent("GET", "/")
    session.close()


def test_of_several_addresses_it_is_said_of_the_first(monkeypatch):
    named = ("127.0.0.1", "127.0.0.2")
    found = [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (one, 9)) for one in named]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    session = HttpSession("http://provider.example:9", None, PART_S)
    with pytest.raises(ProviderUnavailable, match=r"ConnectError: \[Errno 111\] Connect call failed"):
        session.sent("GET", "/")
    session.close()


def test_a_connection_that_is_reset_is_said_to_be():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def reset():
            connected = listening.accept()[0]
            connected.recv(1)  # and the rest is not read
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connected.close()

        thread = threading.Thread(target=reset)
        thread.start()
        session = HttpSession(f"http://127.0.0.1:{listening.getsockname()[1]}", None, PART_S)
        with pytest.raises(AnswerLost, match=r"ReadError: .*Connection reset by peer"):
            session.sent("GET", "/")
        thread.join()
        session.close()
