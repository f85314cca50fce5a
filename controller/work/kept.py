"""What the convergence keeps from one look at its situation to the next, so that a look costs what has changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.plan.differences import differing_keys
from controller.plan.plan import Entry, Plan
from controller.plan.transitions import NOBODY, Exceeding, exceeding, lesser_of
from controller.state.acts import NOTHING, Acts, acts
from controller.state.reported import HostState, Reported


@dataclass(frozen=True, slots=True)
class Untold:
    """The connected hosts that act, or are about to, on something else than a plan, and what that was found from."""

    plan: Plan
    hosts: Mapping[str, HostState]
    names: frozenset[str] = frozenset()


ALL_TOLD = Untold(Plan(0, {}, ()), {})


def untold(hosts: Mapping[str, HostState], plan: Plan, before: Untold = ALL_TOLD) -> Untold:
    """Return the connected hosts that act on something else than a plan; the same whatever was found ``before``."""
    differing = {*differing_keys(before.hosts, hosts), *plan.hosts_apart(before.plan)}
    there = ((name, hosts[name]) for name in differing if name in hosts)
    others = {
        name
        for name, host in there
        if host.connected and (host.acts_as_granted != plan.of_host(name) or host.called != plan.called.get(name, ()))
    }
    return Untold(plan, hosts, before.names - differing | others)


@dataclass(slots=True)
class KeptLooks:
    """The latest answers. Each would be the same without them."""

    _acts: Acts = NOTHING
    _lesser: tuple[Plan, Plan, Plan] | None = None
    _exceeding: dict[str, Exceeding] = field(default_factory=dict)
    _untold: Untold = ALL_TOLD

    def acts(self, reported: Reported, meters: Plan | None, elapsed_us: int) -> Acts:
        """Return what hosts may be acting on now."""
        self._acts = acts(reported, meters, elapsed_us, self._acts)
        return self._acts

    def lesser(self, old: Plan, new: Plan) -> Plan:
        """Return the plan between two."""
        known = self._lesser
        if known is None or known[0] is not old or known[1] is not new:
            self._lesser = known = (old, new, lesser_of(old, new))
        return known[2]

    def is_within(self, acting: Mapping[str, tuple[Entry, ...]], plan: Plan, which: str) -> bool:
        """Return whether no host may be acting on more than a plan gives it; ``which``: of the plans looked at."""
        self._exceeding[which] = found = exceeding(acting, plan, self._exceeding.get(which, NOBODY))
        return not found.hosts

    def untold(self, hosts: Mapping[str, HostState], plan: Plan) -> frozenset[str]:
        """Return the connected hosts that act, or are about to, on something else than a plan."""
        self._untold = untold(hosts, plan, self._untold)
        return self._untold.names
