"""What needs somebody, for scripts: the headline of the page, as values."""

from typing import Annotated

from fastapi import Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.northbound.page.watch import Watch
from controller.northbound.rest.answers import Routes, answer
from controller.northbound.rest.shapes import WHOLE, Time
from topology.units import shown_time


@with_config(WHOLE)
class NeedOut(TypedDict):
    """Something that needs somebody."""

    kind: Annotated[str, Field(description="What kind of thing.", examples=["switch-gone"])]
    place: Annotated[str, Field(description="Whose it is.", examples=["ls1"])]
    what: Annotated[str, Field(description="Where and why.")]
    since: Annotated[Time, Field(description="When it was seen first.")]
    means: Annotated[str, Field(description="What it means for transfers.")]
    command: Annotated[str, Field(description="What helps, or shows more.", examples=["headway switches"])]
    touches: Annotated[list[str], Field(description="The promises that are not carried because of it.")]


@with_config(WHOLE)
class NeedsOut(TypedDict):
    """What needs somebody, causes before what they cause."""

    headline: Annotated[str, Field(description="One sentence.", examples=["All is as planned."])]
    at: Annotated[Time, Field(description="When the controller has looked, once a second.")]
    needs: Annotated[list[NeedOut], Field(description="Each of them; none if all is as planned.")]


class NeedsView:
    """The handler."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("state")
        good = {200: {"model": NeedsOut, "description": "As it was a second ago at most"}}
        routes.add("GET /v1/needs", self.needs, good)
        return routes

    def needs(self) -> Response:
        """Return what needs somebody: the headline of the page, what it means and what helps."""
        look = self._watch.latest()
        found: NeedsOut = {
            "headline": look.headline,
            "at": shown_time(look.at_us),
            "needs": [
                {
                    "kind": str(one.kind),
                    "place": one.place,
                    "what": one.text,
                    "since": shown_time(one.since_us),
                    "means": one.meaning,
                    "command": one.command,
                    "touches": list(one.touches),
                }
                for one in look.needs
            ],
        }
        return answer(found)
