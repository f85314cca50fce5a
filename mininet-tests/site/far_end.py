"""The far end of a circuit as a controller has it: a switch and an agent are reached over a delay. In the lab."""

import subprocess

from mininet_tests.site.emulation import UP_WITHIN_S, Emulation
from mininet_tests.site.topos import OPENFLOW_PORT
from mininet_tests.site.wiring import typed
from mininet_tests.testing.eventually import eventually

ADDRESS = "127.0.0.2"  # of the controller, for the switch that is far away
EVERYWHERE = f"tcp:0.0.0.0:{OPENFLOW_PORT}"
"""Where a controller listens for switches that are to be put far away."""


def put_far(site: Emulation, switch: str, host: str, rtt_us: int) -> None:
    """Put a switch and a host's agent so far from the controller; return once all is well again.

    Args:
        site: whose controller listens at ``EVERYWHERE``.
        switch: its name. Its database stays where it is, for all switches have one.
        host: its name.
        rtt_us: there and back, microseconds.
    """
    delay = ("netem", "delay", f"{rtt_us // 2}us", "limit", "10000")
    matches = (("match", "ip", way, f"{ADDRESS}/32") for way in ("dst", "src"))
    typed(
        None,
        [
            ("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "prio", "bands", "4"),
            ("tc", "qdisc", "add", "dev", "lo", "parent", "1:4", *delay),
            *(
                ("tc", "filter", "add", "dev", "lo", "parent", "1:", "protocol", "ip", "u32", *match, "flowid", "1:4")
                for match in matches
            ),
            ("tc", "qdisc", "add", "dev", f"m-{host}", "root", *delay),
        ],
    )
    typed(site.realised.net[host], [("tc", "qdisc", "add", "dev", f"{host}-m", "root", *delay)])
    called = ["set-controller", switch, f"tcp:{ADDRESS}:{OPENFLOW_PORT}"]
    subprocess.run(["ovs-vsctl", *called, "--", "set", "controller", switch, "max_backoff=1000"], check=True)
    eventually(lambda: (site.get("/healthz") or {}).get("ok"), within_s=UP_WITHIN_S, what="all is well from afar")
