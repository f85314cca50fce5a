"""Switches that call and are not those that they should be."""

from typing import Any

from mininet_tests.scenarios.faults.asked import WITHIN_S, log_of, names, unwell
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.running import Running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

STRANGER, UNKNOWN_DPID = "ls9", "00000000000000e9"


def unknown(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Let a switch connect that is not in the network."""
    return _called(ovs, controller, UNKNOWN_DPID, "switch.unknown", UNKNOWN_DPID)


def claimed_twice(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Let a second bridge connect under the datapath id of the first."""
    switch = chile_illinois().switches[0]
    return _called(ovs, controller, f"{switch.dpid:016x}", "switch.claimed_twice", switch.name)


def _called(ovs: PrivateOvs, controller: Running, dpid: str, event: str, named: str) -> dict[str, Any]:
    """Return what is said of a bridge that connects under a datapath id; it is taken away again."""
    target = ovs.vsctl("get-controller", chile_illinois().switches[0].name).strip()
    ovs.vsctl(
        *("add-br", STRANGER, "--", "set", "bridge", STRANGER, "datapath_type=netdev", "fail_mode=secure"),
        *("protocols=OpenFlow13", f"other-config:datapath-id={dpid}"),
        *("--", "set-controller", STRANGER, target),
    )
    eventually(lambda: f"event={event} " in log_of(controller).read_text(), within_s=WITHIN_S, what="it is said")
    noticed_s, reasons = unwell(controller)
    ovs.vsctl("del-br", STRANGER)
    return {"noticed_s": noticed_s, "reasons": reasons, "says_where": names(named, reasons)}
