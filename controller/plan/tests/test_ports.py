"""What a start of a plan's senders needs at each port, and what is chosen there."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.bursts import Choice, departure_bytes
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.ports import port_bursts
from controller.plan.tests.factories import GIGABIT, IMAGE, RAW_IMAGES, RING, any_network, demands_in, flow, plan_of
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop, Link
from topology.protocol import FlowClass

WAN = Hop("ls1", "ch1")
ALL = {"base20", "base21", "base22", "base23"}


def at(link, found):
    (one,) = (port for port in found if port.link == link)
    return one


def with_buffer(buffer_bytes):
    """The path to Chile with another buffer at the port of its circuit."""
    network = chile_illinois()
    line: Link = network.link("ls1", "ch1")
    network.graph.edges["ls1", "ch1"]["link"] = replace(line, buffer_bytes=buffer_bytes)
    return network


def image_at(buffer_bytes, paced):
    network = with_buffer(buffer_bytes)
    return at(WAN, port_bursts(plan_of(*IMAGE, network=network), network, paced))


def test_the_circuits_port_needs_half_of_the_window_when_two_start_unpaced():
    port = image_at(6_250_000, ALL)
    assert port.hosts == ("base20", "base21")
    assert port.circuit == "chile-illinois"
    assert abs(port.unpaced_bytes - port.window_bytes / 2) <= 1
    assert 20_500_000 < port.window_bytes < 23_000_000  # Freemon's, without what other classes are guaranteed


def test_agents_are_told_to_pace_and_need_little():
    port = image_at(6_250_000, ALL)
    (chosen,) = port.chosen
    assert (chosen.choice, chosen.hosts) == (Choice.PACE, ("base20", "base21"))
    assert port.fits
    assert port.chosen_bytes < 250_000
    assert chosen.reason == (
        "held at their shares by agents, 2 allocations of base20, base21 can put 236.9 kB at once into 6.2 MB"
    )


def test_hosts_without_an_agent_start_one_after_another_beside_those_that_are_paced():
    port = image_at(6_250_000, {"base20"})
    paced, other = port.chosen
    assert (paced.choice, paced.hosts) == (Choice.PACE, ("base20",))
    assert other.hosts == ("base21",)
    assert other.choice in {Choice.STAGGER, Choice.CAP, Choice.NOTHING}
    assert port.fits


def test_beside_others_the_paced_count_on_no_more_of_the_port_than_their_shares():
    port = image_at(100_000_000, {"base20"})
    paced, other = port.chosen
    entry = next(e for e in plan_of(*IMAGE).entries if e.flow.host == "base20")
    assert paced.needed_bytes == departure_bytes(entry.payload_bps, GIGABIT.framing)
    assert other.choice is Choice.NOTHING


def test_two_without_an_agent_start_one_after_the_other():
    port = image_at(6_250_000, ())
    (chosen,) = port.chosen
    assert chosen.choice is Choice.STAGGER
    assert chosen.offsets_us[0] == 0
    # the port holds 6.25 MB; the second one starts when its own burst would have no other beside it
    assert 80_000 < chosen.offsets_us[1] <= 90_000


def test_a_start_that_does_not_fit_even_when_paced_is_said_to_be_one():
    port = image_at(50_000, ALL)
    assert port.chosen_bytes > port.buffer_bytes == 50_000
    assert not port.fits


def test_where_the_port_is_faster_than_what_comes_nothing_is_needed():
    network = chile_illinois()
    port = at(Hop("ch1", "arch"), port_bursts(plan_of(*IMAGE, RAW_IMAGES), network, ()))
    assert (port.unpaced_bytes, port.chosen_bytes, port.circuit) == (0, 0, None)


def test_what_comes_by_one_circuit_comes_no_faster_than_that():
    flows = [flow(FlowClass.URGENT, host, "pop10", RING) for host in ("albu10", "albu20")]
    found = port_bursts(plan_of(*flows, network=RING), RING, ())
    first, second, last = (at(hop, found) for hop in flows[0].links[1:])
    assert first.unpaced_bytes > 0
    assert (second.unpaced_bytes, last.unpaced_bytes) == (0, 0)


def test_shares_above_the_rate_of_a_sites_own_port_may_fill_it_with_their_windows():
    apart = [plan_of(flow(FlowClass.URGENT, host, "pop10", RING), network=RING) for host in ("losa10", "live10")]
    both = replace(apart[0], entries=tuple(entry for plan in apart for entry in plan.entries))  # between two plans
    port = at(Hop("pop1", "pop10"), port_bursts(both, RING, {"losa10", "live10"}))
    assert port.chosen_bytes == port.window_bytes
    assert "more than 10 Gbit/s" in port.chosen[0].reason


@given(st.data())
def test_every_plan_has_an_answer_at_every_port_its_data_crosses(data):
    network = data.draw(any_network)
    plan = planned(2, network, DEFAULT_POLICY, data.draw(demands_in(network)))
    paced = data.draw(st.sets(st.sampled_from([h.name for h in network.hosts])))
    found = port_bursts(plan, network, paced)
    switches = {s.name for s in network.switches}
    crossed = {link for e in plan.entries for link in e.flow.links if link.tail in switches}
    assert {port.link for port in found} == crossed
    for port in found:
        assert sorted(host for c in port.chosen for host in c.hosts) == sorted(port.hosts)
        assert 0 <= port.unpaced_bytes <= port.window_bytes
        assert all((c.choice is Choice.PACE) == ({*map(network.machine, c.hosts)} <= paced) for c in port.chosen)
