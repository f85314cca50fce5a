"""The state is touched by one thread at a time, and who forgets it is stopped."""

import threading

import pytest

from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.state.guard import NotHeld
from controller.tests.fakes import FakeSite, ready_site, value_of

TOUCHES = {
    "read the whole": lambda state: state.value,
    "read what was wished": lambda state: state.wished.ledger,
    "read what was reported": lambda state: state.reported.hosts,
    "read what is in force": lambda state: state.installed.meters,
    "read what is desired": lambda state: state.desired.plan,
    "ask whether to stop": lambda state: state.stopping,
    "replace nothing": lambda state: state.put(),
    "note lines": lambda state: state.note_lines(),
    "plan": lambda state: state.replan(),
    "count a demand": lambda state: state.demand_changed(),
    "grant": lambda state: state.grant("base20", 1, ()),
    "grant anew": lambda state: state.grant_anew(),
    "ask when": lambda state: state.due_us(),
    "sleep": lambda state: state.sleep_until(0),
}


@pytest.fixture(scope="module")
def state():
    """The state of a site whose plan is in force."""
    return ready_site().state


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=TOUCHES.keys())
def test_who_touches_the_state_without_the_lock_is_stopped(state, touch):
    before = value_of(state)
    with pytest.raises(NotHeld, match="MainThread touches the state without holding its lock"):
        touch(state)
    assert value_of(state) is before


def test_the_lock_of_another_thread_does_not_count(state):
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with state.changed:
            held.set()
            done.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(10)
    try:
        with pytest.raises(NotHeld):
            _ = state.value
    finally:
        done.set()
        other.join()


def test_purchases_cannot_be_read_beside_the_lock():
    site = FakeSite(lead_us={"chile-illinois": 1})
    with pytest.raises(NotHeld):
        _ = site.state.wished.purchases
    with site.state.changed:
        assert site.state.wished.purchases == {"chile-illinois": {}}


def test_a_value_that_was_taken_out_stays_as_it_was(state):
    before = value_of(state)
    with state.changed:
        state.put_host("base20", state.reported.hosts["base20"]._replace(kernel="another"))
    assert before.reported.hosts["base20"].kernel == "6.12"
    assert value_of(state).reported.hosts["base20"].kernel == "another"
    assert value_of(state).reported.hosts["base21"] is before.reported.hosts["base21"]
    with pytest.raises(AttributeError):
        before.reported.hosts["base20"].kernel = "yet another"


def test_a_purchase_comes_and_goes_without_a_trace_in_what_was_before():
    site = FakeSite(lead_us={"chile-illinois": 1})
    before = value_of(site.state).wished
    bought = before.with_purchase("chile-illinois", Purchase("p", Period(0, 2**60, 10**9), PurchaseState.UP))
    assert (before.bought_bps("chile-illinois", 1), bought.bought_bps("chile-illinois", 1)) == (0, 10**9)
    rebuilding = bought.with_rebuilding("p", 10**8)
    assert rebuilding.bought_bps("chile-illinois", 1) == 10**8
    assert rebuilding.rebuilt("p") == bought
    assert bought.without_purchase("chile-illinois", "p") == before
