"""What a user meets at one controller with two userspace switches: each thing that once went wrong, done again.

The hosts have no agents. ``run.py`` has the traffic, ``aims.py`` what is to come of it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet_tests.scenarios.faults import callers, ports, promises
from mininet_tests.scenarios.faults.asked import well
from mininet_tests.scenarios.faults.hanging import hanging
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.running import Running


def replayed(ovs: PrivateOvs, controller: Running, store: Path) -> dict[str, Any]:
    """Return what came of each, by the name that its aims have.

    Raises:
        AssertionError: something did not come about in time.
    """
    points: dict[str, Callable[[], dict[str, Any]]] = {
        "offers": lambda: promises.offers(controller),
        "changed while it runs": promises.changed,
        "announced twice": lambda: promises.said_twice(controller),
        "circuit port gone and back": lambda: ports.added_again(ovs, controller),
        "host port down": lambda: ports.host_port_down(ovs, controller),
        "host port under another number": lambda: ports.host_port_moved(ovs, controller),
        "somebody else's queues": lambda: ports.somebody_elses_queues(ovs, controller),
        "rules of nobody's": lambda: ports.rules_of_nobodys(controller),
        "reservations that have ended": lambda: promises.ended(controller),
        "database hangs": lambda: hanging(controller, store),
        "switch that is unknown": lambda: callers.unknown(ovs, controller),
        "switch claimed twice": lambda: callers.claimed_twice(ovs, controller),  # the last: a claim is over after 30 s
    }
    return {name: _from_well(controller, play) for name, play in points.items()}


def _from_well(controller: Running, play: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what came of one, begun when nothing is left of the one before: a line has to be up for 10 s again."""
    well(controller)
    return play()
