"""Deaths of circuits by chance, from a seed. Pure."""

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
