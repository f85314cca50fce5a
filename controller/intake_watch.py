"""Says whose receiver is held to another rate than before, and lets the plan follow at once."""

from controller.state.guard import GuardedState
from controller.state.receivers import news
from controller.state.reported import HostState
from topology.units import shown_rate


def say_intakes(state: GuardedState, before: HostState, now: HostState) -> None:
    """Publish what a host's telling has changed of what is held; under the lock."""
    stores = [{name: one.intake for name, one in known.stores.items()} for known in (before, now)]
    found = [("flow", one) for one in news(before.intakes, now.intakes)]
    found += [("store", one) for one in news(*stores)]
    for kind, one in found:
        fields = {"host": one.now.host or one.before.host, "flow": "", "store": "", kind: one.name}
        if one.now.drain_bps is None:
            state.events.publish("receiver.over", **fields)
        else:
            fields |= {"drains": shown_rate(one.now.drain_bps), "why": one.now.brake.value}
            state.events.publish("receiver.slow", level="warning", **fields)
    if found:
        state.demand_changed()
