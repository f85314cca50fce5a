"""Which transfers ran by their hosts' own congestion control, as agents' logs tell: no figure of a plan is theirs."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_FELL, _OVER = re.compile(r"\bagent\.fallback\b"), re.compile(r"\bagent\.fallback_over\b")


class Fallbacks(NamedTuple):
    """How often allocations were given back so far, and how often taken again."""

    fell: int
    over: int

    def in_a_run_since(self, before: "Fallbacks") -> bool:
        """Return whether any was on its fallback at some time from ``before`` to now.

        >>> Fallbacks(1, 1).in_a_run_since(Fallbacks(1, 1)), Fallbacks(1, 0).in_a_run_since(Fallbacks(0, 0))
        (False, True)
        >>> Fallbacks(1, 1).in_a_run_since(Fallbacks(1, 0))
        True
        """
        return self.fell > before.fell or before.fell > before.over


def fallbacks(logs: Iterable[str]) -> Fallbacks:
    r"""Return what agents' logs tell.

    >>> fallbacks(["12:00 agent.fallback entry=a\n12:10 agent.fallback_over entry=a\n", "12:01 agent.fallback entry=b"])
    Fallbacks(fell=2, over=1)
    """
    texts = list(logs)
    return Fallbacks(*(sum(len(kind.findall(text)) for text in texts) for kind in (_FELL, _OVER)))
