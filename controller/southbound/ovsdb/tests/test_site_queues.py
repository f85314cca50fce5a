"""The queues of a whole site, written to the databases of our own switches alone."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.faults import OPEN, Closed, PlaceFault
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import any_network, demands_in
from controller.site import Site
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.tests.kept_queues import KeptQueues
from controller.southbound.site_switches import SiteSwitches
from mininet_tests.testing.networks import FILES, loaded


def planned_switches():
    """The switches of a site, their writers by name, and a plan."""
    network = loaded(FILES["three-sites"])
    writers = {switch.name: KeptQueues() for switch in network.switches}
    switches = SiteSwitches(Site(network, DEFAULT_POLICY, (), 300), SwitchSessions.__new__(SwitchSessions), writers)
    return switches, writers, planned(2, network, DEFAULT_POLICY, PlanInput(()))


def test_queues_are_written_for_our_ports_alone_where_a_circuit_ends_at_a_site_that_is_not_ours():
    switches, writers, plan = planned_switches()
    assert switches.put_queues(plan, OPEN) == ()
    assert {name: set(writer.ports) for name, writer in writers.items()} == {
        "dl1": {"dl-wan", "dl-far"},
        "pt1": {"pt-wan"},
    }


def test_only_ports_whose_queues_differ_are_written_unless_they_may_have_lost_them():
    switches, writers, plan = planned_switches()
    switches.put_queues(plan, OPEN)
    for writer in writers.values():
        writer.taken()
    hop = next(hop for hop, link in plan.links.items() if hop.tail == "dl1" and link.circuit_bps)
    less = replace(plan, links={**plan.links, hop: replace(plan.links[hop], circuit_bps=10**9)})
    switches.put_queues(less, OPEN)
    port_name = switches._ports[hop].port_name
    assert {name: writer.taken() for name, writer in writers.items()} == {"dl1": {port_name}, "pt1": set()}
    switches.put_queues(less, OPEN, in_doubt=True)
    assert {name: writer.taken() for name, writer in writers.items()} == {
        "dl1": {"dl-wan", "dl-far"},
        "pt1": {"pt-wan"},
    }


def test_the_first_time_each_database_is_told_which_ports_alone_have_queues_once_it_answers():
    switches, writers, plan = planned_switches()
    writers["pt1"].is_gone = True
    switches.put_queues(plan, OPEN)
    dl1, pt1 = (switch.dpid for switch in loaded(FILES["three-sites"]).switches)
    assert {name: w.swept for name, w in writers.items()} == {"dl1": [({"dl-wan", "dl-far"}, {dl1})], "pt1": []}
    writers["pt1"].is_gone = False
    for _ in range(2):
        switches.put_queues(plan, OPEN, in_doubt=True)
    assert [len(writers[name].swept) for name in ("dl1", "pt1")] == [1, 1]
    assert writers["pt1"].swept == [({"pt-wan"}, {pt1})]


def test_a_port_that_could_not_have_its_queues_is_written_again_and_so_is_one_that_is_mended():
    switches, writers, plan = planned_switches()
    writers["pt1"].failing = {"pt-wan": "no such port"}
    (fault,) = switches.put_queues(plan, OPEN)
    writers["pt1"].taken()
    assert switches.put_queues(plan, OPEN) == (fault,)
    assert writers["pt1"].taken() == {"pt-wan"}
    writers["pt1"].failing = {}
    for _ in range(2):
        assert switches.mended(fault, plan, plan) == ()
        assert writers["pt1"].taken() == {"pt-wan"}


def test_all_ports_of_a_database_that_fails_are_named_whichever_were_to_be_written():
    switches, writers, plan = planned_switches()
    switches.put_queues(plan, OPEN)
    far, wan = (hop for hop in sorted(plan.links) if hop.tail == "dl1")
    writers["dl1"].is_gone = True
    less = replace(plan, links={**plan.links, far: replace(plan.links[far], circuit_bps=10**9)})
    (fault,) = switches.put_queues(less, OPEN)
    assert (fault.place, fault.ports) == (f"database {writers['dl1'].remote}", {far, wan})
    assert switches.put_queues(less, Closed(ports=fault.ports), in_doubt=True) == ()
    (found,) = switches.mended(PlaceFault("port far", "it was not there", ports=frozenset({far})), plan, plan)
    assert found.ports == {far, wan}
    writers["dl1"].is_gone = False
    assert switches.mended(fault, plan, plan) == ()
    writers["dl1"].taken()
    assert switches.put_queues(less, OPEN) == ()
    assert "dl-far" in writers["dl1"].taken()


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_under_one_plan_after_the_other_every_port_has_its_queues(data):
    network = data.draw(any_network)
    plans = [planned(epoch, network, DEFAULT_POLICY, data.draw(demands_in(network))) for epoch in (2, 4)]
    writers = {switch.name: KeptQueues() for switch in network.switches}
    sessions = SwitchSessions.__new__(SwitchSessions)
    switches = SiteSwitches(Site(network, DEFAULT_POLICY, (), 300), sessions, writers)
    for one in data.draw(st.lists(st.sampled_from(plans), max_size=6)):
        down = data.draw(st.sets(st.sampled_from([c.name for c in network.circuits]), max_size=1))
        plan = replace(one, down=frozenset(down))
        ports = [(switch, name) for switch in network.switches for name in port_queues(network, switch, plan)]
        failing = data.draw(st.sets(st.sampled_from(ports), max_size=1)) if ports else set()
        for switch in network.switches:
            writers[switch.name].failing = {name: "busy" for where, name in failing if where is switch}
        faults = switches.put_queues(plan, OPEN)
        for writer in writers.values():
            writer.failing = {}
        mended = data.draw(st.booleans())
        for fault in faults if mended else ():
            assert switches.mended(fault, plan, plan) == ()
        unlike = {
            (switch, name)
            for switch in network.switches
            for name, queues in port_queues(network, switch, plan).items()
            if writers[switch.name].held.get(name) != queues
        }
        assert unlike == set() if mended else unlike <= failing
