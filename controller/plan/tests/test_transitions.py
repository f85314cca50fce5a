"""Transitions: which step is safe, from what is in force and what is wanted."""

from dataclasses import replace

import pytest
from hypothesis import given

from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES, flows_in, plan_of
from controller.plan.transitions import (
    Change,
    InForce,
    Stage,
    Step,
    host_changes,
    lesser_of,
    next_of_first,
    next_step,
    switch_changes,
    within,
)
from topology.protocol import FlowClass

BEFORE = plan_of(DATABASE, RAW_IMAGES, epoch=2)
IMAGED = plan_of(DATABASE, RAW_IMAGES, *IMAGE, epoch=4)


def step_from(now, acting, new):
    """The next step while hosts may be acting on some entries."""
    if now.meters.epoch == new.epoch:
        return Step(Stage.HOSTS, new)
    lesser = lesser_of(now.meters, new)
    return next_step(now, lesser, new, is_within=within(acting, lesser))


def steps(old, new):
    """All steps from one plan to another, if everybody confirms at once."""
    now, found, acting = InForce(old, old), [], old.entries
    while not (found and found[-1] == Step(Stage.HOSTS, new)):
        step = step_from(now, acting, new)
        found.append(step)
        acting = step.plan.entries if step.stage is Stage.HOSTS else acting
        now = InForce(
            step.plan if step.stage is Stage.METERS else now.meters,
            step.plan if step.stage is Stage.QUEUES else now.queues,
        )
    return found


def test_what_is_taken_from_one_class_for_another_takes_all_five_steps():
    places = [s.stage for s in steps(BEFORE, IMAGED)]
    assert places == [Stage.HOSTS, Stage.METERS, Stage.QUEUES, Stage.METERS, Stage.HOSTS]


def test_the_background_shrinks_before_the_image_starts():
    shrinking, *_, growing = steps(BEFORE, IMAGED)
    assert shrinking.plan.epoch == 3
    assert {e.flow.host for e in shrinking.plan.entries} == {"base22", "base23"}
    assert {e.flow.host for e in growing.plan.entries} == {"base20", "base21", "base22", "base23"}


def test_where_no_queue_changes_rules_and_meters_change_at_once():
    other = plan_of(DATABASE, RAW_IMAGES, IMAGE[0], epoch=6)
    assert [s.stage for s in steps(IMAGED, other)] == [Stage.HOSTS, Stage.METERS, Stage.HOSTS]


def test_the_same_plan_again_leaves_only_the_hosts_to_be_told():
    assert steps(BEFORE, BEFORE) == [Step(Stage.HOSTS, BEFORE)]


def test_a_change_of_mind_in_the_middle_goes_on_from_where_it_is():
    between = lesser_of(BEFORE, IMAGED)
    now = InForce(between, IMAGED)  # queues have grown for the image, nothing else has
    back = plan_of(DATABASE, RAW_IMAGES, epoch=6)
    assert step_from(now, between.entries, back) == Step(Stage.QUEUES, back)


@given(flows_in(GIGABIT), flows_in(GIGABIT))
def test_growing_waits_until_nobody_acts_on_more_than_the_lesser(before, after):
    old, new = (planned(e, GIGABIT, DEFAULT_POLICY, PlanInput(f)) for e, f in ((2, before), (4, after)))
    lesser = lesser_of(old, new)
    step = step_from(InForce(old, old), old.entries, new)
    assert (step.stage is Stage.HOSTS) is not within(old.entries, lesser)
    assert within(lesser.entries, old)
    assert within(lesser.entries, new)


@given(flows_in(GIGABIT), flows_in(GIGABIT))
def test_what_is_the_lesser_already_stays_so(before, after):
    old, new = (planned(e, GIGABIT, DEFAULT_POLICY, PlanInput(f)) for e, f in ((2, before), (4, after)))
    lesser = lesser_of(old, new)
    assert lesser_of(lesser, new) == lesser
    assert lesser_of(old, replace(old, epoch=4)) == replace(old, epoch=3)


def test_the_lesser_of_the_lesser_is_the_very_same_plan_so_that_all_that_was_found_of_it_stays():
    lesser = lesser_of(BEFORE, IMAGED)
    assert lesser_of(lesser, IMAGED) is lesser


def test_a_first_plan_raises_no_meter_before_its_queue():
    steps, done = [], None
    for _ in range(3):
        done = next_of_first(done, BEFORE)
        steps.append((done.stage, done.no_higher))
    assert steps == [(Stage.METERS, True), (Stage.QUEUES, False), (Stage.METERS, False)]


def test_another_first_plan_begins_again():
    assert next_of_first(Step(Stage.QUEUES, BEFORE), IMAGED).no_higher


def test_what_a_step_changes_is_told_in_frames():
    changes = switch_changes(Stage.METERS, BEFORE, IMAGED)
    urgent = next(c for c in changes if (c.where, c.what) == ("ls1->ch1", FlowClass.URGENT))
    assert (urgent.from_bps, urgent.to_bps) == (196_000, pytest.approx(923_000_000, rel=0.01))
    assert not [c for c in changes if c.what is FlowClass.PREDICTABLE]


def test_an_allocation_that_comes_or_goes_changes_from_or_to_nothing():
    (image,) = IMAGED.of_host("base20")
    assert host_changes("base20", (), (image,)) == (Change("base20", "urgent/base20", 0, image.frame_bps),)
    assert host_changes("base20", (image,), ()) == (Change("base20", "urgent/base20", image.frame_bps, 0),)
