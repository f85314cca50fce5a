"""What a user meets at one controller with two userspace switches: each thing that once went wrong, done again.

The hosts have no agents. ``run.py`` has the traffic, ``aims.py`` what is to come of it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mininet_tests.scenarios.faults import callers, ports, promises
from mininet_tests.scenarios.faults.asked import well
from mininet_tests.scenarios.faults.hanging import hanging
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.running import Running

GROUPS = ("promises", "ports", "strangers")


def replayed(ovs: PrivateOvs, controller: Running, database: Path, groups: Sequence[str]) -> dict[str, Any]:
    """Return what came of each that is in some groups, by the name that its aims have.

    Raises:
        AssertionError: something did not come about in time.
    """
    points: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
        "promises": {
            "offers": lambda: promises.offers(controller),
            "changed while it runs": promises.changed,
            "announced twice": lambda: promises.said_twice(controller),
            "reservations that have ended": lambda: promises.ended(controller),
            "database hangs": lambda: hanging(controller, database),
        },
        "ports": {
            "circuit port gone and back": lambda: ports.added_again(ovs, controller),
            "host port down": lambda: ports.host_port_down(ovs, controller),
            "host port under another number": lambda: ports.host_port_moved(ovs, controller),
            "somebody else's queues": lambda: ports.somebody_elses_queues(ovs, controller),
        },
        "strangers": {
            "rules of nobody's": lambda: ports.rules_of_nobodys(controller),
            "switch that is unknown": lambda: callers.unknown(ovs, controller),
            "switch claimed twice": lambda: callers.claimed_twice(ovs, controller),  # the last: over after 30 s
        },
    }
    plays = [each for group in groups for each in points[group].items()]
    return {name: _from_well(controller, play) for name, play in plays}


def _from_well(controller: Running, play: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what came of one, begun when nothing is left of the one before: a line has to be up for 10 s again."""
    well(controller)
    return play()
