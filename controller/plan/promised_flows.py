"""What the plan is made of at an instant: the flows of all promises, and what is booked for them. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping

from controller.plan.announced_flows import AnnouncedFlows, announced_flows
from controller.plan.announcements import Announcement
from controller.plan.answers import answers
from controller.plan.paths import Path
from controller.plan.plan import Flow, PlanInput
from controller.plan.policy import Policy
from controller.plan.reservations import Reservation
from controller.plan.resources import need
from controller.plan.schedules import Schedules
from controller.plan.told_apart import Booked, reserved_bps, told_apart
from topology.network import Network


class PromisedFlows:
    """The flows of all promises; those of announcements that have not changed are the very same values each time."""

    def __init__(self, network: Network, policy: Policy, schedules: Schedules) -> None:
        self._network = network
        self._policy = policy
        self._schedules = schedules
        self._announced: dict[str, AnnouncedFlows] = {}  # of the latest demand

    def go_by(self, network: Network) -> None:
        """Go by other delays of the same network."""
        self._network = network
        self._announced = {}

    def demand(
        self,
        standing: Iterable[Flow],
        reservations: Collection[Reservation],
        announcements: Mapping[str, Announcement],
        now_us: int,
        flow_of: Callable[[Reservation], Flow | None],
        path_of: Callable[[Reservation], Path],
    ) -> PlanInput:
        """Return what the plan is made of.

        Args:
            standing: the flows that are always there.
            reservations: those that the plan carries.
            announcements: by name.
            now_us: Unix time.
            flow_of: the flow of a reservation between two hosts; None for one between sites, or one that must wait.
            path_of: the path that a reservation takes now, and what draws on it; empty for one that must wait.
        """
        flows, booked = list(standing), list[Booked]()
        two_paths = {known.reservation_id: known for known in reservations if len(known.paths) > 1}
        for known in reservations:
            if (flow := flow_of(known)) is not None:
                flows.append(flow)
            needs = need(self._network, known.paths, known.flow_class)
            booked.append(Booked((known.a_end, known.z_end), needs, known.paths, known.rate_bps))
        before, self._announced = self._announced, {}
        for name, promise in announcements.items():
            drawn_on = two_paths.get(promise.pool)
            path = path_of(drawn_on) if drawn_on else ()
            one = announced_flows(promise, now_us, self._network, self._policy, path, before.get(name))
            self._announced[name] = one
            for flow in one.flows:
                flows.append(flow)
                if not promise.pool:
                    needs = need(self._network, (flow.path,), flow.flow_class)
                    booked.append(Booked((flow.host, flow.target), needs, (flow.path,), flow.floor_bps))
        planned = told_apart(flows, self._policy)
        ends = {way for one in booked for way in (one.ends, one.ends[::-1])}
        answering = (flow for flow in planned if (flow.host, flow.target) in ends)
        reserved = reserved_bps(booked, answers(answering, self._policy))
        return PlanInput(planned, self._schedules.usable_bps(now_us), reserved)
