"""The plans of a virtual site, each worked out once for what it is made of. Pure."""

from dataclasses import replace

from controller.plan.plan import Plan, PlanInput
from controller.site import Site
from controller.state.desired import desired_plan
from controller.state.installed import Installed

MOST_PLANS = 1_000  # that are remembered: a long run with ever other promises must not fill the memory


class Plans:
    """What was planned so far."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._known: dict[object, Plan] = {}
        self._latest: Plan | None = None

    def plan(self, demand: PlanInput, epoch: int) -> Plan:
        """Return the plan for a demand; of one that was asked for before, what was answered then."""
        asked = (
            demand.flows,
            tuple(demand.capacity_bps.items()),
            tuple(demand.reserved_bps.items()),
            demand.down,
        )
        if asked not in self._known:
            if len(self._known) >= MOST_PLANS:
                self._known.clear()
            before = self._latest.workings if self._latest else None
            self._latest = self._known[asked] = desired_plan(self._site, Installed(), epoch, demand, before)
        return replace(self._known[asked], epoch=epoch)


def is_same(one: Plan, other: Plan) -> bool:
    """Return whether two plans say the same, whatever their numbers; mostly they are the same objects."""
    if one.links is other.links and one.entries is other.entries and one.down is other.down:
        return True
    return (one.links, one.entries, one.down) == (other.links, other.entries, other.down)
