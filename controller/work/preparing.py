"""The thread of one that stands by which has what switches hold worked out before it leads.

All of it at once takes a tenth of a second among two hundred hosts: whoever asks just after a take-over would wait.
"""

import time
from collections.abc import Callable

from controller.plan.plan import Plan
from controller.state.guard import GuardedState
from controller.work.leadership import LOOK_S, Leadership
from controller.work.pair import rest_s


class Preparing:
    """Keeps ready what a plan means to switches, until we lead.

    Args:
        state: has the plan that we would lead with.
        leadership: whether we lead.
        prepare: works it out, where it differs from what was worked out before.
    """

    def __init__(self, state: GuardedState, leadership: Leadership, prepare: Callable[[Plan], None]) -> None:
        self._state = state
        self._leadership = leadership
        self._prepare = prepare

    def run(self) -> None:
        """Work until we lead, or the state says stop."""
        wait_s = LOOK_S
        while not self._leadership.led.wait(wait_s):
            with self._state.changed:
                if self._state.stopping:
                    return
                plan = self._state.desired.plan
            begun_s = time.thread_time()
            self._prepare(plan)
            wait_s = rest_s(begun_s)
