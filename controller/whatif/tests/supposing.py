"""Scenarios for tests, on the networks of the experiments."""

from controller.plan.keys import FlowId
from controller.plan.policy import DEFAULT_POLICY
from controller.site import Site, flow_between
from controller.whatif.supposed import WhatIf, WorkItem
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

S = 1_000_000
T0 = 1_800_000_000 * S
SLICE_BYTES = 268_802_458  # Freemon 2013 section IV.C: a fifth of an image
DATABASE = ("database", FlowClass.PREDICTABLE, "base22")
BACKGROUND = ("background", FlowClass.BACKGROUND, "base23")


def site(network=None, standing=(DATABASE, BACKGROUND), schedules=None):
    """A site with some flows that always send to ``arch``."""
    network = network or chile_illinois()
    flows = tuple(flow_between(network, FlowId(name), c, (host, "arch")) for name, c, host in standing)
    return Site(network, DEFAULT_POLICY, flows, 3_000, schedules=schedules or {})


def image(size_bytes=SLICE_BYTES, senders=("base20",), **more):
    """One urgent image to ``arch``, a second after the beginning."""
    return WorkItem("image", FlowClass.URGENT, senders, "arch", size_bytes, T0 + S, **more)


def supposed(*items, of=None, lasts_s=60, **more):
    """A scenario."""
    return WhatIf(of or site(), T0, T0 + lasts_s * S, items, **more)
