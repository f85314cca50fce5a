"""The calendar's time as the database has it: JSON. Pure."""

import json
from dataclasses import asdict, dataclass

from controller.plan.clock import Instant


@dataclass(frozen=True, slots=True)
class SavedTime:
    """A moment in both kinds of time, and on which boot of a machine elapsed time was counted."""

    boot_id: str
    calendar_us: int
    elapsed_us: int

    @property
    def instant(self) -> Instant:
        """The moment."""
        return Instant(self.calendar_us, self.elapsed_us)


def time_text(saved: SavedTime) -> str:
    """Return it as its JSON text."""
    return json.dumps(asdict(saved))


def time_of(text: str) -> SavedTime:
    """Return the moment of which this is the text.

    Raises:
        ValueError, TypeError: it was not written by us.
    """
    return SavedTime(**json.loads(text))
