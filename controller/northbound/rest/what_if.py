"""``/v1/what-if`` and ``/v1/scenario``: what a circuit's death would break, and what a what-if goes on from."""

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.errors import NotKnown
from controller.live_site import plain_of
from controller.northbound.dependencies import Dependencies
from controller.northbound.forecasts import LONGEST_S, ForecastBusy, ForecastFailed, Forecasts
from controller.northbound.rest.answers import Routes, answer, problem
from controller.northbound.rest.shapes import WHOLE, Time
from topology import __version__
from topology.units import shown_time

CircuitName = Annotated[str, Path(alias="circuit", description="Which dies.", examples=["chile-illinois"])]
Unlike = Annotated[
    list[str],
    Field(
        description="What is otherwise than it is taken to be.", examples=[["north is down, and is taken to stay so"]]
    ),
]


@with_config(WHOLE)
class BreaksOut(TypedDict):
    """A promise that would be broken."""

    kind: Annotated[Literal["reservation", "announcement"], Field(description="What it is.")]
    id: Annotated[str, Field(description="Its name.", examples=["9f86d081884c7d65"])]
    why: Annotated[str, Field(description="What would be in its way.", examples=["north: the line is down"])]
    promised: Annotated[Time | None, Field(description="By when it was to be done, or until when it lasts.")]
    done: Annotated[Time | None, Field(description="When it would be done; null if not by the end.")]
    lacks_s: Annotated[float, Field(description="For how long a reservation would not be carried, seconds.")]


@with_config(WHOLE)
class DeathOut(TypedDict):
    """What breaks if a circuit dies at this moment and stays dead."""

    circuit: Annotated[str, Field(description="Which.", examples=["chile-illinois"])]
    at: Annotated[Time, Field(description="When it would die: when this was asked.")]
    until: Annotated[Time, Field(description="How far is looked: the last promise's end, a week at most.")]
    unlike: Unlike
    breaks: Annotated[list[BreaksOut], Field(description="The promises that this breaks.")]
    anyway: Annotated[list[BreaksOut], Field(description="Those that break though it lives.")]


@with_config(WHOLE)
class ScenarioOut(TypedDict):
    """The site as it is, whole."""

    version: Annotated[str, Field(description="Of the controller; `site` is for the same version of `headway`.")]
    at: Annotated[Time, Field(description="When it was so.")]
    unlike: Unlike
    site: Annotated[
        dict[str, Any],
        Field(
            description="Network, policy, flows, schedules and promises in base units, for `headway what-if --live`."
        ),
    ]


class WhatIfRoutes:
    """The handlers."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._reports = dependencies.reports
        self._circuits = tuple(circuit.name for circuit in dependencies.network.circuits)
        self._forecasts = Forecasts()

    def routes(self) -> Routes:
        """Return the routes."""
        routes = Routes("what-if")
        whole = {200: {"model": ScenarioOut, "description": "As it is now"}}
        dies = {200: {"model": DeathOut, "description": "Worked out"}}
        routes.add("GET /v1/scenario", self.scenario, whole)
        routes.add("GET /v1/what-if/{circuit}", self.dies, dies, 404, 422, 429, 503)
        return routes

    def scenario(self) -> Response:
        """Return the site as it is now, for `headway what-if --live` to go on from."""
        live = self._reports.live_site()
        said: ScenarioOut = {
            "version": __version__,
            "at": shown_time(live.at_us),
            "unlike": list(live.unlike),
            "site": plain_of(live),
        }
        return answer(said)

    def dies(self, name: CircuitName) -> Response:
        """Return which promises break if a circuit dies now, worked out beside the controller, one at a time."""
        if name not in self._circuits:
            raise NotKnown("circuit", name, self._circuits)
        try:
            return answer(self._forecasts.dies(self._reports.live_site(), name))
        except ForecastBusy:
            why = "another forecast is being worked out: ask again when that is done"
            return problem(429, "too-many", why, {}, {"Retry-After": "5"})
        except ForecastFailed as failed:
            return problem(503, "no-forecast", str(failed), {}, {"Retry-After": str(LONGEST_S)})
