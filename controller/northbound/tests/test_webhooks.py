"""Webhooks, told to a real HTTP server that is not always well."""

import json
import os
import re
import resource
import ssl
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from controller.events import Events
from controller.northbound import webhooks
from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.tests.receiver import receiving
from controller.northbound.tests.site import dependencies_of
from controller.northbound.webhooks import Delivery, Webhook
from controller.security import pki_files
from controller.security.authorities import trusted
from controller.settings.webhooks import ALARMS, WebhookSection, WebhookSettings, secret_of
from controller.settings.webhooks import webhooks as configured
from controller.tests.fakes import FakeSite
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from topology.certificates import Kind
from topology.problems import Problems

DOCS = Path(__file__).resolve().parents[3] / "docs"
SECRET = "whsec_" + "QUJD" * 10


@pytest.fixture
def receiver():
    """One that answers 200."""
    with receiving() as one:
        yield one


@contextmanager
def told(events, url, folder, patterns=ALARMS, begun=lambda _hook: None):
    """Tell somebody, in a thread, until the end; before it begins, ``begun`` has it."""
    file = folder / "secret"
    file.write_text(SECRET)
    file.chmod(0o600)
    stop = threading.Event()
    hook = Webhook(events, WebhookSettings(url, file, patterns))
    begun(hook)
    thread = threading.Thread(target=hook.run, args=(stop.wait,))
    thread.start()
    try:
        yield hook
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Nothing is waited for longer than it must."""
    monkeypatch.setattr(webhooks, "LOOK_S", 0.02)
    monkeypatch.setattr(webhooks, "AGAIN_S", (0.02,))


@pytest.fixture
def events():
    return Events(lambda: time.time_ns() // 1000)


def names(events):
    """What has happened to webhooks."""
    return [one.name for one in events.since(0).events if one.name.startswith("webhook.")]


def hears(receiver, count):
    eventually(lambda: len(receiver.hears) >= count, within_s=10, what=f"{count} messages; {receiver.hears}")
    return receiver.hears[:count]


def test_only_what_is_asked_for_is_told_in_order_with_its_fields(receiver, events, tmp_path):
    with told(events, receiver.url, tmp_path, ("announcement.late", "drift.*")):
        events.publish("transition.step", us=7)
        events.publish("announcement.late", announcement="image", why="loss")
        events.publish("drift.alarm", place="ls1")
        said = [json.loads(body) for _, body in hears(receiver, 2)]
    assert [one["type"] for one in said] == ["announcement.late", "drift.alarm"]
    assert said[0]["data"] == {"announcement": "image", "why": "loss"}


def test_one_that_stood_by_tells_only_of_what_happens_from_when_it_leads_on(receiver, events, tmp_path):
    events.publish("drift.alarm", place="seen while another led")
    with told(events, receiver.url, tmp_path, begun=lambda hook: hook.lead(7)):
        events.publish("leader.lost", before="a")
        ((_, body),) = hears(receiver, 1)
    assert json.loads(body)["type"] == "leader.lost"


def test_half_a_character_in_what_happened_ends_no_webhook(receiver, events, tmp_path):
    with told(events, receiver.url, tmp_path):
        events.publish("reservation.failed", reservation="a", why="half of \ud83d")
        events.publish("drift.alarm", place="ls1")
        said = [json.loads(body) for _, body in hears(receiver, 2)]
    assert [one["type"] for one in said] == ["reservation.failed", "drift.alarm"]
    assert said[0]["data"] == {"reservation": "a", "why": "half of \ufffd"}


def test_the_signature_is_what_the_manual_checks(receiver, events, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "webhooks.md").read_text(), re.DOTALL)
    manual = {}
    exec(code, manual)  # noqa: S102 - the manual's own example
    with told(events, receiver.url, tmp_path):
        events.publish("switch.unknown", dpid="e9")
        ((headers, body),) = hears(receiver, 1)
    assert manual["is_from_headway"](headers, body, SECRET)
    assert not manual["is_from_headway"](headers, body + b" ", SECRET)
    assert not manual["is_from_headway"](headers, body, "whsec_" + "QUJE" * 10)
    assert not manual["is_from_headway"](headers | {"webhook-timestamp": "1"}, body, SECRET)


def test_what_is_not_taken_is_told_again_under_its_id_and_that_it_failed_is_logged_once(receiver, events, tmp_path):
    receiver.answers = [500, 302, 404]
    with told(events, receiver.url, tmp_path) as hook:
        events.publish("drift.alarm", place="ls1")
        events.publish("drift.alarm", place="ch1")
        found = hears(receiver, 5)
        eventually(lambda: "webhook.over" in names(events), within_s=10, what="it is over")
    assert [json.loads(body)["data"]["place"] for _, body in found] == ["ls1"] * 4 + ["ch1"]
    assert len({headers["webhook-id"] for headers, _ in found}) == 2
    assert names(events) == ["webhook.failing", "webhook.over"]
    assert hook.outcomes == {Delivery.TAKEN: 2, Delivery.FAILED: 3}
    assert hook.failing_s() == 0


def test_what_happens_before_it_begins_and_just_before_its_end_is_told(receiver, events, tmp_path, monkeypatch):
    monkeypatch.setattr(webhooks, "LOOK_S", 3600.0)  # it is never looked but at the end
    events.publish("promises.gone", promises=3)
    with told(events, receiver.url, tmp_path, ("*",)) as hook:
        events.publish("drift.alarm", place="ls1")
    assert [json.loads(body)["type"] for _, body in receiver.hears] == ["promises.gone", "drift.alarm"]
    assert hook.outcomes == {Delivery.TAKEN: 2}


def test_the_end_waits_for_a_server_that_hangs_for_a_moment_only(receiver, events, tmp_path, monkeypatch):
    monkeypatch.setattr(webhooks, "LOOK_S", 3600.0)
    monkeypatch.setattr(webhooks, "LAST_S", 0.2)
    receiver.answers = [0]
    with told(events, receiver.url, tmp_path):
        for place in ("ls1", "ch1", "ls1"):
            events.publish("drift.alarm", place=place)
        ending_s = time.monotonic()
    assert time.monotonic() - ending_s < webhooks.PATIENCE_S
    assert len(receiver.hears) <= 1


def test_a_server_that_hangs_or_is_not_there_is_given_up_in_time(receiver, events, tmp_path, monkeypatch):
    monkeypatch.setattr(webhooks, "PATIENCE_S", 0.2)
    monkeypatch.setattr(webhooks, "GIVE_UP_S", 0.1)
    receiver.answers = [0]
    with told(events, receiver.url, tmp_path):
        events.publish("drift.alarm", place="ls1")
        eventually(lambda: "webhook.given_up" in names(events), within_s=10, what="it is given up")
        monkeypatch.setattr(webhooks, "GIVE_UP_S", 60.0)  # what is answered late is asked for again
        events.publish("drift.alarm", place="ch1")
        eventually(lambda: "webhook.over" in names(events), within_s=10, what="the next is told")
    monkeypatch.setattr(webhooks, "GIVE_UP_S", 0.1)
    with told(events, "http://127.0.0.1:1/hook", tmp_path) as hook:
        events.publish("drift.alarm", place="ls1")
        eventually(lambda: hook.outcomes[Delivery.GIVEN_UP] == 3, within_s=10, what="nobody listens")
        assert hook.outcomes[Delivery.TAKEN] == 0
        eventually(lambda: hook.failing_s() > 0.1, within_s=10, what="it is known how long nothing was taken")


def test_what_has_waited_for_too_long_behind_others_is_given_up_at_once(receiver, events, tmp_path, monkeypatch):
    receiver.answers = [500] * 10_000
    with told(events, receiver.url, tmp_path) as hook:
        for place in ("ls1", "ch1", "ls2"):
            events.publish("drift.alarm", place=place)
        hears(receiver, 2)
        monkeypatch.setattr(webhooks, "GIVE_UP_S", 0.0)  # as if they were an hour old
        eventually(lambda: hook.outcomes[Delivery.GIVEN_UP] == 3, within_s=10, what="all are given up")
    said = [json.loads(body) for _, body in receiver.hears]
    assert {one["data"]["place"] for one in said if one["type"] == "drift.alarm"} == {"ls1"}


def test_a_server_that_is_back_after_all_was_given_up_is_told_that_and_fails_no_more(
    receiver, events, tmp_path, monkeypatch
):
    receiver.answers = [500] * 10_000
    with told(events, receiver.url, tmp_path) as hook:
        events.publish("drift.alarm", place="ls1")
        hears(receiver, 1)
        monkeypatch.setattr(webhooks, "GIVE_UP_S", 0.0)  # as if it were an hour old
        eventually(lambda: "webhook.given_up" in names(events), within_s=10, what="it is given up")
        monkeypatch.setattr(webhooks, "GIVE_UP_S", 3600.0)
        failed = hook.outcomes[Delivery.FAILED]
        eventually(lambda: hook.outcomes[Delivery.FAILED] > failed + 2, within_s=10, what="the server is asked still")
        assert hook.failing_s() > 0
        receiver.answers = []
        eventually(lambda: hook.failing_s() == 0, within_s=10, what="it takes something")
        events.publish("drift.alarm", place="ch1")
        eventually(lambda: hook.outcomes[Delivery.TAKEN] == 2, within_s=10, what="it tells as before")
    (first, _), *_, (given_up, said), (_, last) = receiver.hears
    assert given_up["webhook-id"] == f"{first['webhook-id']}-given-up"
    assert (json.loads(said)["type"], json.loads(said)["data"]) == ("webhook.given_up", {"event_name": "drift.alarm"})
    assert json.loads(last)["data"] == {"place": "ch1"}
    assert names(events) == ["webhook.failing", "webhook.given_up", "webhook.over"]


def test_an_answer_without_an_end_is_an_answer(receiver, events, tmp_path):
    receiver.is_endless = True  # as a stream of events that somebody has taken for a webhook
    with told(events, receiver.url, tmp_path) as hook:
        for place in ("ls1", "ch1"):
            events.publish("drift.alarm", place=place)
        eventually(lambda: hook.outcomes == {Delivery.TAKEN: 2}, within_s=10, what="both are taken")


def test_a_server_that_answers_by_drops_is_told_again_after_the_time_that_an_answer_has(
    receiver, events, tmp_path, monkeypatch
):
    monkeypatch.setattr(webhooks, "PATIENCE_S", 0.2)
    receiver.is_processing = True
    with told(events, receiver.url, tmp_path) as hook:
        events.publish("drift.alarm", place="ls1")
        assert len({headers["webhook-id"] for headers, _ in hears(receiver, 2)}) == 1
        assert [one.fields["why"] for one in events.since(0).events if one.name == "webhook.failing"] == [
            "no answer within 0.2 s"
        ]
        eventually(lambda: hook.failing_s() > 0.2, within_s=3, what="it takes nothing")
        receiver.is_processing = False
        eventually(lambda: hook.outcomes[Delivery.TAKEN] == 1, within_s=5, what="it is taken")
        assert hook.failing_s() == 0


def test_the_end_waits_for_a_server_that_answers_by_drops_for_a_moment_only(receiver, events, tmp_path, monkeypatch):
    monkeypatch.setattr(webhooks, "LOOK_S", 3600.0)
    monkeypatch.setattr(webhooks, "LAST_S", 0.2)
    receiver.is_processing = True
    with told(events, receiver.url, tmp_path):
        events.publish("drift.alarm", place="ls1")
        ending_s = time.monotonic()
    assert time.monotonic() - ending_s < webhooks.PATIENCE_S


def test_what_becomes_of_messages_is_seen_by_server(receiver, events, tmp_path):
    with told(events, receiver.url, tmp_path) as hook, told(events, receiver.url + "2", tmp_path) as same_server:
        events.publish("drift.alarm", place="ls1")
        hears(receiver, 2)
        eventually(lambda: hook.outcomes.total() + same_server.outcomes.total() == 2, within_s=5, what="both counted")
    site = FakeSite(chile_illinois(), standing=())
    site.attach_all()
    site.wire()
    behind = dependencies_of(site, webhooks=(hook, same_server))
    text = TestClient(api(behind, all_may(lambda: datetime.now(UTC)))).get("/metrics").text
    assert 'headway_webhook_messages_total{outcome="taken",where="127.0.0.1"} 2.0' in text
    assert 'headway_webhook_messages_total{outcome="failed",where="127.0.0.1"} 0.0' in text
    assert 'headway_webhook_failing_seconds{where="127.0.0.1"} 0.0' in text


def test_a_new_secret_is_used_as_soon_as_it_is_there_and_none_is_a_failure(receiver, events, tmp_path):
    with told(events, receiver.url, tmp_path):
        (tmp_path / "secret").rename(tmp_path / "gone")
        events.publish("drift.alarm", place="ls1")
        eventually(lambda: "webhook.failing" in names(events), within_s=10, what="it fails")
        assert receiver.hears == []
        (tmp_path / "gone").rename(tmp_path / "secret")
        hears(receiver, 1)


@contextmanager
def one_file_left():
    """Let this process open one file more: the secret can be read, and nobody can be told."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, before[1]))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.unraisablehook", lambda _: None)  # asyncio's, of a loop that is half made
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def environment(name, value):
    """Let the environment say something else of whom HTTP's clients trust, or by whom they ask."""
    with pytest.MonkeyPatch.context() as patch:
        trusted.cache_clear()
        patch.setenv(name, value)
        yield
    trusted.cache_clear()


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        (one_file_left(), "OSError: [Errno 24]"),
        (environment("SSL_CERT_FILE", "/nowhere/ca.pem"), "SSL_CERT_FILE"),
        (environment("ALL_PROXY", "socks5://127.0.0.1:1"), ""),
    ],
    ids=("files", "authorities", "socks"),
)
def test_what_we_lack_ourselves_is_a_failure_and_no_end(receiver, events, tmp_path, lacking, why):
    with told(events, receiver.url, tmp_path) as hook:
        events.publish("drift.alarm", place="ls1")
        eventually(lambda: hook.outcomes[Delivery.TAKEN] == 1, within_s=10, what="all is well")
        with lacking:
            events.publish("drift.alarm", place="ch1")
            eventually(lambda: hook.outcomes[Delivery.FAILED] > 1, within_s=10, what="it is tried again")
        eventually(lambda: hook.outcomes[Delivery.TAKEN] == 2, within_s=10, what="it is taken")
    (failing,) = [one for one in events.since(0).events if one.name == "webhook.failing"]
    assert why in failing.fields["why"]


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("whsec_QUJD", 0o600, "24 to 64 bytes, this one 3"),
        ("whsec_*", 0o600, "is not base64"),
        ("ÿ", 0o600, "is not a secret"),
        (SECRET, 0o644, "everybody on this machine can read it"),
        (None, 0, "No such file"),
    ],
)
def test_a_file_without_a_secret_says_what_helps(tmp_path, text, mode, why):
    file = tmp_path / "secret"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(ValueError, match=why):
        secret_of(file)


def test_a_pattern_that_no_event_has_is_refused_with_what_may_have_been_meant(tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(0o600)

    def problems_of(*patterns):
        problems = Problems()
        section = WebhookSection.model_validate({"url": "https://a.example", "secret": file.name, "events": patterns})
        configured((section,), tmp_path, problems)
        return [str(problem) for problem in problems.found]

    assert problems_of("*", "reservation.*", "announcement.late", "*.lost", "drift.[af]*") == []
    (problem,) = problems_of("drift.*", "reservation.lots")
    assert problem.startswith(
        '[0].events[1]: "reservation.lots" is no event that is told, try "reservation.lost" or "reservation.held"; '
    )
    (problem,) = problems_of("host.up")  # in the log alone
    assert '"host.up" is no event that is told' in problem
    (problem,) = problems_of("webhook.*")
    assert "docs/webhooks.md has them all" in problem


def test_a_server_that_lets_in_nobody_without_a_certificate_is_said_to_and_ends_nothing(events, tmp_path, monkeypatch):
    before = pki_files.now() - timedelta(days=1)
    pki_files.init(tmp_path, "example", before, 1000)
    made = pki_files.make(tmp_path, Kind.CONTROLLER, ("127.0.0.1",), before, 100)
    authority = str(tmp_path / "ca.pem")
    asks = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
    asks.verify_mode = ssl.CERT_REQUIRED
    asks.load_cert_chain(made.certificate, made.key)
    monkeypatch.setattr(webhooks, "trusted", lambda: ssl.create_default_context(cafile=authority))
    with receiving(tls=asks) as server, told(events, server.url, tmp_path) as hook:
        events.publish("drift.alarm", place="ls1")
        eventually(lambda: hook.outcomes[Delivery.FAILED] > 3, within_s=20, what="it is told again")
    (said,) = (one for one in events.since(0).events if one.name == "webhook.failing")
    assert "Error" in said.fields["why"]
    assert server.hears == []
