"""REST's port by TLS: whom it trusts and how long, what strangers cannot take, and for whom a proxy asks."""

import contextlib
import http.client
import json
import select
import socket
import ssl
import threading
from dataclasses import replace
from ipaddress import ip_network

import pytest
from structlog.testing import capture_logs

from apps.web import web
from controller.security import pki_files
from controller.security.connections import Limits
from controller.security.tls import ServerTls
from controller.settings.listen import ListenAddress
from mininet_tests.testing.eventually import eventually
from topology.certificates import CLIENT_URI, REST_URI, Kind

PATIENT = Limits(head_s=60, body_s=60, idle_s=60, handshake_s=60, handshakes_per_s=10_000)
HALF = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the beginning of a ClientHello


async def told(scope, receive, send):
    """An application: says who asks, by what, and by which certificate."""
    if scope["type"] != "http":
        return
    named = scope.get("extensions", {}).get("tls", {}).get("client_cert_name")
    body = json.dumps([scope["client"][0], scope["scheme"], named]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def folder(tmp_path):
    """An authority that has made REST's certificate."""
    pki_files.init(tmp_path, "example", pki_files.now(), 100)
    certified(tmp_path)
    return tmp_path


def certified(folder, days=50):
    """REST's files, of another key than before."""
    made = pki_files.make(folder, Kind.REST, ("127.0.0.1", REST_URI), pki_files.now(), days, force=True)
    return ServerTls(
        str(made.key), str(made.certificate), str(folder / "ca.pem"), str(folder / "crl.pem"), is_mutual=False
    )


@contextlib.contextmanager
def port(folder, limits=PATIENT, **more):
    """Where it is served."""
    rest = folder / "rest" / "127.0.0.1"
    files = ServerTls(f"{rest}.key", f"{rest}.pem", str(folder / "ca.pem"), str(folder / "crl.pem"), is_mutual=False)
    with web(told, ListenAddress("127.0.0.1", 0), limits, tls=files, **more) as number:
        yield number


def trusting(folder, kind=None, *names):
    """A client's context, which shows a certificate of a kind."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if kind is not None:
        made = pki_files.make(folder, kind, names, pki_files.now(), 50, force=True)
        context.load_cert_chain(made.certificate, made.key)
    return context


def asked(number, context, headers=None, connection=None):
    """What is answered."""
    one = connection or http.client.HTTPSConnection("127.0.0.1", number, timeout=20, context=context)
    one.request("GET", "/", headers=headers or {})
    said = json.loads(one.getresponse().read())
    if connection is None:
        one.close()
    return said


def test_who_trusts_the_authority_is_served_and_who_does_not_turns_away(folder):
    with port(folder) as number:
        assert asked(number, trusting(folder)) == ["127.0.0.1", "https", None]
        with pytest.raises(ssl.SSLCertVerificationError):
            asked(number, ssl.create_default_context())
        with contextlib.closing(socket.create_connection(("127.0.0.1", number), timeout=20)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b" 200 " not in plain.recv(1_000)


def test_a_certificate_of_a_client_says_his_name_and_no_other_kind_does(folder):
    with port(folder) as number:
        assert asked(number, trusting(folder, Kind.CLIENT, "ana", f"{CLIENT_URI}ana"))[2] == "ana"
        assert asked(number, trusting(folder, Kind.AGENT, "base20"))[2] is None


def test_a_revoked_client_is_cut_off_and_stays_out(folder):
    with port(folder) as number, capture_logs() as logs:
        ana = trusting(folder, Kind.CLIENT, "ana", f"{CLIENT_URI}ana")
        kept = http.client.HTTPSConnection("127.0.0.1", number, timeout=20, context=ana)
        assert asked(number, ana, connection=kept)[2] == "ana"
        pki_files.revoke(folder, "ana", pki_files.now())
        eventually(lambda: any(each["event"] == "rest.revoked" for each in logs), within_s=20, what="she is cut off")
        assert kept.sock.recv(1) == b""
        with pytest.raises(OSError):  # noqa: PT011 (whichever OpenSSL says)
            asked(number, ana)
        untrusted = lambda: [each["why"] for each in logs if each["event"] == "rest.untrusted"]  # noqa: E731
        eventually(lambda: any("revoked" in why for why in untrusted()), within_s=20, what="it is said why")
        kept.close()


def test_another_certificate_is_shown_without_a_restart_while_traffic_runs(folder):
    with port(folder) as number, capture_logs() as logs:
        context, stop, failed, serials = trusting(folder), threading.Event(), [], set()
        kept = http.client.HTTPSConnection("127.0.0.1", number, timeout=20, context=context)

        def traffic():
            while not stop.is_set():
                try:
                    asked(number, context, connection=kept)
                    one = http.client.HTTPSConnection("127.0.0.1", number, timeout=20, context=context)
                    asked(number, context, connection=one)
                    serials.add(one.sock.getpeercert()["serialNumber"])
                    one.close()
                except OSError as error:
                    failed.append(error)

        runs = threading.Thread(target=traffic)
        runs.start()
        eventually(lambda: len(serials) == 1, within_s=20, what="traffic runs")
        certified(folder)
        eventually(lambda: len(serials) == 2, within_s=20, what="the new one is shown")
        (folder / "rest" / "127.0.0.1.pem").write_text("nonsense")
        eventually(lambda: any(each["event"] == "tls.unusable" for each in logs), within_s=20, what="it is said")
        asked(number, context)
        stop.set()
        runs.join()
        kept.close()
        assert failed == []


def half_handshakes(number, many, open_ones, source="127.0.0.1"):
    """So many connections that have begun a handshake."""
    made = []
    for _ in range(many):
        made_at = socket.create_connection(("127.0.0.1", number), timeout=20, source_address=(source, 0))
        one = open_ones.enter_context(contextlib.closing(made_at))
        one.sendall(HALF)
        made.append(one)
    return made


def is_ended(one):
    """Whether the other end has ended a connection, in order or not."""
    try:
        return one.recv(100) == b""
    except ConnectionResetError:
        return True


def test_a_handshake_that_is_never_ended_is_cut_off(folder):
    with port(folder, replace(PATIENT, handshake_s=0.3)) as number, contextlib.ExitStack() as open_ones:
        for one in half_handshakes(number, 5, open_ones):
            assert is_ended(one)


def test_half_handshakes_count_as_connections_and_the_honest_are_served_beside_them(folder):
    with port(folder, replace(PATIENT, of_one_address=20, connections=60)) as number, contextlib.ExitStack() as all_:
        made = half_handshakes(number, 100, all_)
        assert is_ended(made[0]), "the first of them still has its place"
        assert asked(number, trusting(folder))[1] == "https"
        made[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):  # the newest ones do, until others come
            made[-1].recv(1)


def test_an_address_begins_so_many_handshakes_and_others_do_not_wait_for_it(folder):
    with port(folder, replace(PATIENT, handshakes_per_s=5)) as number, contextlib.ExitStack() as all_:
        with capture_logs() as logs:
            made = half_handshakes(number, 40, all_, "127.0.0.2")
            ended, _, _ = select.select(made, [], [], 20)  # not always the last: places come free meanwhile
            assert is_ended(ended[-1])
            assert asked(number, trusting(folder))[1] == "https"
        said = [each for each in logs if each["event"] == "rest.untrusted"]
        assert [each["why"] for each in said] == ["connects too often"], "it is said once"


def test_a_proxy_that_is_named_says_for_whom_it_asks_and_nobody_else_does(folder):
    said = {"X-Forwarded-For": "127.0.0.1, 203.0.113.5", "X-Forwarded-Proto": "https"}
    with web(told, ListenAddress("127.0.0.1", 0), proxies=(ip_network("127.0.0.1"),)) as number:
        one = http.client.HTTPConnection("127.0.0.1", number, timeout=20)
        assert asked(number, None, said, one) == ["203.0.113.5", "https", None]
        assert asked(number, None, {}, one) == ["unknown", "http", None]
        one.close()
    with port(folder) as number:
        assert asked(number, trusting(folder), said)[0] == "127.0.0.1"


def test_connections_of_a_proxy_are_not_those_of_one_address():
    few = replace(PATIENT, of_one_address=2, connections=60)
    with (
        web(told, ListenAddress("127.0.0.1", 0), few, proxies=(ip_network("127.0.0.0/8"),)) as number,
        contextlib.ExitStack() as all_,
    ):
        made = [socket.create_connection(("127.0.0.1", number), timeout=20) for _ in range(10)]
        for one in made:
            all_.callback(one.close)
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert one.recv(1_000).startswith(b"HTTP/1.1 200")
