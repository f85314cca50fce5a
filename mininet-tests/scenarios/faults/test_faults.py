"""Faults in the lab while traffic runs: what was right stays, what was lost comes back, nothing exceeds the circuit."""

import socket
from types import SimpleNamespace

import pytest

from mininet_tests.lab.played import played
from mininet_tests.probes.invariant_watch import InvariantWatch, Sample, least_of, violated
from mininet_tests.scenarios.faults.aims import WITH_A_SILENT_AGENT, of_a_case, of_a_pair
from mininet_tests.scenarios.faults.samples import GIVEN_AWAY, KEPT, PAIR
from mininet_tests.site.faults import Traffic
from mininet_tests.site.tcp_flows import TcpStream
from mininet_tests.testing.aims import stated
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

CASES = (
    "openflow cut",
    "vswitchd killed",
    "openflow silent, plan changes",
    "plan changes back",
    "controller away",
    "database and openflow",
    *WITH_A_SILENT_AGENT,
    "so much is lost",
)
in_lab = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(2400),
]


URGENT, BACKGROUND = FlowClass.URGENT, FlowClass.BACKGROUND


def sample(hosts=(60, 30), meters=(61, 31), queues=(62, 32), said=()):
    """What is read on the way out at a moment: millions of bit/s of two connections, and of their classes."""
    out, back = "ls1->ch1", "ch1->ls1"
    hosts_bps = {out: {f"base2{n}": rate * 1_000_000 for n, rate in enumerate(hosts)}}
    meters_bps, queues_bps = (
        {out: dict(zip((URGENT, BACKGROUND), (r * 1_000_000 for r in rates), strict=True)), back: {}}
        for rates in (meters, queues)
    )
    return Sample(0, hosts_bps, (), meters_bps, queues_bps, said)


def wrong(seen):
    """What is wrong with a sample on a circuit of 100 Mbit/s."""
    return list(violated(seen, chile_illinois(100_000_000)))


def test_layers_that_hold_each_other_are_not_violated():
    assert wrong(sample()) == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"hosts": (60, 39)}, "the hosts 99,000,000"),
        ({"queues": (62, 37)}, "the queues 99,000,000"),
        ({"meters": (63, 31)}, "urgent: meter 63,000,000"),
        ({"said": ("as the controller says",)}, "as the controller says"),
    ],
)
def test_a_layer_above_what_the_next_can_hold_is_named(changed, named):
    (found,) = wrong(sample(**changed))
    assert named in found


def test_hosts_that_are_above_the_circuit_are_named_with_what_each_sends():
    (found,) = wrong(sample(hosts=(60, 39)))
    assert found.endswith(": base20 60,000,000, base21 39,000,000")


def test_what_the_kernel_tells_of_connections_is_kept_where_a_layer_is_above_the_next():
    class Above(InvariantWatch):
        def _sampled(self, site):
            return sample(hosts=(60, 39))

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        site = SimpleNamespace(realised=SimpleNamespace(network=chile_illinois(100_000_000)))
        with receiver:
            streams = {"base20": TcpStream(sender, receiver, left_bytes=1), "base21": TcpStream(sender, receiver)}
            watch = Above(Traffic(site, streams), "arch")
            watch._look()
    (found,) = watch.found
    assert {name: told["rto_us"] > 0 for name, told in found.stood.items()} == {"base20": True}


def test_one_that_has_shrunk_while_another_was_read_is_not_too_much():
    before, after = sample(hosts=(60, 40), meters=(63, 31)), sample(hosts=(20, 78), meters=(62, 31))
    assert len(wrong(before)) == 2
    assert wrong(least_of(before, after)) == []
    assert len(wrong(least_of(before, before))) == 2


def test_a_connection_that_has_nothing_to_send_any_more_sends_nothing():
    before, after = sample(hosts=(60, 40), meters=(63, 31)), sample(hosts=(60,), meters=(62, 31))
    assert wrong(least_of(before, after)) == []


def short(aims):
    """The names of the aims that are missed."""
    return stated(aims)["falls_short"]


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"most_sockets_bps": 190_800_000}, ["most that sockets may send, frame bit/s"]),
        ({"most_sockets_bps": 9_000_000}, ["the image's was in use before"]),
        ({"planned_payload_bps": {"raw-images": 941_104}}, ["after the lease the background is planned, bit/s"]),
        ({"calendar_off_s": 0}, ["the clock is said to be off, s"]),
    ],
)
def test_a_dead_agents_share_that_is_given_away_too_soon_or_never_falls_short(changed, missed):
    assert short(of_a_case("agent dead, clock forward", GIVEN_AWAY | changed, 3.0)) == missed


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"planned_payload_bps": {"image": 0, "reservation": 941_482}}, ["planned for the image, payload bit/s"]),
        ({"kept": KEPT | {"delivered_bytes": 39}}, ["what became of an announcement: delivered"]),
        ({"early_ms": -1.0}, ["before its promise, ms"]),
    ],
)
def test_a_promise_of_a_pair_that_drops_out_of_the_plan_falls_short(changed, missed):
    (*found,) = short(of_a_pair(PAIR | changed))
    assert [name.removeprefix("a pair promised twice: ") for name in found] == missed


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What a few of the cases have shown in one run."""
    folder, chosen = tmp_path_factory.mktemp("faults"), (word for c in (*CASES, "pair") for word in ("--case", c))
    chosen = (*chosen, "--layers-every", "0.3")  # at the run's own ten times a second the looks fill the CPU
    return played("scenarios.faults.run", folder, *chosen, dilation=2, timeout_s=2100, report="report.json")


class TestInTheLab:
    """What the cases have shown."""

    pytestmark = in_lab

    def test_nothing_falls_short(self, report):
        assert report["samples"] > 200
        assert report["falls_short"] == [], {name: report["aims"][name] for name in report["falls_short"]}

    def test_a_plan_made_while_switches_are_silent_violates_nothing(self, report):
        assert not report["faults"]["openflow silent, plan changes"]["violations"]

    @pytest.mark.parametrize("case", ["openflow cut", "controller away", "database and openflow"])
    def test_there_were_rules_that_could_have_been_put_again(self, report, case):
        assert report["faults"][case]["rules"] > 30

    def test_every_case_was_played(self, report):
        assert set(report["faults"]) == set(CASES)
        assert report["pair"] is not None
