"""Who stands by has the plan that it would lead with worked out for switches, until it leads or ends."""

import threading
from types import SimpleNamespace

import pytest

from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import GIGABIT, IMAGE
from controller.site import Site
from controller.state.guard import GuardedState
from controller.tests.fakes import Clock
from controller.work.preparing import Preparing
from mininet_tests.testing.eventually import eventually


@pytest.fixture
def standby():
    """The state of one that stands by, what it has had prepared, and how it is told that it leads."""
    state = GuardedState(Site(GIGABIT, DEFAULT_POLICY, IMAGE, 300), Clock().instant, 0, stands_by=True)
    leadership, prepared = SimpleNamespace(led=threading.Event()), []
    thread = threading.Thread(target=Preparing(state, leadership, prepared.append).run, daemon=True)
    thread.start()
    yield state, prepared, leadership, thread
    state.stop()
    thread.join(5)
    assert not thread.is_alive()


def test_each_plan_is_prepared(standby):
    state, prepared, _, _ = standby
    eventually(lambda: prepared, within_s=5, what="the first plan")
    state.lead(7)  # which makes another; its thread has not heard of it yet
    with state.changed:
        plan = state.desired.plan
    assert plan is not prepared[0]
    eventually(lambda: prepared[-1] is plan, within_s=5, what="the next plan")


def test_nothing_is_prepared_by_one_that_leads(standby):
    _, prepared, leadership, thread = standby
    eventually(lambda: prepared, within_s=5, what="the first plan")
    leadership.led.set()
    thread.join(5)
    assert not thread.is_alive()
