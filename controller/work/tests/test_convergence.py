"""How long the convergence waits when nothing is to be done."""

import pytest

from controller.tests.fakes import Clock, image, ready_site
from controller.work import convergence

TOGETHER_US = 1_000


class SlowClock(Clock):
    """A clock that goes on by so much with each reading, as if each look took as long."""

    look_us = 0

    def instant(self):
        """Return the time in both kinds, later each time."""
        self.now_us += self.look_us
        return super().instant()


def test_what_falls_due_while_the_convergence_looks_is_not_waited_for_until_somebody_says_something(monkeypatch):
    clock = SlowClock()
    site = ready_site(clock=clock, together_us=TOGETHER_US)

    def settled():
        for _ in range(3):
            clock.now_us += 10 * TOGETHER_US
            site.converge()

    site.announce(image())
    settled()
    site.demand("base20", "base21")
    settled()
    site.demand("base20", "base21", wants=False)
    clock.look_us = 6 * TOGETHER_US // 10
    waited_s = []

    def wait(timeout_s):
        waited_s.append(timeout_s)
        site.state.stop()

    monkeypatch.setattr(convergence, "RESTS", 0)
    monkeypatch.setattr(site.state.changed, "wait", wait)
    site.convergence.run()
    assert waited_s
    assert 0 < waited_s[0] < TOGETHER_US / 1e6


@pytest.mark.parametrize("changes", [True, False], ids=["something changes", "nothing changes"])
def test_what_changes_while_it_rests_is_looked_at_after_that_without_being_told(monkeypatch, changes):
    site = ready_site()
    state, did = site.state, []

    def rest(_seconds):
        did.append("rests")
        if changes and did.count("rests") == 1:
            state.put_host("base20", state.reported.hosts["base20"]._replace(kernel="another"))

    def wait(_seconds):
        did.append("waits")
        state.stop()

    monkeypatch.setattr(site.convergence, "_next", lambda: did.append("looks"))
    monkeypatch.setattr(state.halted, "wait", rest)
    monkeypatch.setattr(state.changed, "wait", wait)
    site.convergence.run()
    again = ["looks", "rests"] if changes else []
    assert did == [*again, "looks", "rests", "waits"]
