"""Slots of the kernel part that go from one allocation to the next while a socket of the first is still there."""

import os
import socket
import struct
from dataclasses import replace

import pytest

from hostagent.tests.rates import LEASE_MS, ours, started
from hostagent.tests.rig import Bulk, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

FIN_WAIT2, CLOSE = 5, 7  # include/net/tcp_states.h
FIRST = allocation("10.77.0.2/32", 60, dscp=46)
NEXT = replace(allocation("10.77.0.0/24", 60), name="next")  # has the slot of the first: it is the lowest free one


def state(bulk: Bulk) -> int:
    """The sending socket's state (tcpi_state)."""
    return bulk.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def connections(agent, name: str) -> int | None:
    told = agent.controller.entry(name)
    return told.connections if told else None


def test_a_half_closed_connection_leaves_its_allocation_before_the_slot_is_given_away(hosts, agent, cleanup):
    agent.obey(Allocations(1, LEASE_MS, (FIRST,)))
    half = Bulk(*hosts)
    cleanup.callback(half.close)
    half.sender.sendall(bytes(100_000))
    half.sender.shutdown(socket.SHUT_WR)
    eventually(lambda: state(half) == FIN_WAIT2, within_s=5, what="its peer has confirmed the end")
    assert ours(half)
    agent.obey(Allocations(2, LEASE_MS))
    assert (ours(half), half.tos) == (False, 0)
    agent.obey(Allocations(3, LEASE_MS, (NEXT,)))
    started(cleanup, Bulk(*hosts), Bulk(*hosts))
    eventually(lambda: connections(agent, "next") == 2, within_s=5, what="both are counted")
    half.close()
    heard = len(agent.controller.heard)
    eventually(lambda: len(agent.controller.heard) > heard + 2, within_s=5, what="telemetry since")
    assert connections(agent, "next") == 2


def test_a_connection_that_was_reset_is_taken_off_no_other_allocation_as_it_is_closed(hosts, agent, cleanup):
    """Its program has not looked yet: a socket without a connection is in none of the kernel's lists."""
    agent.obey(Allocations(1, LEASE_MS, (FIRST,)))
    reset = Bulk(*hosts)
    cleanup.callback(reset.close)
    reset.sender.sendall(bytes(100_000))
    reset.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reset.receiver.shutdown(socket.SHUT_RD)
    reset.receiver.close()
    eventually(lambda: state(reset) == CLOSE, within_s=5, what="its peer has reset it")
    agent.obey(Allocations(2, LEASE_MS))
    agent.obey(Allocations(3, LEASE_MS, (NEXT,)))
    started(cleanup, Bulk(*hosts), Bulk(*hosts))
    eventually(lambda: connections(agent, "next") == 2, within_s=5, what="both are counted")
    reset.close()
    heard = len(agent.controller.heard)
    eventually(lambda: len(agent.controller.heard) > heard + 2, within_s=5, what="telemetry since")
    assert connections(agent, "next") == 2
