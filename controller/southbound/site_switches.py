"""The site's switches as one: a plan goes to each of them, and to the database that has its queues."""

from collections.abc import Mapping

from controller.plan.plan import Plan
from controller.site import Site
from controller.southbound.openflow.desired import lowered, switch_groups, switch_meters
from controller.southbound.openflow.pairs import pair_paths
from controller.southbound.openflow.rules import switch_rules
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import Rule, SwitchState
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.queues import PortQueues
from controller.southbound.ovsdb.writer import QueueWriter
from topology.network import Switch

TIMEOUT_S = 5.0  # a switch on the site's own network answers in milliseconds


class SiteSwitches:
    """Every switch of the site."""

    def __init__(
        self,
        site: Site,
        sessions: SwitchSessions,
        writers: Mapping[str, QueueWriter],
    ) -> None:
        """Wire the switches.

        Args:
            site: the network and the policy.
            sessions: the OpenFlow connections.
            writers: by switch name, the writer of its queues; switches that share a database share a writer.
        """
        self._site = site
        self._sessions = sessions
        self._writers = writers
        self._groups = {switch.name: switch_groups(site.network, switch) for switch in site.network.switches}
        self._latest_rules: dict[str, tuple[object, frozenset[Rule]]] = {}  # by switch, with what they are for

    def put_meters(self, plan: Plan, *, no_higher: bool = False) -> None:
        """Bring every switch's rules and meters to the plan; with ``no_higher`` leave meters that are below it.

        Raises:
            SouthboundError: a switch is gone, refused, or did not answer.
        """
        for switch in self._site.network.switches:
            meters = switch_meters(self._site.network, switch, plan)
            state = SwitchState(self._rules(switch, plan), meters, self._groups[switch.name])
            if no_higher:
                state = lowered(state, self._sessions.installed(switch.dpid, TIMEOUT_S))
            self._sessions.apply(switch.dpid, state, TIMEOUT_S)

    def _rules(self, switch: Switch, plan: Plan) -> frozenset[Rule]:
        """Return a switch's rules under a plan: the very same ones while no flow, and no line, comes, goes or moves."""
        under = pair_paths(plan), plan.down
        known = self._latest_rules.get(switch.name)
        if known is None or known[0] != under:
            known = self._latest_rules[switch.name] = (
                under,
                switch_rules(self._site.network, switch, plan, self._site.policy),
            )
        return known[1]

    def put_queues(self, plan: Plan) -> None:
        """Bring every circuit port's queues to the plan, one transaction a database.

        Raises:
            SouthboundError: a database is gone, refused, or the switch did not act on it.
        """
        by_writer: dict[QueueWriter, dict[str, PortQueues]] = {}
        for switch in self._site.network.switches:
            by_writer.setdefault(self._writers[switch.name], {}).update(port_queues(self._site.network, switch, plan))
        for writer, ports in by_writer.items():
            writer.apply(ports, TIMEOUT_S)
