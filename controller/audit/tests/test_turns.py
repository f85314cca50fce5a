"""The audit's thread beside the convergence's: a repair never undoes a step of a transition."""

import random
import threading
import time
from collections.abc import Callable

import pytest

from controller.audit.drift import Compared, Deviation, DriftKind, Outcome, Shape
from controller.audit.switches import Part
from controller.tests.fakes import FakeSite, FakeSwitches
from mininet_tests.testing.eventually import eventually

REPAIRED = Part(Compared(deviations=(Deviation(DriftKind.FLOW, Shape.MISSING, outcome=Outcome.REPAIRED),)))
PROPER = Part(Compared())


class HeldSwitches(FakeSwitches):
    """Switches that hold one plan, and do something of the test's before each write."""

    def __init__(self):
        super().__init__()
        self.held: int | None = None  # the epoch; None: somebody has deleted it
        self.written: list[tuple[str, int]] = []
        self.before: Callable[[str], object] = lambda _what: None

    def put_meters(self, plan, shut, *, no_higher=False):
        """Hold another plan."""
        failed = super().put_meters(plan, shut, no_higher=no_higher)
        self._write("step", plan.epoch)
        return failed

    def audited(self, switch, meters, queues, shut):
        """Compare, and if that is not what is held repair it."""
        super().audited(switch, meters, queues, shut)
        if self.held == meters.epoch:
            return (PROPER,)
        self._write("repair", meters.epoch)
        return (REPAIRED,)

    def _write(self, what, epoch):
        self.before(what)
        self.held = epoch
        self.written.append((what, epoch))


class WriteBlock:
    """Stops who is about to write one sort of thing, until it is let go on."""

    def __init__(self, what: str):
        self._what = what
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, what: str) -> None:
        if what == self._what:
            self.reached.set()
            assert self.go_on.wait(5)


def held_site() -> FakeSite:
    """A site whose switches hold its first plan."""
    site = FakeSite(switches=HeldSwitches())
    site.attach_all()
    site.converge()
    site.switches.written.clear()
    return site


def lose(site: FakeSite) -> None:
    """Let somebody delete what a switch holds, and the switch say so."""
    site.switches.held = None
    site.switch_reports.rule_gone(1)


def wish(site: FakeSite) -> int:
    """Desire another plan; return its epoch."""
    with site.state.changed:
        site.state.grant_anew()
    return site.value.desired.plan.epoch


def in_background(work: Callable[[], object]) -> threading.Thread:
    """Do some work in a thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def waits(thread: threading.Thread) -> bool:
    """Whether a thread does not get on."""
    thread.join(0.2)
    return thread.is_alive()


def test_a_step_that_is_wanted_while_a_switch_is_repaired_comes_after_the_repair():
    site = held_site()
    old = site.value.installed.meters.epoch
    site.switches.before = stop = WriteBlock("repair")
    lose(site)
    audit = in_background(site.audits.next)
    assert stop.reached.wait(5)
    new = wish(site)
    convergence = in_background(site.convergence.step)
    assert waits(convergence)
    assert site.switches.written == []
    stop.go_on.set()
    audit.join(5)
    convergence.join(5)
    assert site.switches.written == [("repair", old), ("step", new)]


def test_no_switch_is_compared_while_a_step_is_half_done():
    site = held_site()
    site.switches.before = stop = WriteBlock("step")
    new = wish(site)
    convergence = in_background(site.convergence.step)
    assert stop.reached.wait(5)
    lose(site)
    audit = in_background(site.audits.next)
    assert waits(audit)
    assert site.switches.audited_with == []
    stop.go_on.set()
    audit.join(5)
    convergence.join(5)
    site.audits.next()  # if the first found the hosts not granted yet
    assert {meters.epoch for _, meters, _ in site.switches.audited_with} == {new}
    assert site.switches.held == new


def test_what_a_switch_that_comes_back_has_lost_is_found_and_put_back_before_anything_else_changes():
    site = held_site()
    old = site.value.installed.meters.epoch
    site.switches.held = None
    site.switch_up(1)
    site.convergence.step()
    assert site.switches.written == []  # the audit's turn
    site.audits.next()
    assert site.audits.view().repaired == {("ls1", DriftKind.FLOW, Shape.MISSING): 1}
    new = wish(site)
    site.convergence.step()
    assert site.switches.written == [("repair", old), ("step", old), ("step", new)]


def test_each_of_two_switches_that_come_back_at_once_is_compared_before_anything_is_put_back():
    site = held_site()
    for switch in site.state.site.network.switches:
        site.switch_up(switch.dpid)
    for _ in site.state.site.network.switches:
        site.convergence.step()
        assert site.switches.written == []
        site.audits.next()
    assert [name for name, _, _ in site.switches.audited_with] == [s.name for s in site.state.site.network.switches]
    site.convergence.step()
    assert [what for what, _ in site.switches.written] == ["step"]


def test_what_comes_back_in_the_middle_of_a_transition_is_put_back_without_an_audit():
    site = held_site()
    old, new = site.value.installed.meters.epoch, wish(site)
    site.switches.held = None
    site.switch_up(1)
    site.convergence.step()
    assert site.switches.written == [("step", old), ("step", new)]
    assert site.switches.audited_with == []


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_two_threads_do_an_older_plan_is_never_written_over_a_newer(seed):
    site, chance = held_site(), random.Random(seed)  # noqa: S311
    site.switches.before = lambda what: time.sleep(0.003 if what == "repair" else 0)
    threads = [in_background(site.audits.run), in_background(site.convergence.run)]
    for _ in range(60):
        chance.choice([wish, lose, lambda s: s.switch_up(1)])(site)
        time.sleep(chance.choice([0, 0.001, 0.002, 0.01]))
    lose(site)
    eventually(
        lambda: site.switches.held == site.value.desired.plan.epoch and not site.value.reported.switches_back,
        within_s=10,
        what="the switches hold the plan that is desired",
    )
    site.state.stop()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    epochs = [epoch for _, epoch in site.switches.written]
    assert epochs == sorted(epochs)
