"""REST's port and those who say too much, too slowly, or nothing at all: an honest client is served beside them."""

import contextlib
import json
import select
import socket
import threading
import time
from dataclasses import replace

import httpx
import pytest

from apps.web import web
from controller.security.connections import Limits, OpenConnections
from controller.settings.listen import ListenAddress

ASK = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
SHORT = Limits(head_s=0.3, body_s=0.3, idle_s=60, stuck_s=0.3)
ASKED = threading.Event()  # set when /never is
PATIENT = Limits(head_s=60, body_s=60, idle_s=60, connections_per_s=10_000)


async def echo(scope, receive, send):
    """An application: says who asked and how much came; /large is 32 MiB, /never ends when the client does."""
    if scope["type"] != "http":
        return
    got, more = 0, True
    while more:
        message = await receive()
        got, more = got + len(message.get("body", b"")), message.get("more_body", False)
    while scope["path"] == "/never":
        ASKED.set()
        if (await receive())["type"] == "http.disconnect":
            return
    if scope["path"] == "/fault":
        raise ValueError("ours")
    body = b"x" * 2**25 if scope["path"] == "/large" else json.dumps([scope["client"][0], got]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def port(limits=PATIENT):
    """Where it is served, within limits."""
    with web(echo, ListenAddress("127.0.0.1", 0), limits) as number:
        yield number


def guest(number, said=b"", source="127.0.0.1"):
    """A connection that has said something."""
    made = socket.create_connection(("127.0.0.1", number), timeout=20, source_address=(source, 0))
    made.sendall(said)
    return made


def is_served(number):
    """Whether an honest client is."""
    return httpx.get(f"http://127.0.0.1:{number}/", timeout=20).status_code == 200


def heard(one):
    """All that a connection is told until its end."""
    told = b""
    with contextlib.suppress(ConnectionError):
        while piece := one.recv(65_536):
            told += piece
    return told


def poured(one, pieces):
    """How many bytes the other end takes before it hangs up."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            one.sendall(piece)
            sent += len(piece)
    return sent


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"GET / HTTP/1.1\r\n", b"X: " + b"y" * 1_000 + b"\r\n"),
        (b"GET / HTTP/1.1\r\nX: ", b"y" * 1_000),
        (b"GET /", b"y" * 1_000),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\n", b"y" * 1_000),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"3e8\r\n" + b"y" * 1_000 + b"\r\n"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"y" * 1_000),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: " + b"y" * 1_000 + b"\r\n"),
    ],
    ids=["fields", "a field", "a path", "a body", "chunks", "an extension", "trailers"],
)
def test_what_never_ends_is_cut_off(head, piece):
    with port() as number, contextlib.closing(guest(number, head)) as one:
        assert poured(one, [piece] * 32_000) < 31_000_000, "32 MB were taken"
        assert is_served(number)


def test_a_head_that_is_whole_and_too_large_is_refused():
    many = b"".join(b"X-%d: y\r\n" % number for number in range(101))
    for fields in (many, b"X: " + b"y" * 17_000 + b"\r\n"):
        with port() as number, contextlib.closing(guest(number, ASK[:-2] + fields + b"\r\n" + ASK)) as one:
            assert heard(one).startswith(b"HTTP/1.1 400 ")


def test_what_our_clients_send_at_most_is_taken():
    token, body = {"Authorization": "Bearer " + "x" * 12_000}, b"y" * 262_144
    with port() as number, httpx.Client(base_url=f"http://127.0.0.1:{number}", headers=token, timeout=20) as client:
        for _ in range(8):  # on one connection, on which more than a message's bytes come in all
            assert client.post("/", content=body).json() == ["127.0.0.1", len(body)]


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: y\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_who_does_not_finish_is_not_waited_for(said):
    with port(SHORT) as number, contextlib.closing(guest(number, said)) as one:
        assert heard(one) == b""


def test_drops_of_a_head_and_empty_lines_buy_no_time():
    for said, drop in ((b"GET / HTTP/1.1\r\n", b"X: y\r\n"), (ASK, b"\r\n")):
        with port(SHORT) as number, contextlib.closing(guest(number, said)) as one:

            def drops(what=drop):
                while True:
                    time.sleep(0.02)
                    yield what

            poured(one, drops())  # ends because the other end hangs up


def test_who_asks_for_much_and_reads_nothing_is_dropped():
    with port(SHORT) as number, contextlib.closing(guest(number, ASK.replace(b"/ ", b"/large "))) as one:
        time.sleep(2)  # reads nothing for longer than it may
        assert len(heard(one)) < 2**25


def test_who_reads_slowly_gets_all_of_it():
    ask = ASK.replace(b"/ ", b"/large ")
    with port(replace(PATIENT, stuck_s=2)) as number, contextlib.closing(guest(number, ask)) as one:
        got = 0
        while got < 2**25:
            piece = one.recv(2**20)
            assert piece, "hung up on one who reads"
            got += len(piece)
            time.sleep(0.01)


def test_a_flood_from_one_address_turns_out_its_own_and_nobody_else():
    few = replace(PATIENT, of_one_address=20, connections=60)
    with port(few) as number, contextlib.ExitStack() as open_ones:
        beside = open_ones.enter_context(contextlib.closing(guest(number, b"GET / ", source="127.0.0.2")))
        busy = open_ones.enter_context(contextlib.closing(guest(number, ASK.replace(b"/ ", b"/never "))))
        assert ASKED.wait(20)
        flood = [open_ones.enter_context(contextlib.closing(guest(number))) for _ in range(300)]
        assert is_served(number)
        assert heard(flood[0]) == b"", "the first of the flood still has its place"
        beside.sendall(ASK.removeprefix(b"GET / "))
        assert beside.recv(100).startswith(b"HTTP/1.1 200")
        busy.settimeout(0.2)
        with pytest.raises(TimeoutError):  # it waits for its answer, and still may
            busy.recv(1)


def test_a_flood_from_many_addresses_does_not_turn_out_the_honest_one():
    few = replace(PATIENT, of_one_address=20, connections=60)
    with port(few) as number, contextlib.ExitStack() as open_ones:
        for source in range(2, 32):
            for _ in range(10):
                open_ones.enter_context(contextlib.closing(guest(number, source=f"127.0.0.{source}")))
        assert is_served(number)


def test_requests_that_are_none_do_not_fill_the_log_and_faults_of_ours_are_in_it(caplog):
    with port() as number:
        for _ in range(20):
            with contextlib.closing(guest(number, b"\x00\x01\r\n\r\n")) as one:
                assert heard(one).startswith(b"HTTP/1.1 400 ")
        assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == []
        with contextlib.closing(guest(number, ASK.replace(b"/ ", b"/fault "))) as one:
            assert heard(one).startswith(b"HTTP/1.1 500 ")
    assert any(record.exc_info for record in caplog.records)


def test_an_address_connects_so_often_and_others_do_not_wait_for_it():
    with port(replace(PATIENT, connections_per_s=20)) as number, contextlib.ExitStack() as open_ones:
        flood = [open_ones.enter_context(contextlib.closing(guest(number, source="127.0.0.2"))) for _ in range(60)]
        ended, _, _ = select.select(flood, [], [], 20)  # not always the last: places come free meanwhile
        assert heard(ended[-1]) == b""
        assert is_served(number)


def test_nobody_says_in_a_header_who_he_is():
    with port() as number:
        said = httpx.get(f"http://127.0.0.1:{number}/", headers={"X-Forwarded-For": "192.0.2.7"}, timeout=20)
    assert said.json()[0] == "127.0.0.1"
    assert "server" not in said.headers


class SeatedGuest:
    """A connection that gives way, or not."""

    def __init__(self, *, gives_way=True):
        self.gives_way = gives_way

    def end(self):
        """Nobody is there."""


def test_the_longest_silent_of_the_largest_network_gives_way():
    seats, (a, b, c, d, e) = OpenConnections(3, 3), (SeatedGuest() for _ in range(5))
    assert [seats.came(a, "x"), seats.came(b, "x"), seats.came(c, "y")] == [None, None, None]
    seats.heard(a)
    assert seats.came(d, "y") in {b, c}
    seats.went(a)
    seats.went(a)
    assert (len(seats), seats.came(e, "z")) == (2, None)


def test_if_all_wait_for_answers_the_newcomer_leaves():
    seats, new = OpenConnections(9, 2), SeatedGuest()
    for _ in range(2):
        assert seats.came(SeatedGuest(gives_way=False), "x") is None
    assert seats.came(new, "x") is new
    assert len(seats) == 2
