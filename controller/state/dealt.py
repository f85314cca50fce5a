"""Whether an announcement's connections are dealt to its lanes yet. Pure."""

from collections.abc import Mapping

from controller.plan.announcements import Announcement
from controller.state.reported import NO_AGENT, HostState
from topology.network import Network


def is_dealt(known: Announcement, hosts: Mapping[str, HostState], network: Network) -> bool:
    """Return whether those who deal have confirmed that they do: the lanes' host, and their receiver if it connects.

    Of a host that is not there nothing is waited for.
    """
    if not known.lanes:
        return True
    receiver = hosts.get(network.machine(known.flows[0].target))
    if known.is_called and receiver is not None and receiver.lacks_lanes(known.announcement_id):
        return False
    return not any(hosts.get(lane.machine, NO_AGENT).lacks(lane.name) for lane in known.flows)
