"""Deaths of circuits, also by chance, from a seed. Pure."""

import random
from collections.abc import Iterable, Iterator

from controller.whatif.supposed import CircuitDeath, RandomDeaths


def drawn_deaths(failing: Iterable[RandomDeaths], from_us: int, until_us: int, seed: int) -> Iterator[CircuitDeath]:
    """Yield the deaths of circuits between two times, each circuit's in order.

    Each circuit draws from the seed and its name: another circuit, or a longer time, does not change its deaths.
    """
    for one in failing:
        own = random.Random(f"{seed} {one.circuit}")  # noqa: S311 it is not a secret
        at_us = from_us
        while True:
            at_us += max(1, round(own.expovariate(1 / one.mtbf_us)))
            if at_us >= until_us:
                break
            down_for_us = max(1, round(own.expovariate(1 / one.mttr_us)))
            yield CircuitDeath(one.circuit, at_us, down_for_us)
            at_us += down_for_us


class DeadCircuits:
    """The circuits that are dead, of which some are under several deaths at once.

    Attributes:
        deaths: by circuit, how often it died, and for how long in all until the end of the scenario, microseconds.
    """

    def __init__(self, dead: Iterable[str], until_us: int) -> None:
        self._under = dict.fromkeys(sorted(dead), 1)
        self._until_us = until_us
        self._counted_us: dict[str, int] = {}  # by circuit, until when its deaths are counted
        self.deaths: dict[str, tuple[int, int]] = {}

    @property
    def names(self) -> frozenset[str]:
        """Which are dead now."""
        return frozenset(self._under)

    def dies(self, death: CircuitDeath) -> None:
        """Take in a death, which begins no earlier than those before it."""
        times, down_us = self.deaths.get(death.circuit, (0, 0))
        begin_us = max(death.at_us, self._counted_us.get(death.circuit, 0))
        end_us = max(begin_us, min(death.at_us + death.down_for_us, self._until_us))
        self.deaths[death.circuit] = (times + 1, down_us + end_us - begin_us)
        self._counted_us[death.circuit] = end_us
        self._under[death.circuit] = self._under.get(death.circuit, 0) + 1

    def returns(self, circuit: str) -> bool:
        """Take in the end of a death; return whether it was the last one that the circuit was under."""
        self._under[circuit] -= 1
        if not self._under[circuit]:
            del self._under[circuit]
        return circuit not in self._under
