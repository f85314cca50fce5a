"""What the maps should hold, against what they do."""

from dataclasses import replace
from ipaddress import ip_network

import pytest

from hostagent.kernel.audit import CONTROL, Contents, Difference, differences, wanted_contents
from hostagent.kernel.image import object_image
from hostagent.kernel.layout import layout_of
from hostagent.kernel.plan import KernelPlan, change_to
from topology.protocol import Allocation, Fault, FlowClass

LEASE = b"lease"
LAYOUT = layout_of(object_image())


def a_plan() -> KernelPlan:
    entries = (Allocation(name, FlowClass.URGENT, ip_network(f"10.{n}.0.0/16"), 8000, 9) for n, name in enumerate("ab"))
    return change_to(entries, KernelPlan()).plan


SHOULD = wanted_contents(LAYOUT, a_plan(), {}, LEASE)


def found(where: str, key: bytes, value: bytes | None) -> Contents:
    """The maps with one element changed."""
    there = dict(getattr(SHOULD, where)) | {key: value}
    return replace(SHOULD, **{where: {k: v for k, v in there.items() if v is not None}})


def test_maps_that_hold_the_plan_do_not_differ():
    assert differences(LAYOUT, SHOULD, SHOULD, a_plan()) == ()


@pytest.mark.parametrize(
    ("where", "value", "fault"),
    [
        ("matches", None, Fault.MISSING),
        ("matches", b"x", Fault.MISCONFIGURED),
        ("entries", bytes(40), Fault.MISSING),
        ("entries", b"x" * 40, Fault.MISCONFIGURED),
    ],
)
def test_what_differs_is_named(where, value, fault):
    key = list(getattr(SHOULD, where))[1]
    differ = differences(LAYOUT, SHOULD, found(where, key, value), a_plan())
    assert differ == (Difference(where, key, getattr(SHOULD, where)[key], fault, "b"),)


def test_what_is_too_much_is_to_go():
    assert differences(LAYOUT, SHOULD, found("matches", b"k", b"v"), a_plan()) == (
        Difference("matches", b"k", None, Fault.EXCESS, ""),
    )


def test_another_lease_differs():
    differ = differences(LAYOUT, SHOULD, found("control", CONTROL, b"other"), a_plan())
    assert differ == (Difference("control", CONTROL, LEASE, Fault.MISCONFIGURED, ""),)
