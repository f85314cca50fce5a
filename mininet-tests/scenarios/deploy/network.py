"""The network that the packages are tried on, and who sends to whom in it."""

import re

from mininet_tests.testing.networks import FILES

NETWORK = FILES["three-sites"]
SENT = {  # how, by what is planned: from and to, from which address to which, and in which namespace that is
    "IPv6": ("dl-a", "pt-a", "2001:db8:50:1::10", "2001:db8:50:2::10", "pt-a"),
    "from a second interface": ("dl-a.eth1", "pt-a", "10.50.1.12", "10.50.2.10", "pt-a"),
    "in a VLAN to a site that is not ours": ("dl-a", "cern", "10.50.1.10", "10.60.0.5", "cern"),
}


def slow(network: str) -> str:
    """Return a network as a switch in user space carries it. Pure.

    It reads each port by a socket that holds 92 frames. Of 400 Mbit/s in bursts of 44 frames it lost 7%, for which an
    agent rightly falls back.

    >>> slow("{rate: 400 Mbit/s}, {rate: 1 Gbit/s}")
    '{rate: 80 Mbit/s}, {rate: 1 Gbit/s}'
    """
    return re.sub(r"\d+ Mbit/s", "80 Mbit/s", network)
