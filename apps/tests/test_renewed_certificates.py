"""Certificates while an agent is attached: one that is renewed is shown, and a controller that is revoked is left."""

import contextlib

import pytest

from apps.tests import trusting
from apps.tests.trusting import BEFORE, TODAY, AgentsListener, Pki, agent_running, both_logged, free_port
from controller.security import pki_files
from controller.southbound.agents import hosts
from controller.southbound.agents.hosts import HostSessions
from hostagent.agent import shown_certificate
from mininet_tests.testing.eventually import eventually
from topology.certificates import Kind

LEASE_MS = 3000  # as a controller has it
OFTEN_S = 0.2


@pytest.fixture
def own(tmp_path):
    return Pki.made(tmp_path)


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(trusting, "LEASE_MS", LEASE_MS)
    monkeypatch.setattr(shown_certificate, "LOOK_S", OFTEN_S)


@contextlib.contextmanager
def sessions(own, listener):
    """A controller's port; yield it, and its address."""
    made = HostSessions(listener, LEASE_MS, own.controller())
    address = f"127.0.0.1:{free_port()}"
    made.start(address)
    try:
        yield made, address
    finally:
        made.stop()


@contextlib.contextmanager
def attached(own, revoked=None):
    """An agent whose certificate has 19 days left, attached; yield what is logged, the listener and the sessions."""
    listener, tls = AgentsListener(), own.agent(days=120, revoked=revoked)
    with (
        both_logged() as logs,
        sessions(own, listener) as (controller, address),
        agent_running(address, tls=tls) as agent,
    ):
        eventually(lambda: listener.applied, within_s=5, what="it is attached")
        yield logs, listener, controller, agent


def days_left(controller):
    (ends_s,) = controller.certificates().values()
    return (ends_s - TODAY.timestamp()) // 86_400


def said(logs, event):
    return [entry for entry in logs if entry["event"] == event]


def test_a_certificate_that_is_renewed_is_shown_without_a_restart_and_without_a_gap_of_the_lease(own):
    with attached(own) as (logs, listener, controller, agent):
        assert days_left(controller) < 20
        pki_files.renew(own.folder, Kind.AGENT, "base20", TODAY, 500)
        eventually(
            lambda: agent.report() and controller.certificates() and days_left(controller) > 400,
            within_s=10,
            what="the new certificate is shown",
        )
        eventually(lambda: len(listener.applied) > 1, within_s=5, what="the plan again")
    assert listener.up == ["base20"] * 2
    assert [entry["why"] for entry in said(logs, "agent.lost")] == [shown_certificate.RENEWED]
    assert not said(logs, "agent.lease_over")


def test_a_certificate_that_does_not_fit_is_spoken_of_and_the_stream_goes_on(own):
    with attached(own) as (logs, listener, _, _agent):
        other = own.agent("base21")
        (own.folder / "agents/base20.pem").write_bytes(other.certificate.read_bytes())
        eventually(lambda: said(logs, "agent.certificate_unfit"), within_s=10, what="it is said")
        told = len(listener.up)
        (own.folder / "agents/base20.pem").unlink()
        eventually(lambda: len(said(logs, "agent.certificate_unfit")) > 1, within_s=10, what="that it is gone, too")
    assert told == len(listener.up) == 1
    assert said(logs, "agent.certificate_unfit")[0]["why"].endswith("is not the key of the certificate")


def test_a_certificate_of_an_authority_that_is_new_here_is_shown_at_the_next_call_alone(own, monkeypatch):
    monkeypatch.setattr(shown_certificate, "ENDING_AGAIN_S", OFTEN_S)
    with attached(own) as (logs, listener, _, _agent):
        pki_files.init(own.folder, "another", BEFORE, 1000, force=True)
        pki_files.make(own.folder, Kind.AGENT, ("base20",), TODAY, 90, force=True)
        before = len(said(logs, "agent.certificate_ending"))
        eventually(lambda: len(said(logs, "agent.certificate_ending")) > before + 2, within_s=10, what="it has looked")
    assert listener.up == ["base20"]


def test_a_controller_that_is_revoked_is_left_and_not_believed_again(own):
    with attached(own, revoked=own.folder / "crl.pem") as (logs, listener, _, _agent):
        own.revoke("127.0.0.1")
        eventually(lambda: said(logs, "agent.refused"), within_s=10, what="it is left, and refused at the next call")
    assert [entry["why"] for entry in said(logs, "agent.lost")] == [shown_certificate.REVOKED]
    assert listener.up == ["base20"]


def test_both_ends_say_each_day_that_the_agents_certificate_ends_soon(own, monkeypatch):
    monkeypatch.setattr(hosts, "LOOK_S", OFTEN_S)
    monkeypatch.setattr(hosts, "ENDING_AGAIN_S", 2 * OFTEN_S)
    monkeypatch.setattr(shown_certificate, "ENDING_AGAIN_S", 2 * OFTEN_S)
    with attached(own) as (logs, listener, _, _agent):
        for event in ("host.certificate_ending", "agent.certificate_ending"):
            eventually(lambda event=event: len(said(logs, event)) > 2, within_s=10, what=event)
    assert listener.up == ["base20"]
