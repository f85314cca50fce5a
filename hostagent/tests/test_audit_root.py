"""The agent puts right what somebody has changed in its maps, while traffic runs."""

import os
from collections.abc import Callable

import pytest

from hostagent.kernel import leftovers
from hostagent.kernel.image import object_image
from hostagent.kernel.layout import SLOT, layout_of
from hostagent.kernel.loader import Libbpf
from hostagent.kernel.plan import matches_of
from hostagent.tests.kernel_maps import agents_map, children, detach_hooks
from hostagent.tests.rates import assert_rate
from hostagent.tests.rig import MBIT, Bulk, RunningAgent, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, Fault, Repaired

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 1500
LAYOUT = layout_of(object_image())
DEST = "10.77.0.2/32"
OTHERS = allocation("10.99.0.0/16", 1)
PLAN = allocation(DEST, 100)


@pytest.fixture
def agent(agent: RunningAgent) -> RunningAgent:
    agent.obey(Allocations(1, LEASE_MS, (PLAN,)))
    return agent


def without_the_match(pid: int) -> None:
    with agents_map(pid, "hw_plan") as plan:
        plan.delete(LAYOUT.match_bytes(matches_of(PLAN)[0]))


def with_a_match_too_many(pid: int) -> None:
    with agents_map(pid, "hw_plan") as plan:
        plan.put(LAYOUT.match_bytes(matches_of(OTHERS)[0]), LAYOUT.matched_bytes(matches_of(OTHERS)[0], 0))


def with_another_rate(pid: int) -> None:
    with agents_map(pid, "hw_entries") as entries:
        key = SLOT.pack(0)
        entries.put(key, (10 * MBIT // 8).to_bytes(8, "little") + entries.value(key)[8:])


def without_the_entry(pid: int) -> None:
    with agents_map(pid, "hw_entries") as entries:
        entries.put(SLOT.pack(0), bytes(entries.value_bytes))


def without_end(pid: int) -> None:
    with agents_map(pid, "hw_control") as control:
        control.put(SLOT.pack(0), LAYOUT.control_bytes(1, 2**63))


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (without_the_match, Repaired(1, DEST, Fault.MISSING, "matches")),
        (with_a_match_too_many, Repaired(1, "", Fault.EXCESS, "matches")),
        (with_another_rate, Repaired(1, DEST, Fault.MISCONFIGURED, "entries")),
        (without_the_entry, Repaired(1, DEST, Fault.MISSING, "entries")),
        (detach_hooks, Repaired(1, "", Fault.MISSING, "hook")),
    ],
    ids=["match missing", "match too many", "rate", "entry missing", "hook"],
)
def test_what_somebody_has_broken_is_put_right_within_a_second(
    hosts, agent, cleanup, broken: Callable[[int], None], expected
):
    bulk = Bulk(*hosts)
    cleanup.callback(bulk.close)
    bulk.start()
    (pid,) = (int(child) for child in children(agent.process.pid))
    broken(pid)
    eventually(lambda: expected in agent.controller.heard, within_s=2.5, what="it is repaired")
    fresh = Bulk(*hosts)
    cleanup.callback(fresh.close)
    eventually(lambda: fresh.algorithm.startswith("headway"), within_s=2, what="a new connection is taken")
    eventually(lambda: bulk.algorithm.startswith("headway"), within_s=2, what="the open one is held")
    assert_rate([bulk], 100 * MBIT, 1.0)
    assert "agent.repaired" in agent.log


def test_a_lease_without_end_is_ended(agent):
    (pid,) = (int(child) for child in children(agent.process.pid))

    def repaired() -> bool:
        without_end(pid)  # again and again: the next renewal of the lease would end it too
        return Repaired(1, "", Fault.MISCONFIGURED, "control") in agent.controller.heard

    eventually(repaired, within_s=5, what="it is repaired")


def test_an_agent_whose_congestion_control_was_taken_away_ends_so_that_the_next_one_registers_again(hosts, agent):
    (pid,) = (int(child) for child in children(agent.process.pid))
    with agents_map(pid, "hw_ops") as operations:
        assert leftovers.unregister(Libbpf(), operations.fd)
    assert agent.process.wait(timeout=10) == 1
    agent.restart()
    agent.obey(Allocations(2, LEASE_MS, (PLAN,)))
