"""The kernel part deals the connections of programs that know nothing of it, on this machine's kernel."""

import contextlib
import os
import socket
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import ip_network

import pytest

from hostagent.kernel.plan import LEAST_AHEAD_BYTES
from hostagent.tests import rig
from hostagent.tests.delayed_line import unsent_bytes
from hostagent.tests.kernel_maps import children, detach_hooks
from hostagent.tests.rig import TCP_CONGESTION, NamespaceHost, RunningAgent, allocation
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocations, CalledLane

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")]

LEASE_MS = 30_000
TCP_NOTSENT_LOWAT = 25
RATE_MBPS = 100  # of each lane: of so little, 20 ms are less than the least
FIRST, SECOND, TO = ("10.77.0.1", "fd77::1"), ("10.77.0.3", "fd77::3"), ("10.77.0.2", "fd77::2")


def lanes(*sizes_bytes, dest_port=0):
    """Two lanes to the receiver, from the sender's two addresses."""
    for own, size_bytes in zip((FIRST, SECOND), sizes_bytes, strict=True):
        sources = tuple(map(ip_network, own))
        known = allocation(f"{TO[0]}/32", RATE_MBPS, also=(ip_network(TO[1]),), sources=sources, dest_port=dest_port)
        yield replace(known, name=f"image/{own[0]}", size_bytes=size_bytes, lanes="image")


@pytest.fixture
def two_addresses(hosts, cleanup: ExitStack) -> tuple[NamespaceHost, NamespaceHost]:
    """The sender with a second address of each family."""
    sender, receiver = hosts
    sender.ip("address", "add", f"{SECOND[0]}/24", "dev", sender.interface)
    sender.ip("address", "add", f"{SECOND[1]}/64", "dev", sender.interface, "nodad")
    eventually(lambda: sender.inside(lambda: connected(sender, receiver, 0, "")) or True, within_s=5, what="it is up")
    return sender, receiver


def connected(sender, receiver, family, bind, count=1, interface=""):
    """Return from which addresses some connections are, one after the other."""
    version = socket.AF_INET if not family else socket.AF_INET6
    listener = receiver.inside(lambda: socket.create_server((TO[family], 0), family=version, backlog=64))
    with listener:
        dest = TO[family], listener.getsockname()[1]
        return [made.getsockname()[0] for made in connections(sender, version, dest, bind, count, interface)]


def connections(host, version, dest, bind, count, interface=""):
    """Yield connections that a host makes, one after the other; bound to an address or an interface if one is said."""
    for _ in range(count):
        with host.inside(lambda: socket.socket(version)) as connection:
            if bind:
                connection.bind((bind, 0))
            if interface:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
            connection.connect(dest)
            yield connection


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_connections_are_dealt_in_proportion_and_in_turn(two_addresses, agent, family):
    sender, receiver = two_addresses
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(2_000, 1_000))))
    found = connected(sender, receiver, family, "", count=9)
    assert Counter(found) == {FIRST[family]: 6, SECOND[family]: 3}
    assert found == found[:3] * 3
    agent.obey(Allocations(2, LEASE_MS, tuple(lanes(1_000, 1_000))))
    assert Counter(connected(sender, receiver, family, "", count=8)) == {FIRST[family]: 4, SECOND[family]: 4}


def test_a_program_that_binds_an_address_has_chosen_its_lane(two_addresses, agent):
    sender, receiver = two_addresses
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000))))
    assert connected(sender, receiver, 0, SECOND[0], count=3) == [SECOND[0]] * 3
    assert connected(sender, receiver, 1, SECOND[1], count=3) == [SECOND[1]] * 3


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_a_program_that_binds_an_interface_has_chosen_its_lane(two_addresses, agent, family):
    sender, receiver = two_addresses
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000))))
    assert len(set(connected(sender, receiver, family, "", count=6, interface=sender.interface))) == 1
    assert set(connected(sender, receiver, family, "", count=2)) == {FIRST[family], SECOND[family]}


def test_when_lanes_are_over_or_are_for_another_port_nothing_is_dealt(two_addresses, agent):
    sender, receiver = two_addresses
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000, dest_port=9))))
    assert set(connected(sender, receiver, 0, "", count=4)) == {FIRST[0]}
    agent.obey(Allocations(2, LEASE_MS, tuple(lanes(1_000, 1_000))))
    assert len(set(connected(sender, receiver, 0, "", count=4))) == 2
    agent.obey(Allocations(3, LEASE_MS, ()))
    assert set(connected(sender, receiver, 0, "", count=4)) == {FIRST[0]}


def test_connections_are_dealt_again_after_somebody_has_detached_the_programs(two_addresses, agent):
    sender, receiver = two_addresses
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000))))
    (pid,) = (int(child) for child in children(agent.process.pid))
    detach_hooks(pid)
    dealt = {FIRST[0], SECOND[0]}
    eventually(
        lambda: set(connected(sender, receiver, 0, "", count=2)) == dealt, within_s=5, what="they are attached again"
    )


def test_another_host_of_the_same_kernel_is_not_dealt_to(two_addresses, agent):
    sender, receiver = two_addresses
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000))))
    receiver.ip("address", "add", "10.77.0.4/24", "dev", receiver.interface)
    found = connected(receiver, receiver, 0, "", count=4)
    assert set(found) == {TO[0]}
    assert len(set(connected(sender, receiver, 0, "", count=2))) == 2


def bound_bytes(sender):
    """Return what the application may have written and not sent; 0 where nothing bounds it."""
    return sender.getsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT)


def is_held(sender):
    return sender.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).startswith(b"headway")


@pytest.fixture
def sending(two_addresses, cleanup: ExitStack):
    """A connection whose receiver reads nothing."""
    sender, receiver = two_addresses
    ends = rig.connected(sender, receiver)
    for end in ends:
        cleanup.callback(end.close)
    return ends[0]


def test_what_an_application_may_write_ahead_on_a_lane_is_bounded_until_the_lane_is_over(sending, agent):
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000))))
    eventually(lambda: bound_bytes(sending) == LEAST_AHEAD_BYTES, within_s=5, what="it is bounded")
    sending.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while sending.send(bytes(1 << 16)):
            pass
    assert unsent_bytes(sending) <= LEAST_AHEAD_BYTES + (1 << 16)
    agent.obey(Allocations(2, LEASE_MS, (allocation(f"{TO[0]}/32", RATE_MBPS),)))
    eventually(lambda: bound_bytes(sending) == 0, within_s=5, what="it is bounded no more")


def test_what_an_application_has_chosen_to_write_ahead_stays(sending, agent):
    sending.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 12_345)
    agent.obey(Allocations(1, LEASE_MS, tuple(lanes(1_000, 1_000))))
    eventually(lambda: is_held(sending), within_s=5, what="it is held")
    assert bound_bytes(sending) == 12_345
    agent.obey(Allocations(2, LEASE_MS, ()))
    eventually(lambda: not is_held(sending), within_s=5, what="it is given back")
    assert bound_bytes(sending) == 12_345


def called_lanes(*sizes_bytes):
    """Two lanes by which the receiver is sent what it connects for, from the sender's two addresses."""
    for own, size_bytes in zip((FIRST, SECOND), sizes_bytes, strict=True):
        yield CalledLane("image", tuple(map(ip_network, own)), size_bytes)


def answered_from(sender, receiver, family, count=1, bind=""):
    """Return to which of the sender's addresses the connections go that the receiver makes to its first."""
    version, any_address = (socket.AF_INET6, "::") if family else (socket.AF_INET, "0.0.0.0")  # noqa: S104
    listener = sender.inside(lambda: socket.create_server((any_address, 0), family=version, backlog=64))
    found = []
    with listener:
        dest = FIRST[family], listener.getsockname()[1]
        for made in connections(receiver, version, dest, bind, count):
            found.append(made.getpeername()[0])
            listener.accept()[0].close()
    return found


@pytest.fixture
def receiving_agent(two_addresses, tmp_path, cleanup: ExitStack):
    """The agent of the receiver."""
    running = RunningAgent(two_addresses[1], tmp_path / "receiving")
    cleanup.callback(running.close)
    return running


def test_lanes_of_rounds_of_thirty_turns_to_hundreds_of_destinations_are_dealt_to(two_addresses, agent):
    sender, receiver = two_addresses
    uneven = tuple(lanes(614, 11))
    others = (
        replace(one, name=f"{n}/{one.name}", lanes=f"{n}", dest=ip_network(f"10.78.{n >> 8}.{n & 255}/32"), also=())
        for n in range(300)
        for one in uneven
    )
    agent.obey(Allocations(1, LEASE_MS, (*others, *uneven)))
    assert Counter(connected(sender, receiver, 0, "", count=30)) == {FIRST[0]: 29, SECOND[0]: 1}


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_connections_that_the_receiver_makes_go_to_the_sender_s_lanes_in_turn(two_addresses, receiving_agent, family):
    sender, receiver = two_addresses
    assert set(answered_from(sender, receiver, family, count=2)) == {FIRST[family]}
    receiving_agent.obey(Allocations(1, LEASE_MS, called=tuple(called_lanes(2_000, 1_000))))
    found = answered_from(sender, receiver, family, count=9)
    assert Counter(found) == {FIRST[family]: 6, SECOND[family]: 3}
    assert answered_from(sender, receiver, family, count=3, bind=TO[family]) == [FIRST[family]] * 3
    receiving_agent.obey(Allocations(2, LEASE_MS))
    assert set(answered_from(sender, receiver, family, count=3)) == {FIRST[family]}
