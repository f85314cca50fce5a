"""What a controller that has just started cannot know yet: who is gone, and who has not had the time to call. Pure."""

from controller.site import Site
from controller.state.value import SiteState

STARTING_US = 30_000_000  # switches and agents call again within seconds of a controller's start


def yet_to_call(site: Site, state: SiteState, elapsed_us: int) -> frozenset[str]:
    """Return the switches and hosts, by name, that have not called since the start, while that needs nobody."""
    if elapsed_us >= state.started_us + STARTING_US:
        return frozenset()
    wiring, hosts = state.reported.wiring, state.reported.hosts
    known = wiring.ports.keys() | wiring.gone
    switches = {switch.name for switch in site.network.switches if switch.dpid not in known}
    return frozenset(switches | {name for name in hosts.away if not hosts[name].since_us})
