"""What becomes due when: each time of a name once, and nothing of what is dropped."""

from controller.plan.due import Due
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import LifecycleEvent
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.asking import NOW, asked, created
from mininet_tests.testing.networks import chile_illinois


def test_a_time_is_there_once_however_often_it_is_added():
    due = Due()
    for _ in range(3):
        due.add(5, "a")
        due.add(5, "b")
    assert (len(due), list(due.until(5)), due.next_us()) == (2, ["a", "b"], None)
    due.add(5, "a")
    assert list(due.until(5)) == ["a"]


def test_what_was_dropped_and_swept_out_can_be_added_again():
    due = Due()
    for number in range(200):
        due.add(number, str(number))
    for number in range(150):
        due.drop(str(number))
    assert len(due) < 200
    due.add(3, "3")
    assert (due.next_us(), list(due.until(3))) == (3, ["3"])


def test_what_is_passed_over_can_be_added_again():
    due = Due()
    due.add(1, "a")
    due.skip(1, lambda _name, _now_us: True)
    assert due.next_us() is None
    due.add(1, "a")
    assert due.next_us() == 1


def test_what_is_written_of_a_reservation_is_due_once_however_often_it_is_written():
    ledger = Ledger(chile_illinois(), DEFAULT_POLICY)
    ledger.hold(asked(start_us=NOW), created("night"))
    ledger.happened("night", LifecycleEvent.COMMIT, NOW)
    ledger.tick(NOW)
    before = len(ledger._due)
    for number in range(1, 101):
        ledger.note("night", f"its agent has come {number} times", NOW + number)
        ledger.tick(NOW + number)
    assert len(ledger._due) <= before + 1
