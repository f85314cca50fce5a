"""The kernel's classes against the queues they come from; what the kernel really shows is in mininet-tests."""

import pytest

from controller.southbound.ovsdb import htb
from controller.southbound.ovsdb.htb import PortClasses, same
from controller.southbound.ovsdb.queues import PortQueues, Queue, Shaper, shapers

WANTED = Shaper("p1", 2, 900_000_003, 984_395_318, 984_395)


@pytest.mark.parametrize(
    ("min_bps", "max_bps", "burst_bits", "is_same"),
    [
        (900_000_000, 984_395_312, 984_300, True),  # whole bytes a second, whole ticks
        (900_000_008, 984_395_312, 984_300, False),
        (900_000_000, 984_395_320, 984_300, False),
        (900_000_000, 984_395_312, 900_000, False),
        (900_000_000, 984_395_312, 1_100_000, False),
    ],
)
def test_a_class_is_the_same_if_it_does_what_the_queue_says(min_bps, max_bps, burst_bits, is_same):
    assert same(WANTED, Shaper("p1", 2, min_bps, max_bps, burst_bits)) is is_same


def test_a_credit_below_a_packet_is_raised_to_one_by_the_kernel():
    assert same(Shaper("p1", 1, 12_000, 48_000, 48), Shaper("p1", 1, 12_000, 48_000, 12_112))


def test_a_credit_too_long_for_the_kernel_s_field_is_not_compared():
    assert same(Shaper("p1", 1, 12_000, 10**10, 10**7), Shaper("p1", 1, 12_000, 10**10, 1))


def test_the_port_s_own_class_has_no_credit_to_compare():
    assert same(Shaper("p1", None, 10**9, 10**9, 0), Shaper("p1", None, 10**9, 10**9, 11_000))


def test_a_port_has_one_shaper_more_than_queues():
    queues = PortQueues(10**9, (Queue(0, 10**8, 10**9, 10**6), Queue(1, 9 * 10**8, 10**9, 10**6)))
    assert list(shapers("p1", queues)) == [("p1", None), ("p1", 0), ("p1", 1)]
    assert shapers("p1", None) == {}


@pytest.mark.parametrize(
    ("qdisc", "is_bare", "is_foreign"), [("htb", False, False), ("noqueue", True, False), ("tbf", False, True)]
)
def test_a_port_that_lost_its_shaping_is_told_from_one_that_somebody_shapes(qdisc, is_bare, is_foreign):
    port = PortClasses(qdisc)
    assert (port.is_bare, port.is_foreign) == (is_bare, is_foreign)


class NetlinkAnswer(dict):
    """What netlink tells of a qdisc or of a class: fields and attributes."""

    get_attr = dict.get


class PlayedNetlink:
    """A kernel with one port, whose root qdisc is HTB of some handle, with the port's own class."""

    def __init__(self, handle):
        self.handle = handle

    def get_qdiscs(self, index):
        """Return the root."""
        return [NetlinkAnswer(index=index, parent=0xFFFF_FFFF, handle=self.handle, TCA_KIND="htb")]

    def get_classes(self, index):
        """Return the one class, of 1 Gbit/s."""
        options = NetlinkAnswer(TCA_HTB_PARMS={"rate": 125_000_000, "ceil": 125_000_000, "buffer": 100})
        return [NetlinkAnswer(index=index, handle=self.handle | htb.OWN_MINOR, TCA_KIND="htb", TCA_OPTIONS=options)]


def test_an_htb_that_has_another_handle_than_open_vswitch_gives_is_somebody_else_s():
    ours = htb._port_classes(PlayedNetlink(0x0001_0000), "p1", 7)
    assert (ours.is_foreign, [*ours.shapers]) == (False, [("p1", None)])
    theirs = htb._port_classes(PlayedNetlink(0x8001_0000), "p1", 7)  # as tc chooses it
    assert (theirs.qdisc, theirs.is_foreign, theirs.is_bare, theirs.shapers) == ("htb 8001:", True, False, {})
