"""Whether a controller of a pair leads, and until when it may take itself for the leader. Pure.

The leader renews a row of the database, and whoever finds that row over may take it, under a later term. The row counts
by the server's clock, from when a renewal arrives there. Who leads counts by his own elapsed time, from before he sent
it, and stops earlier: so two never lead at once by what they know, whatever their clocks say and however late an answer
comes. What is done by one that is stopped after it has looked is refused by its term.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

TTL_US = 500_000
"""How long the leader's row holds without being renewed."""
RENEWALS = 4
"""So many times it is renewed meanwhile: that two in a row are lost or late ends nothing."""
VOUCHED_US = 1_000_000
"""For how long a leader that is not confirmed goes by what its switches have said, from before it asked them."""


class PairStanding(StrEnum):
    """How a controller stands."""

    STANDBY = "standby"
    LEADER = "leader"
    UNSURE = "unsure"
    """It led, and for so long the database has not confirmed it: it decides nothing, and repeats what it has said to
    hosts for which its switches vouch."""
    DEPOSED = "deposed"
    """Another has led since: for this process that is the end."""


@dataclass(frozen=True, slots=True)
class Leading:
    """What a controller knows of its leading.

    Attributes:
        term: under which it leads or has led; 0 if it never has.
        until_us: to when it may decide, elapsed time.
        is_deposed: whether another has led since.
    """

    term: int = 0
    until_us: int = 0
    is_deposed: bool = False

    def took(self, term: int, asked_us: int, ttl_us: int) -> "Leading":
        """Return it after the row was taken under a term, by a question that was sent at ``asked_us``."""
        return Leading(term, asked_us + ttl_us)

    def renewed(self, asked_us: int, ttl_us: int) -> "Leading":
        """Return it after the row was renewed, by a question that was sent at ``asked_us``."""
        return replace(self, until_us=max(self.until_us, asked_us + ttl_us))

    def deposed(self) -> "Leading":
        """Return it after another has taken the row."""
        return replace(self, until_us=0, is_deposed=True)

    def standing(self, elapsed_us: int) -> PairStanding:
        """Return how it stands at an instant."""
        if self.is_deposed:
            return PairStanding.DEPOSED
        if not self.term:
            return PairStanding.STANDBY
        return PairStanding.LEADER if elapsed_us < self.until_us else PairStanding.UNSURE


@dataclass(frozen=True, slots=True)
class LeaderView:
    """Who leads, as one controller knows it; by default one that is alone.

    Attributes:
        standing: how this one stands; None if it is alone.
        takes: whether it takes requests that change something.
        term: under which is led.
        address: where who leads takes requests; empty if that is this one alone, or nobody.
        holder: who leads, for people.
        since_us: since when, Unix time.
        age_us: how old what this one knows of the promises may be; 0 of who leads.
        others: who stands by, for people, as who leads sees it.
    """

    standing: PairStanding | None = None
    takes: bool = True
    term: int = 0
    address: str = ""
    holder: str = ""
    since_us: int = 0
    age_us: int = 0
    others: tuple[str, ...] = ()
