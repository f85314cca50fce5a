"""Who keeps the row of a pair's leader, or waits to take it, on a real PostgreSQL."""

import threading
from collections.abc import Callable

from apps.pair import stood_by
from apps.process import Stop
from controller.database.leader_row import LeaderRow, RowNews, SeenLeader
from controller.plan.clock import Instant
from controller.plan.leading import TTL_US, PairStanding
from controller.plan.policy import DEFAULT_POLICY
from controller.site import Site
from controller.state.clock import elapsed_us
from controller.state.guard import GuardedState
from controller.tests.past_contract import ACK_S
from controller.work.leadership import Leadership
from hostagent.agent.supervisor import Supervisor
from mininet_tests.site.needs import NEEDS_POSTGRESQL
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import star

pytestmark = NEEDS_POSTGRESQL


class NotLookedAt(LeaderRow):
    """A row at which nobody looks more often than at the beginning."""

    looks = 2

    def look(self) -> SeenLeader:
        """Look at it, if that may be done still."""
        self.looks -= 1
        assert self.looks >= 0, "it was looked at"
        return super().look()

    def wait(self, _timeout_s: float) -> RowNews:
        """Wait for as long as it takes."""
        return super().wait(10 * ACK_S)


def test_who_hears_that_the_row_was_left_takes_it_without_another_look(url):
    one, row = LeaderRow(url, "a", ""), NotLookedAt(url, "b", "")
    term = one.take(600 * TTL_US, clock_ms=1).term
    other = Leadership(row, elapsed_us, 600 * TTL_US)
    other.look()
    before_us = other.seen_us
    other.may_take = True
    thread = threading.Thread(target=other.run, daemon=True)
    thread.start()
    eventually(lambda: other.seen_us > before_us, within_s=ACK_S, what="it has looked, and waits")
    one.leave(term)
    assert other.led.wait(ACK_S)
    assert row.looks == 0
    other.stop()
    thread.join(ACK_S)
    for each in (one, other):
        each.close()


def test_two_controllers_one_leads_and_the_other_follows_when_it_is_silent(url):
    # The first one's row is to run out, not before it is to be silent; the other one's never.
    two = [Leadership(LeaderRow(url, name, ""), elapsed_us, ttl * TTL_US) for name, ttl in (("a", 8), ("b", 600))]
    for one in two:
        one.may_take = True
    threads = [threading.Thread(target=one.run, daemon=True) for one in two]
    threads[0].start()
    assert two[0].led.wait(ACK_S)
    threads[1].start()
    eventually(lambda: two[0].others == ("b",), within_s=ACK_S, what="the leader sees who stands by")
    eventually(lambda: two[0].others_now() == ("b",), within_s=ACK_S, what="and at once, if it is asked")
    two[0].stop()  # it renews no more, as one that hangs
    threads[0].join(ACK_S)
    assert two[1].led.wait(ACK_S)
    assert (two[0].lost, two[1].lost) == ("", "a")
    eventually(lambda: two[0].standing is PairStanding.UNSURE, within_s=ACK_S, what="the first one knows nothing")
    two[0].step()  # it wakes up
    assert two[0].standing is PairStanding.DEPOSED
    assert two[1].standing is PairStanding.LEADER
    assert two[1].others_now() == ()  # who led before has its session still, and does not stand by
    two[1].stop()
    threads[1].join(ACK_S)
    for one in two:
        one.close()


def test_a_leader_that_resigns_decides_nothing_more_and_keeps_the_row_until_it_leaves(url):
    one, other = (Leadership(LeaderRow(url, name, ""), elapsed_us, 60 * TTL_US) for name in "ab")
    one.may_take = other.may_take = True
    one.step()
    assert one.may_decide()
    one.resign()
    one.step()  # its row is renewed: what it has decided is being written
    other.step()
    assert (one.may_decide(), one.standing, other.led.is_set()) == (False, PairStanding.STANDBY, False)
    one.leave()
    one.step()
    other.step()
    assert (other.led.is_set(), other.may_decide(), other.lost) == (True, True, "")
    for each in (one, other):
        each.close()


def test_who_ends_while_it_stands_by_takes_no_row_that_is_over_and_leaves_one_that_it_has_just_taken(url):
    rows = [LeaderRow(url, name, "") for name in "abc"]
    late, slow, other = (Leadership(row, elapsed_us, 600 * TTL_US) for row in rows)
    stop = Stop()
    stop.set()
    state = GuardedState(Site(star(1, 1), DEFAULT_POLICY, (), 3_000), lambda: Instant(0, 0), 1)
    assert not stood_by(late, state, Supervisor.of_this_process({}), stop)
    thread = threading.Thread(target=late.run, daemon=True)
    thread.start()
    thread.join(ACK_S)
    assert (thread.is_alive(), late.led.is_set()) == (False, False)  # the row is over
    slow.may_take = other.may_take = True
    slow.step()
    slow.leave()  # its process ended meanwhile
    slow.run()
    other.step()
    assert (slow.led.is_set(), other.led.is_set()) == (True, True)
    for row in rows:
        row.close()


class AskedAmidAStep(LeaderRow):
    """A row whose leader is told to leave it while its thread renews it."""

    leave_now: Callable[[], None]

    def renew(self, term: int, ttl_us: int) -> bool:
        """Renew it; then comes what happens amid a step."""
        found = super().renew(term, ttl_us)
        self.leave_now()
        return found


def test_who_is_told_to_leave_the_row_amid_a_step_leaves_it_and_does_not_let_it_run_out(url):
    row = AskedAmidAStep(url, "a", "")
    one, other = Leadership(row, elapsed_us, 600 * TTL_US), Leadership(LeaderRow(url, "b", ""), elapsed_us, TTL_US)
    row.leave_now = one.leave
    one.may_take = other.may_take = True
    threads = [threading.Thread(target=each.run, daemon=True) for each in (one, other)]
    threads[0].start()
    assert one.led.wait(ACK_S)
    threads[1].start()
    one.others_now()  # the thread takes a step, and is told to leave in it
    assert other.led.wait(ACK_S)
    assert one.left.wait(ACK_S)
    other.stop()
    for thread in threads:
        thread.join(ACK_S)
    for each in (one, other):
        each.close()


def test_who_has_left_the_row_waits_until_another_one_has_it_or_for_nobody_if_none_stands_by(url, monkeypatch):
    two = [Leadership(LeaderRow(url, name, ""), elapsed_us, 600 * TTL_US) for name in "ab"]
    threads = [threading.Thread(target=one.run, daemon=True) for one in two]
    for one, thread in zip(two, threads, strict=True):
        one.may_take = True
        thread.start()
        assert two[0].led.wait(ACK_S)
    eventually(lambda: two[0].others_now() == ("b",), within_s=ACK_S, what="the leader sees who stands by")
    for number, holder, followed_s in ((0, "b", ACK_S), (1, "b", 0.1)):
        monkeypatch.setattr("controller.work.leadership.FOLLOWED_S", followed_s)
        one = two[number]
        one.resign()
        one.leave()
        assert one.left.wait(ACK_S)
        assert one.has_resigned
        assert two[1].led.wait(ACK_S)  # its thread may hear later than ours that the row is its own
        assert (one.seen.holder, one.seen.term) == (holder, two[1].term)
    for one, thread in zip(two, threads, strict=True):
        thread.join(ACK_S)
        one.close()
