"""What is next, row by row: a function of a value, without threads, switches or agents."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from controller.plan.leases import Leases
from controller.plan.plan import Entry
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES, plan_of
from controller.plan.transitions import Stage, Step, lesser_of
from controller.site import Site
from controller.state.desired import Basis, Desired
from controller.state.installed import Installed, StepDone
from controller.state.reported import Hosts, HostState, Reported
from controller.tests.fakes import START_US
from controller.work.next_work import RULES, Other, Progress, Situation, next_work

SITE = Site(GIGABIT, DEFAULT_POLICY, (DATABASE, RAW_IMAGES), 300)
OLD = plan_of(DATABASE, RAW_IMAGES, epoch=2)
NEW = plan_of(DATABASE, RAW_IMAGES, *IMAGE, epoch=4)
SURE = {Stage.METERS: 0, Stage.QUEUES: 0}
GRANTED = StepDone(NEW.epoch - 1, Stage.HOSTS, START_US, START_US)


def granted(entries: tuple[Entry, ...], epoch: int, *, confirmed: bool = True) -> HostState:
    """A connected host that was granted some entries, and has confirmed them or not."""
    leases = Leases().sent(epoch, entries, START_US, 300_000)
    return HostState(connected=True, leases=leases.confirmed(epoch) if confirmed else leases)


def at_rest(**changes) -> Situation:
    """A site where all layers and hosts hold the old plan, which is desired."""
    hosts = {host.name: granted(OLD.of_host(host.name), OLD.epoch) for host in GIGABIT.hosts}
    situation = Situation(
        reported=Reported(Hosts(hosts)),
        installed=Installed(OLD, OLD, OLD.epoch),
        desired=Desired(OLD, 0, Basis((0, 0), 0, (), frozenset())),
        progress=Progress(SURE),
        together_us=0,
        elapsed_us=START_US,
    )
    return replace(situation, **changes)


def wanting_more(**changes) -> Situation:
    """The same when another plan is desired since now."""
    return at_rest(desired=replace(at_rest().desired, plan=NEW, since_us=START_US), **changes)


def shrunk(**changes) -> Situation:
    """The same when all hosts act on no more than both plans allow."""
    lesser = lesser_of(OLD, NEW)
    hosts = {h.name: granted(lesser.of_host(h.name), lesser.epoch) for h in GIGABIT.hosts}
    return wanting_more(reported=Reported(Hosts(hosts)), **changes)


def test_where_all_is_as_desired_there_is_nothing_to_do():
    assert next_work(at_rest()) is Other.WAIT


def test_the_first_plan_goes_to_the_switches_before_anything_else():
    assert next_work(at_rest(installed=Installed(), progress=Progress())) == Step(Stage.METERS, OLD, no_higher=True)


@pytest.mark.parametrize(
    ("sure", "stage"),
    [({}, Stage.METERS), ({Stage.QUEUES: 0}, Stage.METERS), ({Stage.METERS: 0}, Stage.QUEUES)],
)
def test_what_switches_may_have_lost_is_put_back_before_a_new_plan_is_begun(sure, stage):
    assert next_work(wanting_more(progress=Progress(sure))) == Step(stage, OLD)


def test_a_switch_that_comes_back_is_the_audit_s_first_and_put_back_if_another_plan_is_desired():
    back, doubted = frozenset({1}), replace(at_rest().reported, switches_back=frozenset({1}), doubts=1)
    assert next_work(at_rest(reported=replace(at_rest().reported, switches_back=back))) is Other.WAIT
    assert next_work(at_rest(reported=doubted)) is Other.WAIT
    assert next_work(at_rest(reported=replace(doubted, switches_back=frozenset()))) == Step(Stage.METERS, OLD)
    assert next_work(wanting_more(reported=doubted)) == Step(Stage.METERS, OLD)


def test_hosts_shrink_first():
    assert next_work(wanting_more()) == Step(Stage.HOSTS, lesser_of(OLD, NEW))


def test_a_host_that_has_not_confirmed_is_waited_for():
    lesser, situation = lesser_of(OLD, NEW), shrunk()
    leases = situation.reported.hosts["base23"].leases
    before = Leases().sent(OLD.epoch, OLD.of_host("base23"), START_US, 300_000)
    silent = HostState(connected=True, leases=before.sent(lesser.epoch, leases.grants[-1].entries, START_US, 300_000))
    waiting = replace(situation, reported=situation.reported.with_host("base23", silent))
    assert next_work(waiting) is Other.WAIT
    assert isinstance(next_work(replace(waiting, elapsed_us=START_US + 300_000)), Step)


def test_when_all_have_confirmed_that_is_noted_once_and_the_switches_follow():
    assert next_work(shrunk(progress=Progress(SURE, granted=GRANTED))) is Other.NOTE_HOSTS
    assert next_work(shrunk()).stage is not Stage.HOSTS


def test_switches_wait_for_hosts_that_begin_together():
    waiting = shrunk(together_us=1)
    assert next_work(waiting) is Other.WAIT
    assert next_work(replace(waiting, elapsed_us=START_US + 1)).stage is not Stage.HOSTS


def test_hosts_grow_when_the_switches_hold_the_plan_and_it_is_noted_even_if_nobody_is_there():
    ready = shrunk(installed=Installed(NEW, NEW, OLD.epoch))
    assert next_work(ready) == Step(Stage.HOSTS, NEW)
    gone = Reported(Hosts({name: host._replace(connected=False) for name, host in ready.reported.hosts.items()}))
    assert next_work(replace(ready, reported=gone)) == Step(Stage.HOSTS, NEW)
    assert next_work(replace(ready, reported=gone, installed=Installed(NEW, NEW, NEW.epoch))) is Other.WAIT


def test_the_table_in_the_documents_is_this_one():
    text = (Path(__file__).parents[3] / "docs/decisions/0015-transitions.md").read_text()
    rows = re.search(r"^\| when \| then \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    assert rows.splitlines() == [f"| {rule.when} | {rule.then} |" for rule in RULES]
