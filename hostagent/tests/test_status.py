"""How the agent says that it stands: from two looks at the kernel, on its socket, and for Prometheus."""

import os
import socket
import stat
import urllib.request
from ipaddress import ip_network
from pathlib import Path

import pytest

from hostagent.agent import metrics, status_socket
from hostagent.agent.status import AgentState, AgentStatus, Identity, Sight, parsed_status, status_bytes, status_from
from hostagent.agent.status_socket import StatusSocket
from topology.protocol import Allocation, FlowClass
from topology.telemetry import EntryTelemetry, Telemetry

WHO = Identity("base20", "0.1", "6.1.0", "1a", "headway1a", 1_790_000_000)
URGENT = Allocation("urgent/base20", FlowClass.URGENT, ip_network("192.0.2.0/24"), 800_000_000, 14_000, dest_port=443)
SECOND_NS = 1_000_000_000


def sight(at_s: float, *, delivered: int = 0, sent: int = 0, again: int = 0, **more) -> Sight:
    """What the agent saw at a time, of one allocation whose lease ends at 3 s."""
    entry = EntryTelemetry(URGENT.name, 4, 2, delivered, sent, again, 180_000, more.pop("fallback", ""))
    counters = Telemetry(7, max(0, 3000 - round(at_s * 1000)), (entry,))
    seen = {"allocations": (URGENT,), "lease_ms": 3000, "controller": "192.0.2.9:50051", "attached_s": 1} | more
    return Sight(round(at_s * SECOND_NS), counters, **seen)


def stands(*sights: Sight, at_s: float | None = None) -> AgentStatus:
    at_ns = sights[-1].at_ns if at_s is None else round(at_s * SECOND_NS)
    return status_from(WHO, sights, at_ns)


def test_the_rate_is_of_the_last_second_and_the_loss_of_all_that_was_seen():
    now = stands(sight(0), sight(1, delivered=1000, sent=1000), sight(2, delivered=91_000_000, sent=10_000, again=10))
    (entry,) = now.entries
    assert entry.delivered_bps == (91_000_000 - 1000) * 8
    assert entry.loss_ppm == 1000
    assert (entry.active, entry.connections, entry.planned_bps) == (2, 4, 800_000_000)


def test_an_allocation_that_is_seen_for_the_first_time_has_no_rate_yet():
    assert stands(sight(1, delivered=1000)).entries[0].delivered_bps == 0


def test_counters_that_began_anew_are_no_negative_rate():
    (entry,) = stands(sight(0, delivered=9, sent=9, again=9), sight(1)).entries
    assert (entry.delivered_bps, entry.loss_ppm) == (0, 0)


def test_the_lease_runs_on_between_two_looks():
    assert stands(sight(1), at_s=1.5).lease_left_ms == 1500


@pytest.mark.parametrize(
    ("seen", "at_s", "state"),
    [
        (sight(1), 1, AgentState.HOLDING),
        (sight(1, fallback="loss"), 1, AgentState.FALLBACK),
        (sight(2), 3.5, AgentState.LEASE_OVER),
        (sight(1, lease_ms=0, allocations=()), 1, AgentState.NO_PLAN),
        (sight(1), 9, AgentState.STUCK),
        (sight(1, allocations=()), 1, AgentState.HOLDING),
    ],
    ids=["holding", "fallback", "lease over", "no plan", "stuck", "holding a plan that has nothing for this host"],
)
def test_the_state_is_the_worst_that_holds(seen, at_s, state):
    assert stands(seen, at_s=at_s).state is state


def test_a_controller_that_has_no_plan_for_the_host_is_no_plan_however_often_it_says_so():
    now = stands(Sight(SECOND_NS, Telemetry(0, 2000), lease_ms=3000, controller="192.0.2.9:50051", attached_s=1))
    assert (now.state, now.lease_left_ms) == (AgentState.NO_PLAN, 0)


def test_a_status_survives_its_json():
    now = stands(sight(0), sight(1, delivered=5))
    assert parsed_status(status_bytes(now)) == now


def test_whoever_may_ask_gets_the_status_and_a_killed_agents_socket_is_replaced(tmp_path: Path):
    path = status_socket.socket_path(tmp_path, "1a")
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    now = stands(sight(1))
    answering = StatusSocket(path, lambda: now)
    assert status_socket.asked_status(path) == now
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    answering.close()
    assert not path.exists()


def test_one_that_asks_and_does_not_read_does_not_stop_the_others(tmp_path: Path):
    entries = tuple(stands(sight(1)).entries * 2000)
    now = AgentStatus(WHO, AgentState.HOLDING, "", 0, 1, 1, 1, {}, 0, 0, entries)
    answering = StatusSocket(tmp_path / "s", lambda: now)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(os.fspath(tmp_path / "s"))
        assert len(status_socket.asked_status(tmp_path / "s").entries) == 2000
    answering.close()


def scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return answer.read().decode()


def test_prometheus_gets_the_same(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    more = {"fallback": "loss", "buffers_may_take_bytes": 10**9, "repairs": 2}
    now = stands(sight(0), sight(1, delivered=7, sent=9, again=1, **more))
    _, end = metrics.metrics_server(f"127.0.0.1:{port}", lambda: now)
    lines = set(scraped(port).splitlines())
    end()
    labels = '{class="urgent",dest="192.0.2.0/24",entry="urgent/base20"}'
    assert {
        'headway_agent_info{host="base20",kernel="6.1.0",version="0.1"} 1.0',
        "headway_agent_controller_connected 1.0",
        "headway_agent_epoch 7.0",
        "headway_agent_lease_left_seconds 2.0",
        "headway_agent_buffers_may_take_bytes 1e+09",
        "headway_agent_repairs_total 2.0",
        f"headway_agent_planned_bytes_per_second{labels} 1e+08",
        f"headway_agent_delivered_bytes_total{labels} 7.0",
        f"headway_agent_sent_segments_total{labels} 9.0",
        f"headway_agent_retransmitted_segments_total{labels} 1.0",
        f"headway_agent_connections{labels} 4.0",
        f"headway_agent_active_connections{labels} 2.0",
        f"headway_agent_rtt_seconds{labels} 0.18",
        'headway_agent_fallback{class="urgent",dest="192.0.2.0/24",entry="urgent/base20",reason="loss"} 1.0',
    } <= lines


def test_metrics_are_served_without_a_look_for_this_hosts_name(monkeypatch):
    """A resolver that is silent would hold up the start, and with it the first dial."""
    asked = []
    monkeypatch.setattr(socket, "getfqdn", lambda name="": asked.append(name) or name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    _, end = metrics.metrics_server(f"127.0.0.1:{port}", lambda: stands(sight(0)))
    assert "headway_agent_epoch 7.0" in scraped(port)
    end()
    assert asked == []


def test_the_line_for_the_service_manager_says_what_matters():
    assert stands(sight(1)).line == "holding: epoch 7, 1 allocations; attached to 192.0.2.9:50051"
