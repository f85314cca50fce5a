"""What is asked of a ledger in its tests."""

from controller.plan.admission import Request
from controller.plan.announcements import Wish
from controller.plan.ledger import Created
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass

NOW, S, WAN = 1_767_225_600_000_000, 1_000_000, Hop("ls1", "ch1")
BOOKABLE = 938_800_000  # of 1 Gbit/s, after the guarantees of 5, 0.02, 1 and 0.1%


def asked(**changes):
    """A request of 600 Mbit/s from site to site for a hundred seconds, a hundred seconds from now."""
    fields = {
        "a_end": "la-serena",
        "z_end": "champaign",
        "flow_class": FlowClass.URGENT,
        "rate_bps": 600_000_000,
        "start_us": NOW + 100 * S,
        "end_us": NOW + 200 * S,
    }
    return Request(**(fields | changes))


def wish(name="image", **changes):
    """An announcement of 100 MB without a deadline."""
    fields = {
        "announcement_id": name,
        "flow_class": FlowClass.URGENT,
        "size_bytes": 100_000_000,
        "deadline_us": None,
        "framing": chile_illinois().framing,
    }
    return Wish(**(fields | changes))


def created(name, now_us=NOW, **more):
    """What a new reservation needs beside the request."""
    return Created(name, now_us, **more)
