"""What there is to see: the plan, the network, hosts and switches, transitions, and whether all is well."""

from typing import Any

from fastapi import Response

from controller.northbound.dependencies import Dependencies
from controller.northbound.rest import render, render_receivers
from controller.northbound.rest.answers import Routes, answer
from controller.northbound.rest.network_shapes import BurstOut, CircuitOut, HostStateOut, SwitchOut, TopologyOut
from controller.northbound.rest.receiver_shapes import ReceiversOut
from controller.northbound.rest.shapes import HealthOut, StepOut, ViewOut
from controller.plan.leading import PairStanding


def _shown(model: Any, status: int = 200, description: str = "As it is now") -> dict[int, dict[str, Any]]:
    return {status: {"model": model, "description": description}}


class Views:
    """The handlers."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._reports = dependencies.reports
        self._saves = dependencies.use_cases.saves
        self._network = dependencies.network
        self._connected = dependencies.connected
        self._leader = dependencies.leader

    def routes(self) -> Routes:
        """Return the routes."""
        routes = Routes("state")
        routes.add("GET /healthz", self.healthz, _shown(HealthOut) | _shown(HealthOut, 503, "It is not"))
        routes.add("GET /v1/plan", self.plan, _shown(ViewOut))
        routes.add("GET /v1/circuits", self.circuits, _shown(list[CircuitOut]))
        routes.add("GET /v1/transitions", self.transitions, _shown(list[StepOut]))
        routes.add("GET /v1/topology", self.topology, _shown(TopologyOut))
        routes.add("GET /v1/bursts", self.bursts, _shown(list[BurstOut]))
        routes.add("GET /v1/receivers", self.receivers, _shown(ReceiversOut))
        routes.add("GET /v1/hosts", self.hosts, _shown(list[HostStateOut]))
        routes.add("GET /v1/switches", self.switches, _shown(list[SwitchOut]))
        return routes

    def healthz(self) -> Response:
        """Return whether the wanted plan is in force in the switches and all that is promised is carried.

        Of a controller that stands by: whether another one leads, and whether it knows of all that was promised until
        some seconds ago.
        """
        leader = self._leader()
        if leader.standing is PairStanding.STANDBY:
            health = render.standby_health(self._reports.view(), leader)
            return answer(health, 200 if health["ok"] else 503)
        troubles = self._reports.troubles(self._connected())
        health = render.health(self._reports.view(), troubles, self._saves.unsaved_us, leader.standing)
        return answer(health, 200 if health["ok"] else 503)

    def plan(self) -> Response:
        """Return the plan: wanted, installed, and what each layer lets through now."""
        return answer(render.view(self._reports.view(), self._network))

    def circuits(self) -> Response:
        """Return every circuit, how its line is, and the plan that is ready for the case that it dies."""
        return answer(render.circuits(self._reports.view(), self._network))

    def transitions(self) -> Response:
        """Return the latest steps from plan to plan, oldest first."""
        return answer([render.step(s) for s in self._reports.steps()])

    def topology(self) -> Response:
        """Return the network, with the delays that were measured."""
        measured_us = {name: one.delay_us for name, one in self._reports.view().delays.items()}
        return answer(render.topology(self._network.with_measured(measured_us)))

    def bursts(self) -> Response:
        """Return, for each port, what a start of all its senders needs of its buffer, and what they do."""
        return answer([render.burst(port) for port in self._reports.bursts()])

    def receivers(self) -> Response:
        """Return what receivers take, which flows they hold, and who has what these do not use."""
        return answer(render_receivers.receivers(self._reports.receivers()))

    def hosts(self) -> Response:
        """Return every host's agent and its counters."""
        return answer([render.host(name, state) for name, state in self._reports.view().hosts.items()])

    def switches(self) -> Response:
        """Return every switch, and whether it is connected."""
        connected = self._connected()
        return answer([render.switch(s, s.dpid in connected) for s in self._network.switches])
