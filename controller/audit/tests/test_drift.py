"""What is found against what should be, by any two sets of objects."""

from hypothesis import given
from hypothesis import strategies as st

from controller.audit.drift import Audit, Compared, Deviation, DriftKind, Outcome, Shape, compared, counts

objects = st.dictionaries(st.integers(0, 8), st.integers(0, 2), max_size=8)


@given(objects, objects)
def test_every_object_has_exactly_one_shape(wanted, found):
    seen = compared(DriftKind.FLOW, wanted, found)
    by_shape = {shape: count for (_, shape), count in counts(seen.deviations).items()}
    assert seen.proper[DriftKind.FLOW] == sum(found.get(key) == value for key, value in wanted.items())
    assert by_shape.get(Shape.MISSING, 0) == len(wanted.keys() - found.keys())
    assert by_shape.get(Shape.EXCESS, 0) == len(found.keys() - wanted.keys())
    assert seen.proper[DriftKind.FLOW] + len(seen.deviations) == len(wanted.keys() | found.keys())


@given(objects)
def test_nothing_differs_from_itself(wanted):
    assert compared(DriftKind.METER, wanted, dict(reversed(wanted.items()))) == Compared({DriftKind.METER: len(wanted)})


@given(objects, objects)
def test_what_is_missing_one_way_is_in_excess_the_other_way(wanted, found):
    there, back = (compared(DriftKind.QUEUE, *pair).deviations for pair in ((wanted, found), (found, wanted)))
    turned = {Shape.MISSING: Shape.EXCESS, Shape.EXCESS: Shape.MISSING, Shape.MISCONFIGURED: Shape.MISCONFIGURED}
    assert {(d.shape, d.wanted, d.found) for d in there} == {(turned[d.shape], d.found, d.wanted) for d in back}


def test_what_is_as_good_as_wanted_is_proper():
    assert not compared(DriftKind.HTB, {1: 100}, {1: 99}, same=lambda a, b: abs(a - b) <= 1).deviations


def test_what_is_settled_or_not_ours_to_put_right_stays_as_it_is():
    left = Deviation(DriftKind.FLOW, Shape.SHADOWED, "ours", "theirs", Outcome.LEFT, "delete it")
    failed = Deviation(DriftKind.METER, Shape.MISSING, "meter", outcome=Outcome.FAILED)
    drifted = Deviation(DriftKind.FLOW, Shape.EXCESS, found="rule")
    seen = Compared(deviations=(left, failed, drifted))
    assert seen.drift == (drifted,)
    outcomes = [d.outcome for d in seen.settled(Outcome.REPAIRED).deviations]
    assert outcomes == [Outcome.LEFT, Outcome.FAILED, Outcome.REPAIRED]


def test_an_alarm_is_said_once_and_says_what_to_do():
    left = Deviation(DriftKind.FLOW, Shape.SHADOWED, "ours", "theirs", Outcome.LEFT, "delete it")
    audit = Audit("ls1", 0, seen=Compared(deviations=(left, left)), errors=("no answer",))
    assert audit.alarms == ("flow shadowed: theirs: delete it", "no answer")
