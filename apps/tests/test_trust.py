"""Agents and controllers over real TLS on the loopback: who is let in, and what both ends say to who is not."""

import contextlib
import socket
import ssl
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from apps.tests.trusting import (
    BEFORE,
    AgentsListener,
    Pki,
    agent_running,
    agents_of,
    attached,
    both_logged,
    both_say,
    controlled,
    controllers_of,
    far_from,
    free_port,
)
from controller.security import pki_files
from controller.southbound.agents import hosts
from controller.southbound.agents.hosts import MOST_OF_ONE
from hostagent.agent.stream import NOT_A_CONTROLLERS
from mininet_tests.testing.eventually import eventually
from topology.certificates import REST_URI, Kind
from topology.protocol import Hello, to_bytes


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Pki.made(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Another site's authority."""
    return Pki.made(tmp_path_factory.mktemp("stranger"))


def test_an_agent_and_a_controller_of_one_authority_find_each_other(site):
    assert both_say(site.controller(), site.agent()) == ("", [])


@pytest.mark.parametrize("speaks_tls", [True, False])
def test_an_agent_whose_connection_is_not_there_at_once_finds_its_controller(site, speaks_tls):
    with controlled(site.controller() if speaks_tls else None) as address, far_from(address) as far:
        assert attached(far, site.agent() if speaks_tls else None) == ""


def test_an_agent_of_another_authority_is_refused(site, stranger):
    ours, theirs = site.agent(), stranger.agent()
    agent = type(ours)(ours.authority, theirs.certificate, theirs.key)
    said, logged = both_say(site.controller(), agent)
    assert said == "the controller refuses our certificate: its authority is unknown there"
    assert logged == ["the agent's certificate is refused: unknown authority: it is not of ours"]


def test_the_certificate_of_rest_is_no_controllers_though_its_name_is(site):
    made = pki_files.make(site.folder, Kind.REST, ("127.0.0.1", REST_URI), BEFORE, 1000)
    rest = replace(site.controller(), key=str(made.key), certificate=str(made.certificate))
    assert both_say(rest, site.agent())[0] == NOT_A_CONTROLLERS


def test_an_expired_agent_is_refused(site):
    said, logged = both_say(site.controller(), site.agent(days=99))
    assert said == "the controller refuses our certificate: it has expired"
    assert logged == ["the agent's certificate is refused: it has expired"]


def test_a_revoked_agent_is_refused(tmp_path):
    own = Pki.made(tmp_path)
    agent = own.agent()
    own.revoke("base20")
    said, logged = both_say(own.controller(), agent)
    assert said == "the controller refuses our certificate: it is revoked"
    assert logged == ["the agent's certificate is refused: it is revoked"]


def test_an_agent_without_a_certificate_is_refused(site):
    class Naked:
        """Believes the authority, and shows nothing."""

        def context(self):
            return ssl.create_default_context(cafile=site.folder / "ca.pem")

        def ends_s(self):
            return 0

    said, logged = both_say(site.controller(), Naked())
    assert said == "the controller says: no certificate was shown"
    assert logged == ["the agent has shown no certificate: has its configuration a tls section?"]


def test_a_controllers_certificate_is_no_agents(site):
    said, logged = both_say(site.controller(), agents_of(site.controller("base20")))
    assert said == "the controller refuses our certificate: it is not for this end"
    assert logged == ["the agent's certificate must not be used by an agent: is it a controller's?"]


def test_an_agents_certificate_is_no_controllers(site):
    said, logged = both_say(controllers_of(site.agent("localhost")), site.agent())
    assert said == "the controller's certificate must not be used by a controller: is it an agent's?"
    assert logged == ["the agent refuses our certificate: it is not for this end"]


def test_a_controller_of_another_authority_is_refused(site, stranger):
    said, logged = both_say(stranger.controller(), site.agent())
    assert said == "the controller's certificate is refused: unknown authority: it is not of ours"
    assert logged == ["the agent refuses our certificate: its authority is unknown there"]


def test_an_expired_controller_is_refused(site):
    said, logged = both_say(site.controller(days=99), site.agent())
    assert said == "the controller's certificate is refused: it has expired"
    assert logged == ["the agent refuses our certificate: it has expired"]


def test_a_revoked_controller_is_refused_by_agents_that_have_the_list(tmp_path):
    own = Pki.made(tmp_path)
    tls = own.controller(revoked=False)
    own.revoke("127.0.0.1")
    said, logged = both_say(tls, own.agent(revoked=tmp_path / "crl.pem"))
    assert said == "the controller's certificate is refused: it is revoked"
    assert logged == ["the agent refuses our certificate: it is revoked"]


def test_a_controller_of_another_name_is_refused(site):
    said, logged = both_say(site.controller("ctl2"), site.agent(), dialled="localhost")
    assert said == "the controller's certificate is not for localhost, which was dialled"
    assert logged == ["the agent refuses our certificate: it is not for the name that was dialled, or damaged"]


def test_a_controller_is_known_by_each_of_its_names_and_addresses(site):
    tls = site.controller("ctl.example.org", "localhost", "127.0.0.1")
    assert [both_say(tls, site.agent(), dialled=name) for name in ("localhost", "127.0.0.1")] == [("", [])] * 2


def test_an_agent_cannot_have_another_hosts_allocations(site):
    said, logged = both_say(site.controller(), site.agent("base21"), host="base20")
    assert said == "the controller says: your certificate is for base21, not base20"
    assert logged == ["its certificate is for base21, not for base20"]


def test_a_host_that_is_not_in_the_network_is_refused(site):
    said, logged = both_say(site.controller(), site.agent("base99"), host="base99")
    assert said == 'the controller says: "base99" is not a host of this network'
    assert logged == ["not in the topology"]


def test_an_agent_without_tls_is_told_so_at_a_port_with_it(site):
    said, logged = both_say(site.controller(), None)
    assert said == "the controller hung up without an answer; if it speaks TLS, say tls in the configuration"
    assert logged == ["the agent does not speak TLS"]


def test_an_agent_with_tls_is_told_so_at_a_port_without_it(site):
    said, logged = both_say(None, site.agent())
    assert said == "the controller does not speak TLS"
    assert logged == ["the agent speaks TLS, this port does not"]


def test_a_revoked_agent_that_is_connected_is_turned_out_and_cannot_come_back(tmp_path):
    own, listener = Pki.made(tmp_path), AgentsListener()
    first, second = own.agent(), own.agent("base21")
    with (
        both_logged() as logs,
        controlled(own.controller(), listener) as address,
        agent_running(address, tls=first),
        agent_running(address, tls=second, host="base21"),
    ):
        eventually(lambda: set(listener.up) == {"base20", "base21"}, within_s=5, what="both are attached")
        own.revoke("base20")
        assert hosts.LOOK_S <= 1.0  # so often it is looked, and a busy machine is late
        eventually(lambda: listener.down == ["base20"], within_s=10, what="it is turned out")
        again = "the controller refuses our certificate: it is revoked"
        eventually(lambda: again in _whys(logs, "agent.refused"), within_s=5, what="it calls again")
    assert "the controller says: your certificate is revoked" in _whys(logs, "agent.refused")
    assert "its certificate is revoked" in _whys(logs, "host.untrusted")
    assert listener.up.count("base20") == 1


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path):
    own = Pki.made(tmp_path)
    tls = own.controller(days=99)
    with controlled(tls) as address:
        agent = own.agent()
        assert "expired" in attached(address, agent)
        own.controller()
        eventually(lambda: not attached(address, agent), within_s=5, what="the new certificate")


def test_files_that_do_not_fit_any_more_leave_those_before_in_use(tmp_path):
    own = Pki.made(tmp_path)
    tls = own.controller()
    with both_logged() as logs, controlled(tls) as address:
        agent = own.agent()
        (tmp_path / "crl.pem").write_text("half a li")
        eventually(lambda: _whys(logs, "tls.unusable"), within_s=5, what="it is said")
        assert not attached(address, agent)


def test_an_agent_whose_files_are_gone_says_so_and_tries_again(tmp_path):
    own, listener = Pki.made(tmp_path), AgentsListener()
    tls = own.agent()
    key = tls.key.read_bytes()
    tls.key.unlink()
    with both_logged() as logs, controlled(own.controller(), listener) as address, agent_running(address, tls=tls):
        eventually(lambda: _whys(logs, "agent.refused"), within_s=5, what="it is said")
        assert _whys(logs, "agent.refused")[0].startswith("the files of tls cannot be used: No such file")
        tls.key.write_bytes(key)
        eventually(lambda: listener.applied, within_s=8, what="it is attached")


def test_certificates_that_end_soon_are_spoken_of_at_both_ends(site):
    listener = AgentsListener()
    with (
        both_logged() as logs,
        controlled(site.controller(days=110), listener) as address,
        agent_running(address, tls=site.agent(days=120)),
    ):
        eventually(lambda: listener.applied, within_s=5, what="it is attached")
    ending = {(e["event"], e.get("whose")): e["days_left"] for e in logs if e["event"].endswith("certificate_ending")}
    assert ending == {
        ("host.certificate_ending", None): 19,
        ("agent.certificate_ending", "host"): 19,
        ("agent.certificate_ending", "controller"): 9,
    }


def test_another_controller_of_the_list_is_obeyed_when_the_first_is_dead(site):
    listener = AgentsListener()
    dead = f"127.0.0.1:{free_port()}"
    with controlled(site.controller(), listener) as address, agent_running(dead, address, tls=site.agent()):
        eventually(lambda: listener.applied == [7], within_s=5, what="the second one's plan")


def test_an_older_controllers_plan_is_declined_beside_a_newer_ones(site):
    newer, older = AgentsListener(epoch=10), AgentsListener(epoch=8)
    port, tls = free_port(), site.controller()
    with (
        both_logged() as logs,
        controlled(tls, newer) as address,
        agent_running(address, f"127.0.0.1:{port}", tls=site.agent()) as agent,
    ):
        eventually(lambda: newer.applied == [10], within_s=5, what="the newer plan")
        with controlled(tls, older, port):
            eventually(lambda: older.declined, within_s=10, what="the older one is declined")
            eventually(lambda: len(older.up) > 1, within_s=10, what="it was hung up, and is called again")
        assert agent.report().controller == address
    (declined, *_) = older.declined
    assert (declined.epoch, declined.in_force) == (8, 10)
    assert declined.why.startswith("epoch 8 is older than 10, which this agent has held")
    assert (older.applied, newer.applied) == ([], [10])
    assert [(e["epoch"], e["in_force"]) for e in logs if e["event"] == "agent.old_epoch"] == [(8, 10)]


def test_the_highest_epoch_is_remembered_beyond_the_lease(site):
    listener = AgentsListener(epoch=10)
    port, tls = free_port(), site.controller()
    with agent_running(f"127.0.0.1:{port}", tls=site.agent()) as agent:
        with controlled(tls, listener, port):
            eventually(lambda: listener.applied == [10], within_s=5, what="the plan")
        eventually(lambda: not agent.report().telemetry.lease_left_ms, within_s=5, what="the end of the lease")
        restarted = AgentsListener(epoch=8)
        with controlled(tls, restarted, port):
            eventually(lambda: restarted.declined, within_s=10, what="it is declined")
        assert restarted.applied == []


def test_a_controller_that_has_no_plan_yet_is_no_older_one(site):
    listener = AgentsListener(epoch=10)
    port, tls = free_port(), site.controller()
    with agent_running(f"127.0.0.1:{port}", tls=site.agent()):
        with controlled(tls, listener, port):
            eventually(lambda: listener.applied == [10], within_s=5, what="the plan")
        starting = AgentsListener(epoch=0)
        with controlled(tls, starting, port):
            eventually(lambda: starting.applied == [0], within_s=10, what="it is waited for")
        assert starting.declined == []


def test_an_agent_stops_at_once_in_the_middle_of_a_call(site):
    with controlled(site.controller()) as address, agent_running(address, tls=site.agent()):
        pass  # its end is waited for, and tried, in agent_running


def test_who_connects_and_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("controller.southbound.agents.hosts.HELLO_WITHIN_S", 0.2)
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with controlled(None) as address:
        with connect(f"ws://{address}/headway/agents", proxy=None) as silent, pytest.raises(ConnectionClosed):
            silent.recv(timeout=5)
        monkeypatch.setattr("controller.southbound.agents.hosts.HELLO_WITHIN_S", 10.0)
        with connect(f"ws://{address}/headway/agents", proxy=None) as polite:
            polite.send(to_bytes(Hello("base20", "0", "6.12")))
            assert polite.recv(timeout=5)


def test_a_flood_of_an_address_that_says_no_hello_turns_out_its_own_and_agents_are_let_in(site):
    with capture_logs() as logs, controlled(site.controller()) as address, contextlib.ExitStack() as open_ones:
        host, port = address.split(":")
        flood = []
        for _ in range(MOST_OF_ONE + 50):
            made = socket.create_connection((host, int(port)), timeout=20, source_address=("127.0.0.2", 0))
            flood.append(open_ones.enter_context(made))
        assert flood[0].recv(1) == b"", "the first still has its place"
        assert not attached(address, site.agent())
        flood[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            flood[-1].recv(1)
        for one in flood[-40:]:
            one.sendall(b"GET / HTTP/1.1")
        eventually(
            lambda: "the agent does not speak TLS" in _whys(logs, "host.untrusted"), within_s=5, what="it is said"
        )
    said = [each for each in logs if each.get("peer", "").startswith("127.0.0.2")]
    assert len({each["why"] for each in said}) == len(said), "the same is said twice"


def _whys(logs, event):
    return [entry["why"] for entry in logs if entry["event"] == event]
