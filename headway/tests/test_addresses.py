"""A client that has the addresses of a pair: who leads is found, nothing is done twice, no one else is asked."""

import contextlib
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.tests.site import dependencies_of
from controller.plan.leading import LeaderView, PairStanding
from controller.tests.fakes import FakeSite
from controller.tests.serving import served
from headway import ApiProblem, Client, NoAnswer, NoConnection, NotAUrl
from headway.tests.scripted import PROBLEM, scripted
from headway.transport import SOON_S, SOONER_S, WAITS_S
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

NOBODY = "http://127.0.0.1:1"
ASKED = {"from": "la-serena", "to": "champaign", "rate_bps": 600_000_000, "duration_s": 3600}
EVENT_STREAM = {"Content-Type": "text/event-stream"}
OLD = {"Age": "0"}  # so says who stands by


def stands_by(leader):
    """The answer of who stands by."""
    said = {"type": "/problems/stands-by", "title": "stands by", "status": 307, "detail": f"{leader} leads, ask there"}
    return 307, {"Location": f"{leader}/v1/reservations", "Retry-After": "1"}, said


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Clients wait for who answers, however busy this machine is."""
    monkeypatch.setattr("headway.transport.PATIENCE_S", 60)
    monkeypatch.setattr("headway.transport.REACHED_S", 60)


@contextmanager
def two(first, second):
    """Two servers that answer so."""
    with scripted(*first) as a, scripted(*second) as b:
        yield a, b


def test_who_stands_by_is_left_for_who_leads_and_not_asked_again(slept):
    with two([stands_by("http://other")], [(201, {}, {"id": "x"}), (200, {}, [])]) as (a, b):
        client = Client(f"{a.url}, {b.url}", token=lambda: "hw_1")
        assert client.hold_reservation(ASKED) == {"id": "x"}
        assert client.list_hosts() == []
    assert (len(a.asked), len(b.asked), slept) == (1, 2, [])
    assert a.asked[0][2]["Idempotency-Key"] == b.asked[0][2]["Idempotency-Key"]
    assert b.asked[0][2]["Authorization"] == "Bearer hw_1"


def test_what_only_reads_is_asked_of_who_leads_although_who_stands_by_answers_it(slept):
    with two([(200, OLD, [])], [(200, {}, ["base20"]), (200, {}, ["base21"])]) as (a, b):
        client = Client(f"{a.url},{b.url}")
        assert [client.list_hosts(), client.list_hosts()] == [["base20"], ["base21"]]
    assert (len(a.asked), len(b.asked), slept) == (1, 2, [])


@pytest.mark.parametrize("other", [None, stands_by("http://a"), (200, OLD, ["base21"])])
def test_what_who_stands_by_knows_is_the_answer_if_nobody_leads(other, slept):
    with two([(200, OLD, ["base20"])], [other]) as (a, b):
        assert Client(f"{a.url},{b.url}").list_hosts() in (["base20"], ["base21"])
    assert slept == []


def test_what_who_stands_by_does_not_know_who_leads_may(slept):
    unknown = (404, OLD, PROBLEM | {"status": 404})
    with two([unknown], [(200, {}, {"id": "r"})]) as (a, b):
        assert Client(f"{a.url},{b.url}").get_reservation("r") == {"id": "r"}
    for nobody in (unknown, None, stands_by("http://a")):
        with two([unknown], [nobody]) as (a, b), pytest.raises(ApiProblem) as wrong:
            Client(f"{a.url},{b.url}").get_reservation("r")
        assert (wrong.value.status, slept) == (404, [])


def test_no_other_address_is_asked_wherever_it_is_said_to_be_led():
    with (
        scripted((201, {}, {"id": "x"})) as stranger,
        two([stands_by(stranger.url)], [stands_by(stranger.url)]) as (a, b),
    ):
        with pytest.raises(ApiProblem) as wrong:
            Client(f"{a.url},{b.url}", token=lambda: "hw_1", waits_s=()).hold_reservation(ASKED)
        assert stranger.asked == []
    assert (wrong.value.status, wrong.value.kind) == (307, "/problems/stands-by")


def test_one_address_alone_says_where_it_is_led(slept):
    with scripted(stands_by("https://ctl-b")) as server, pytest.raises(ApiProblem, match="https://ctl-b leads"):
        Client(server.url).hold_reservation(ASKED)
    assert (len(server.asked), slept) == (1, [])


def test_one_that_is_dead_is_left_at_once_also_by_what_must_not_be_sent_twice(slept):
    with scripted((200, {}, {"id": "r"})) as server:
        changed = Client(f"{NOBODY},{server.url}").change_reservation("r", {"rate": "1 Mbit/s"}, if_match='"1"')
        assert changed == {"id": "r"}
    assert slept == []


def test_what_must_not_be_sent_twice_and_may_have_been_done_is_not_asked_of_the_other(slept):
    with two([None], []) as (a, b):
        with pytest.raises(NoAnswer) as broken:
            Client(f"{a.url},{b.url}").change_reservation("r", {"rate": "1 Mbit/s"}, if_match='"1"')
        assert not isinstance(broken.value, NoConnection)
        assert (len(a.asked), b.asked, slept) == (1, [], [])


def test_while_nobody_leads_both_are_asked_again_soon(slept):
    none = (503, {"Retry-After": "1"}, PROBLEM | {"type": "/problems/no-leader"})
    with two([none, stands_by("http://b")], [none, (201, {}, {"id": "x"})]) as (a, b):
        assert Client(f"{a.url},{b.url}").hold_reservation(ASKED) == {"id": "x"}
    assert slept == [SOONER_S[0]]


def test_if_nobody_leads_for_longer_than_another_takes_to_they_are_asked_less_often(slept):
    none = (503, {"Retry-After": "1"}, PROBLEM | {"type": "/problems/no-leader"})
    tries = len(SOONER_S) + len(WAITS_S) + 1
    with two([none] * tries, [none] * tries) as (a, b), pytest.raises(ApiProblem):
        Client(f"{a.url},{b.url}").hold_reservation(ASKED)
    assert slept == [*SOONER_S, 1.0, 1.0, 2.0]  # and who answers says so: Retry-After


def test_who_asks_too_often_waits_as_long_as_is_said_at_a_pair_too(slept):
    often = (429, {"Retry-After": "7"}, PROBLEM | {"status": 429})
    with two([often, (200, {}, [])], []) as (a, b):
        assert Client(f"{a.url},{b.url}").list_hosts() == []
    assert slept == [7.0]


def test_when_both_are_dead_that_is_said():
    with pytest.raises(NoConnection, match="refused"):
        Client(f"{NOBODY},{NOBODY}", waits_s=()).list_hosts()


def test_events_go_on_at_the_other(slept):
    first, second = b"id: 7\nevent: a\ndata: {}\n\n", b"id: 9\nevent: b\ndata: {}\n\n"
    stream = (200, EVENT_STREAM, first)
    with two([stands_by("http://b"), (200, EVENT_STREAM, second)], [stream, None]) as (a, b):
        told = Client(f"{a.url},{b.url}").follow_events()
        assert [next(told).name, next(told).name] == ["a", "b"]
    assert b.asked[1][2]["Last-Event-ID"] == a.asked[1][2]["Last-Event-ID"] == "7"


def test_nobody_of_two_tells_events(slept):
    with two([stands_by("http://b")], [stands_by("http://a")]) as (a, b), pytest.raises(ApiProblem):
        next(Client(f"{a.url},{b.url}").follow_events())


class Hanging(threading.Thread):
    """A controller that stands still: its machine takes calls, and nobody answers them until it is woken."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer, self.calls = answer, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self.calls.append(self.listener.accept()[0])

    def wakes(self):
        """Answer whoever has called, and say that it is the end."""
        body = json.dumps(self.answer[2]).encode()
        for call in self.calls:
            call.recv(65536)
            call.sendall(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (self.answer[0], len(body)) + body)

    def ends(self):
        """Close all."""
        for each in (self.listener, *self.calls):
            each.close()


@pytest.fixture
def hanging(monkeypatch):
    """One that would grant a reservation; clients are not patient."""
    monkeypatch.setattr("headway.transport.PATIENCE_S", 0.05)
    thread = Hanging((201, {}, {"id": "late"}))
    thread.start()
    yield thread
    thread.ends()


def test_one_that_hangs_is_not_waited_for_while_the_other_leads(hanging):
    with scripted((201, {}, {"id": "x"})) as server:
        assert Client(f"{hanging.url},{server.url}", timeout_s=60).hold_reservation(ASKED) == {"id": "x"}
        assert len(server.asked) == 1
    eventually(lambda: len(hanging.calls) == 1, within_s=20, what="the other one was called")


def test_one_that_hangs_is_asked_once_until_another_leads(hanging):
    with scripted(*[stands_by(hanging.url)] * 3, (201, {}, {"id": "x"})) as server:
        assert Client(f"{hanging.url},{server.url}", timeout_s=60).hold_reservation(ASKED) == {"id": "x"}
        assert {one[2]["Idempotency-Key"] for one in server.asked} == {server.asked[0][2]["Idempotency-Key"]}
    eventually(lambda: len(hanging.calls) == 1, within_s=20, what="it was called")
    assert len(server.asked) == 4


def test_one_that_leads_and_is_slow_is_waited_for_and_asked_once(hanging):
    waits_s = (SOON_S,) * 100  # the other may take longer to answer than it is waited for, on a busy machine
    with scripted(*[stands_by(hanging.url)] * (len(waits_s) + 1)) as server, ThreadPoolExecutor(1) as thread:
        client = Client(f"{hanging.url},{server.url}", timeout_s=60, waits_s=waits_s)
        asked = thread.submit(client.hold_reservation, ASKED)
        eventually(lambda: hanging.calls, within_s=60, what="it was called")
        eventually(lambda: len(server.asked) >= 2, within_s=60, what="the other has said twice that it stands by")
        hanging.wakes()
        assert asked.result() == {"id": "late"}
    assert len(hanging.calls) == 1


def test_what_must_not_be_sent_twice_waits_for_one_that_hangs(hanging):
    with scripted() as server:
        client = Client(f"{hanging.url},{server.url}", timeout_s=0.5)
        with pytest.raises(NoAnswer):
            client.change_reservation("r", {"rate": "1 Mbit/s"}, if_match='"1"')
        assert server.asked == []


@pytest.mark.parametrize("url", ["http://a,http://", "nonsense,http://a", "http://a,nonsense"])
def test_each_address_must_be_one(url):
    with pytest.raises(NotAUrl):
        Client(url)


@pytest.mark.parametrize("url", ["http://a,", ",http://a", "http://a, ,http://b", ""])
def test_an_address_that_is_missing_is_told_as_that(url):
    with pytest.raises(NotAUrl, match=r'an address is missing in "'):
        Client(url)
    assert [Client(one).url for one in (" http://a ", "http://a , http://b ")] == [" http://a ", "http://a , http://b "]


def test_a_reservation_is_made_at_who_leads_of_two_controllers():
    site, behind = FakeSite(chile_illinois(), standing=()), FakeSite(chile_illinois(), standing=())
    site.attach_all()
    site.wire()
    view = LeaderView(PairStanding.STANDBY, False, 7, "http://elsewhere", "ctl-a", 1_790_000_000_000_000, 0)
    leads = replace(view, standing=PairStanding.LEADER, takes=True)

    def app(of, seen):
        return api(
            dependencies_of(of, leader=lambda: seen, names=frozenset({"127.0.0.1"})), all_may(lambda: datetime.now(UTC))
        )

    with served(app(behind, view)) as standby, served(app(site, leads)) as leader:
        client = Client(f"{standby},{leader}")
        assert Client(standby).get_leader()["standing"] == "standby"
        assert Client(f"{standby},{leader}").get_leader()["standing"] == "leader"
        held = client.hold_reservation(ASKED)
        assert held["state"] == "held"
        assert Client(f"{standby},{leader}").get_reservation(held["id"])["id"] == held["id"]
        assert {host["name"] for host in Client(f"{standby},{leader}").list_hosts() if host["connected"]}
    assert len(site.value.wished.ledger.reservations) == 1
    assert not behind.value.wished.ledger.reservations
