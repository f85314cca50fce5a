"""The queues of a whole site, written to the databases of our own switches alone."""

from controller.plan.faults import OPEN
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.site import Site
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.site_switches import SiteSwitches
from mininet_tests.testing.networks import FILES, loaded


class KeptQueues:
    """A writer that keeps what it is told to write."""

    remote = "unix:none"

    def __init__(self):
        self.ports = {}

    def apply_each(self, ports, timeout_s):
        """Take queues by port; none fails."""
        del timeout_s
        self.ports |= ports
        return {}


def test_queues_are_written_for_our_ports_alone_where_a_circuit_ends_at_a_site_that_is_not_ours():
    network = loaded(FILES["three-sites"])
    writers = {switch.name: KeptQueues() for switch in network.switches}
    switches = SiteSwitches(Site(network, DEFAULT_POLICY, (), 300), SwitchSessions.__new__(SwitchSessions), writers)
    plan = planned(2, network, DEFAULT_POLICY, PlanInput(()))
    assert switches.put_queues(plan, OPEN) == ()
    assert {name: set(writer.ports) for name, writer in writers.items()} == {
        "dl1": {"dl-wan", "dl-far"},
        "pt1": {"pt-wan"},
    }
