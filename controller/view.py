"""The plan at every layer, at one moment, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.plan.delays import MeasuredDelay
from controller.plan.invariant import Layers
from controller.plan.lines import LineState
from controller.plan.plan import Entry, Plan
from controller.state.progress import EntryProgress
from controller.state.reported import NO_AGENT, HostState
from topology.network import Hop


@dataclass(frozen=True, slots=True)
class View:
    """The plan at every layer, at one moment.

    Attributes:
        desired: the plan that is wanted.
        installed: the plan whose meters are in force, None before the first.
        layers: by link, what each layer lets through at this moment.
        hosts: every host's agent.
        error: why the last step failed, empty if it did not.
        lines: by circuit, how its line is.
        prepared: by circuit, the plan that is held ready for the case that it dies.
        calendar_off_us: the wall clock less the calendar's time.
        started_us: since when the controller runs, Unix time.
        yet_to_call: the switches and hosts that have not had the time to call since then.
        delays: by circuit whose delay the network's file does not know, what was measured of it.
    """

    desired: Plan
    installed: Plan | None
    layers: Mapping[Hop, Layers]
    hosts: Mapping[str, HostState]
    error: str
    lines: Mapping[str, LineState]
    prepared: Mapping[str, Plan]
    calendar_off_us: int
    started_us: int
    yet_to_call: frozenset[str] = frozenset()
    delays: Mapping[str, MeasuredDelay] = field(default_factory=dict)

    @property
    def in_force(self) -> bool:
        """Whether the plan that is wanted is in force in the switches."""
        return self.installed is not None and self.installed.epoch == self.desired.epoch

    def delivers(self, entry: Entry) -> EntryProgress:
        """Return what an entry of the plan delivers."""
        return self.hosts.get(entry.flow.machine, NO_AGENT).delivers(entry.flow.name, self.started_us)
