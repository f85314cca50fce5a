"""What was seen of the site at a moment: what all pages show is made of it. A pure value."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.northbound.page.needs import ALONE, Concern, headline
from controller.northbound.page.series import Sample
from controller.plan.leading import LeaderView
from controller.view import View


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at a moment.

    Attributes:
        number: grows by one from each to the next.
        at_us: when, Unix time.
        view: the plan at every layer.
        needs: what needs somebody.
        sample: what is planned and delivered.
        connected: the dpids of the switches that are connected.
        worked_on: by circuit that is worked on now, until when, Unix time.
        leader: which controller of a pair leads.
    """

    number: int
    at_us: int
    view: View
    needs: tuple[Concern, ...]
    sample: Sample
    connected: frozenset[int]
    worked_on: Mapping[str, int]
    leader: LeaderView = ALONE

    @property
    def headline(self) -> str:
        """What is so, in one sentence."""
        return headline(self.needs, len(self.view.yet_to_call), self.leader)
