"""The circuits that are dead, of which some are under several deaths at once."""

import pytest

from controller.whatif.deaths import DeadCircuits
from controller.whatif.supposed import CircuitDeath


@pytest.mark.parametrize(
    ("spans", "down_us"),
    [
        ([(0, 100), (10, 110)], 110),
        ([(0, 100), (10, 20)], 100),
        ([(0, 100), (100, 110)], 110),
        ([(0, 10), (20, 30)], 20),
        ([(0, 100), (10, 500)], 120),
        ([(0, 50), (0, 70), (30, 60)], 70),
    ],
)
def test_time_under_several_deaths_is_counted_once(spans, down_us):
    dead = DeadCircuits((), 120)
    for begin_us, end_us in spans:
        dead.dies(CircuitDeath("north", begin_us, end_us - begin_us))
    assert dead.deaths == {"north": (len(spans), down_us)}
