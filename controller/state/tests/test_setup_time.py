"""How long a site takes to know of a change, as promises count it: by what its transitions have taken of late."""

import pytest

from controller.plan.transitions import Stage
from controller.state.installed import StepDone
from controller.state.setup_time import LATEST, setup_us
from controller.tests.fakes import FakeSite, FakeSwitches, image

MS = 1_000
RTT_US = 180 * MS


def transition(number, each_us, error=""):
    """The steps of one, each as long, and a while after the one before."""
    stages = Stage.HOSTS, Stage.METERS, Stage.QUEUES, Stage.METERS, Stage.HOSTS
    at_us = number * 10**9
    epochs = (2 * number - 1,) * 2 + (2 * number,) * 3
    return [
        StepDone(epoch, stage, at_us + n * each_us, at_us + (n + 1) * each_us, error if n == 3 else "")
        for n, (stage, epoch) in enumerate(zip(stages, epochs, strict=True))
    ]


def mixed(announcements):
    """Transitions of announcements that come and go at both ends of a circuit, and begin and end at one."""
    took_us = (RTT_US, MS, MS, RTT_US) * announcements
    return [step for number, each_us in enumerate(took_us, 1) for step in transition(number, each_us)]


@pytest.mark.parametrize(
    ("before", "expected_us"),
    [
        ([], 0),
        (transition(1, MS), 5 * MS),
        (transition(1, RTT_US) + transition(2, MS), 5 * RTT_US),
        (transition(1, RTT_US) + [step for n in range(LATEST) for step in transition(2 + n, MS)], 5 * MS),
        (mixed(3), 5 * RTT_US),
        (mixed(3) + transition(90, 3_000 * MS), 5 * RTT_US),
        (mixed(3) + transition(90, 5_000 * MS, "it is gone"), 5 * RTT_US),
        (transition(1, MS)[-1:], MS),
        ([*transition(1, MS), StepDone(2, Stage.METERS, 9 * 10**9, 9 * 10**9 + MS)], 5 * MS),
    ],
    ids=["none", "nearby", "far", "far long ago", "both", "held up once", "failed", "hosts alone", "put back later"],
)
def test_it_is_what_the_longest_of_the_latest_transitions_take(before, expected_us):
    assert setup_us(before) == expected_us


class FarSwitches(FakeSwitches):
    """Switches of which one answers so much later."""

    clock = None

    def put_meters(self, *args, **kwargs):
        """Wait for it."""
        self.clock.now_us += 2 * RTT_US
        return super().put_meters(*args, **kwargs)


@pytest.mark.parametrize(("session_us", "begins_us"), [(0, 4 * RTT_US), (3 * RTT_US, 5 * RTT_US)])
def test_a_promise_counts_what_takes_longer_the_connection_or_what_a_far_switch_takes(session_us, begins_us):
    promised_us = []
    for switches in (FakeSwitches(), FarSwitches()):
        site = FakeSite(switches=switches)
        switches.clock = site.clock
        site.attach_all()
        site.wire()
        promise = site.use_cases.announce(image(session_us=session_us)).value
        assert promise.rates[0].start_us >= promise.announced_us
        promised_us.append(promise.promised_us - promise.announced_us)
    near_us, far_us = promised_us
    assert far_us - near_us == begins_us - (session_us + 2 * RTT_US)
