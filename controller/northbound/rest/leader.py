"""``/v1/leader``: which of a pair of controllers leads, and letting another one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from fastapi import Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.northbound.dependencies import Dependencies
from controller.northbound.rest.answers import Routes, answer, problem
from controller.northbound.rest.shapes import WHOLE, Time
from controller.plan.leading import LeaderView
from topology.units import shown_time

NOBODY = (
    "no other controller stands by at this moment, so nobody would lead: start it, or wait until "
    "`headway leader` lists it, and ask again"
)


@with_config(WHOLE)
class LeaderOut(TypedDict):
    """Which controller leads, as the one that is asked knows it."""

    leading: Annotated[bool, Field(description="Whether the one that is asked leads, and takes what changes anything.")]
    standing: Annotated[
        str,
        Field(
            description="How the one that is asked stands: `alone` if it is no pair, `leader`, `standby`, or `unsure`: "
            "it leads, but the database does not answer, so it decides nothing.",
            examples=["leader"],
        ),
    ]
    term: Annotated[int, Field(description="Under which is led; it grows with each change of leaders. 0 if alone.")]
    leader: Annotated[str | None, Field(description="Who leads, for people; null if alone, or if nobody leads now.")]
    address: Annotated[str | None, Field(description="Where who leads takes requests; null if alone, or nobody.")]
    since: Annotated[Time | None, Field(description="Since when it leads; null if alone, or nobody ever has.")]
    lag_s: Annotated[
        float, Field(description="How old what the one that is asked knows of promises may be, s; 0 of who leads.")
    ]
    standbys: Annotated[list[str], Field(description="Who stands by, as who leads sees it; empty from who does not.")]


class LeaderRoutes:
    """The handlers."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._leader: Callable[[], LeaderView] = dependencies.leader
        self._standbys = dependencies.standbys
        self._leave = dependencies.leave

    def routes(self) -> Routes:
        """Return the routes."""
        routes = Routes("state")
        shown = {200: {"model": LeaderOut, "description": "As it is now"}}
        routes.add("GET /v1/leader", self.leader, shown)
        moved = {202: {"model": LeaderOut, "description": "It is about to"}}
        routes.add("POST /v1/leader/move", self.move, moved, 409, 503)
        return routes

    def leader(self) -> Response:
        """Return which controller leads, how this one stands, and how old what it knows may be."""
        return answer(_shown(self._leader()))

    def move(self) -> Response:
        """Let a controller that stands by lead instead of this one, which begins anew and stands by.

        It is refused unless one stands by that has looked at the leader's row in the last second.
        """
        leader = self._leader()
        if not leader.standing:
            return problem(409, "no-standby", "this is no pair", {})
        others = self._standbys()
        if not others:
            return problem(409, "no-standby", NOBODY, {})
        self._leave()
        return answer(_shown(replace(leader, others=others)), 202)


def _shown(value: LeaderView) -> LeaderOut:
    return {
        "leading": value.takes,
        "standing": value.standing or "alone",
        "term": value.term,
        "leader": value.holder or None,
        "address": value.address or None,
        "since": shown_time(value.since_us) if value.since_us else None,
        "lag_s": value.age_us / 1e6,
        "standbys": list(value.others),
    }
