"""Two controllers at one switch's queues: the database refuses the one of the earlier term, whenever it wakes up."""

from collections.abc import ItemsView, Iterator
from pathlib import Path

import pytest

from controller.southbound.errors import DatabaseOutranked
from controller.southbound.ovsdb.queues import PortQueues, Queue
from controller.southbound.ovsdb.writer import QueueWriter
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.userspace_switch import NEEDS_OVS, private_ovs

pytestmark = NEEDS_OVS
MEGABIT = 1_000_000
WITHIN_S = 10.0


def queues(megabit: int) -> PortQueues:
    """One queue, of half of a port."""
    return PortQueues(megabit * MEGABIT, (Queue(0, megabit * MEGABIT // 2, megabit * MEGABIT, 100_000),))


@pytest.fixture
def ovs(tmp_path: Path) -> Iterator[PrivateOvs]:
    """A switch with two ports."""
    with private_ovs(tmp_path, {"p1": "p2"}) as ovs:
        bridge = ["add-br", "s1", "--", "set", "bridge", "s1", "datapath_type=netdev"]
        ovs.vsctl(*bridge, "--", "add-port", "s1", "p1", "--", "add-port", "s1", "p2")
        yield ovs


class Meanwhile(dict[str, PortQueues]):
    """What is wanted by one, while another writes the same: after the first has looked, before it has written."""

    other: QueueWriter
    theirs: PortQueues

    def items(self) -> ItemsView[str, PortQueues]:
        """Return it, once the other has written."""
        self.other.apply({"p1": self.theirs}, WITHIN_S)
        return super().items()


def test_who_leads_under_an_earlier_term_writes_no_more_and_the_later_one_does(ovs):
    with QueueWriter(ovs.remote, term=7) as first, QueueWriter(ovs.remote, term=8) as second:
        first.apply({"p1": queues(100)}, WITHIN_S)
        second.apply({"p1": queues(100)}, WITHIN_S)  # the same queues: the term alone is raised
        for write in (
            lambda: first.apply({"p1": queues(200)}, WITHIN_S),
            lambda: first.apply_each({"p1": queues(200)}, WITHIN_S),
            lambda: first.restate(["p1"], WITHIN_S),
            lambda: first.reattach("p1", WITHIN_S),
        ):
            with pytest.raises(DatabaseOutranked, match="term 8, ours is 7"):
                write()
        assert second.installed("p1") == queues(100)
        second.apply({"p1": queues(300)}, WITHIN_S)
        assert first.installed("p1") == queues(300)


def test_who_looked_before_its_successor_wrote_is_refused_by_the_database_itself(ovs):
    with QueueWriter(ovs.remote, term=7) as first, QueueWriter(ovs.remote, term=8) as second:
        first.apply({"p1": queues(100)}, WITHIN_S)
        wanted = Meanwhile({"p1": queues(200)})
        wanted.other, wanted.theirs = second, queues(100)
        with pytest.raises(DatabaseOutranked):
            first.apply(wanted, WITHIN_S)
        assert second.installed("p1", WITHIN_S) == queues(100)


def test_queues_go_from_ports_of_our_switches_that_are_no_circuit_s_any_more_and_from_no_other(ovs):
    ovs.vsctl(
        "add-br",
        "s2",
        "--",
        "set",
        "bridge",
        "s2",
        "datapath_type=netdev",
        "other-config:datapath-id=" + "0" * 15 + "2",
    )
    ovs.vsctl("set", "bridge", "s1", "other-config:datapath-id=" + "0" * 15 + "1")
    ovs.vsctl("del-port", "s1", "p2", "--", "add-port", "s2", "p2")
    with QueueWriter(ovs.remote, term=7) as first, QueueWriter(ovs.remote, term=8) as second:
        first.apply({"p1": queues(100), "p2": queues(100)}, WITHIN_S)
        second.apply({"p1": queues(100)}, WITHIN_S)
        with pytest.raises(DatabaseOutranked):
            first.take_off_others([], [1], WITHIN_S)
        second.take_off_others(["p1"], [1], WITHIN_S)
        assert second.installed("p1", WITHIN_S) == queues(100)
        second.take_off_others(["p9"], [1], WITHIN_S)
        assert second.installed("p1", WITHIN_S) is None
        assert second.installed("p2", WITHIN_S) == queues(100)
        assert len(ovs.vsctl("--bare", "--columns=_uuid", "list", "queue").split()) == 1


def test_a_port_that_nobody_had_written_is_the_later_one_s_as_well(ovs):
    with QueueWriter(ovs.remote, term=7) as first, QueueWriter(ovs.remote, term=8) as second:
        wanted = Meanwhile({"p1": queues(200)})
        wanted.other, wanted.theirs = second, queues(100)
        with pytest.raises(DatabaseOutranked):
            first.apply(wanted, WITHIN_S)
        assert second.installed("p1", WITHIN_S) == queues(100)


def test_the_same_term_again_writes_nothing_and_who_writes_whoever_leads_is_refused_by_nobody(ovs):
    with QueueWriter(ovs.remote, term=7) as first, QueueWriter(ovs.remote) as anybody:
        first.apply({"p1": queues(100)}, WITHIN_S)
        before = ovs.vsctl("get", "open_vswitch", ".", "next_cfg")
        first.apply({"p1": queues(100)}, WITHIN_S)
        assert ovs.vsctl("--no-wait", "get", "open_vswitch", ".", "next_cfg") == before
        anybody.apply({"p1": queues(200)}, WITHIN_S)
        assert anybody.installed("p1") == queues(200)
