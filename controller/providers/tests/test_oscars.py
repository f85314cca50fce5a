"""Buying from OSCARS: every quirk of it, and what the driver makes of it."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.purchases import Period, PurchaseState, periods
from controller.providers.errors import AnswerLost, NotInForce, ProviderRefused, ProviderUnavailable
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_values import OscarsPort, oscars_period
from controller.providers.tests.buying import (
    A_END,
    DAY,
    GIGABIT,
    LATER,
    SECOND,
    START,
    Z_END,
    asked_of,
    at_first,
    settings,
    until_up,
)
from controller.providers.tests.fake_oscars import Faults

TERMS = OscarsProvider(settings("http://127.0.0.1:9"), at_first).terms


def test_what_is_reserved_is_read_back_and_waits_for_its_begin(fake, provider):
    provider.reserve("CXA5", LATER)
    status = provider.status("CXA5")
    assert (status.state, status.period) == (PurchaseState.RESERVED, LATER)


def test_one_device_needs_no_pipe(fake, url):
    same = OscarsPort("chic-cr6", "chic-cr6:1/1/c10/1", 4)
    provider = OscarsProvider(settings(url, z_end=same), at_first)
    provider.reserve("CXA5", LATER)
    assert fake.oscars.find("CXA5").asked.pipes == ()


def test_deployed_is_up_and_reserved_is_not(fake, provider):
    provider.reserve("CXA5", LATER)
    seen = []
    for ahead in (999, 1_000, 1_020, 86_400, 86_422):
        fake.ahead_s = ahead
        seen.append(provider.status("CXA5").state.value)
    assert seen == ["reserved", "deploying", "up", "deploying", "ended"]  # by the time: OSCARS shows nothing of it


def test_a_deployment_that_failed_is_failed_with_oscars_words(fake, provider):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(fail_deployment=True)
    fake.ahead_s = 2_000
    status = provider.status("CXA5")
    assert status.state is PurchaseState.FAILED
    assert "DEPLOY_FAILED" in status.reason


def test_what_oscars_does_not_know_has_failed(fake, provider):
    assert provider.status("CXA5").state is PurchaseState.FAILED


def test_a_bare_500_is_a_refusal_with_the_reason_that_validation_gives(fake, provider):
    with pytest.raises(ProviderRefused, match="chic-cr6:1/1/c9/1: 200000 Mbit/s asked, 100000 free") as refused:
        provider.reserve("CXA5", replace(LATER, rate_bps=200 * GIGABIT))
    assert refused.value.name == "CXA5"


def test_a_bare_500_on_change_is_a_refusal_with_its_reason_and_the_circuit_stays(fake, provider):
    provider.reserve("CXA5", LATER)
    with pytest.raises(ProviderRefused, match="200000 Mbit/s asked, 100000 free"):
        provider.change("CXA5", replace(LATER, rate_bps=200 * GIGABIT))
    assert provider.status("CXA5").period == LATER


def test_a_500_for_which_validation_finds_no_reason_is_tried_again(fake, provider):
    fake.faults = Faults(only="POST /protected/l2vpn/new", times=1, status=500)
    with pytest.raises(ProviderUnavailable, match="finds nothing wrong"):
        provider.reserve("CXA5", LATER)
    provider.reserve("CXA5", LATER)


def test_a_commit_that_broke_down_leaves_no_hold_behind(fake, provider):
    fake.faults = Faults(fail_commit=True)
    with pytest.raises(ProviderUnavailable, match="finds nothing wrong"):
        provider.reserve("CXA5", LATER)
    assert fake.oscars.held == {}


def test_a_replacement_that_broke_down_is_not_taken_for_done(fake, provider):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(fail_commit=True)
    with pytest.raises(ProviderUnavailable):
        provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT))
    assert (fake.oscars.held, provider.status("CXA5").period) == ({}, LATER)


def test_a_begin_that_oscars_moved_by_its_notice_is_taken(fake, provider):
    at_once = replace(LATER, start_us=START)
    provider.reserve("CXA5", at_once)
    assert provider.status("CXA5").period == replace(at_once, start_us=START + 30 * SECOND)


def test_a_begin_that_oscars_moved_by_more_is_told_with_what_was_bought(fake, provider):
    with pytest.raises(NotInForce, match="its begin differs") as told:
        provider.reserve("CXA5", replace(LATER, start_us=START - 200 * SECOND))
    assert told.value.found == replace(LATER, start_us=START + 30 * SECOND)


def test_an_end_that_oscars_moved_to_a_minute_from_now_is_returned(fake, provider):
    until_up(fake, provider)
    fake.ahead_s = 5_000
    soon = START + 5_010 * SECOND
    assert provider.change("CXA5", replace(LATER, end_us=soon)) == replace(LATER, end_us=soon + 50 * SECOND + 831_936)


def test_the_shortest_that_the_terms_allow_is_long_enough_although_its_begin_moves(fake, provider):
    (shortest,) = periods([Period(START, START + SECOND, GIGABIT)], provider.terms)
    length = shortest.end_us - shortest.start_us
    provider.reserve("CXA5", Period(START + SECOND, START + SECOND + length, GIGABIT))
    with pytest.raises(ProviderRefused, match="15 min"):
        provider.reserve("CXA6", Period(START + SECOND, START + SECOND + 900 * SECOND, GIGABIT))


@given(
    st.lists(st.tuples(st.integers(0, 10**11), st.integers(1, 10**10), st.integers(1, 10**9)), min_size=1, max_size=4)
)
def test_periods_on_the_terms_fit_oscars_units_and_do_not_touch(uses):
    wanted = periods([Period(start, start + length, rate) for start, length, rate in uses], TERMS)
    edges = [oscars_period(period) for period in wanted]
    assert [e.period() for e in edges] == list(wanted)
    assert all(b.begin_s - a.end_s >= 1 for a, b in itertools.pairwise(edges))


def test_back_to_back_is_refused_and_one_gap_of_the_terms_is_enough(fake, provider):
    provider.reserve("CXA5", LATER)
    touching = Period(LATER.end_us, LATER.end_us + DAY, GIGABIT)
    with pytest.raises(ProviderRefused, match="VLAN 2 is taken"):
        provider.reserve("CXA6", touching)
    provider.reserve("CXA6", replace(touching, start_us=LATER.end_us + provider.terms.gap_us))


def test_oscars_may_overbook_and_each_of_ours_still_is_what_was_asked(fake, url):
    fake.rules.port_mbps = 10_000
    for vlan, name in ((2, "CXA5"), (3, "CXA6"), (4, "CXA7")):
        ends = {"a_end": replace(A_END, vlan_vid=vlan), "z_end": replace(Z_END, vlan_vid=vlan)}
        provider = OscarsProvider(settings(url, **ends), at_first)
        provider.reserve(name, replace(LATER, rate_bps=4 * GIGABIT))  # the third is the fifth too much
        assert provider.status(name).period == replace(LATER, rate_bps=4 * GIGABIT)


@pytest.mark.parametrize("drop", ["after", "before"])
def test_a_creation_whose_answer_is_lost_is_looked_for_and_never_sent_again(fake, provider, drop):
    fake.faults = Faults(only="POST /protected/l2vpn/new", times=1, drop=drop)
    if drop == "before":
        for _ in range(2):
            with pytest.raises(AnswerLost, match="POST /protected/l2vpn/new"):
                provider.reserve("CXA5", LATER)
    else:
        provider.reserve("CXA5", LATER)
        assert provider.status("CXA5").period == LATER
    assert asked_of(fake, "/new") == 1


def test_a_replacement_whose_answer_is_lost_waits_before_it_is_sent_again(fake, provider):
    provider.reserve("CXA5", LATER)
    other = replace(LATER, rate_bps=2 * GIGABIT)
    fake.faults = Faults(only="PUT", times=1, drop="before")
    for ahead in (0, 299):
        fake.ahead_s = ahead
        with pytest.raises(ProviderUnavailable):
            provider.change("CXA5", other)
    assert asked_of(fake, "replace") == 1
    fake.ahead_s = 300
    assert provider.change("CXA5", other) == other


def test_reserving_again_makes_no_second_one(fake, provider):
    provider.reserve("CXA5", LATER)
    provider.reserve("CXA5", LATER)
    assert asked_of(fake, "/new") == 1


def test_a_creation_that_answers_too_late_is_taken_once_it_is_there(fake, url):
    provider = OscarsProvider(settings(url, timeout_s=2.0), at_first)
    fake.faults = Faults(only="POST /protected/l2vpn/new", slow_s=2.5)
    provider.reserve("CXA5", LATER)
    assert fake.oscars.created == ["CXA5"]


def held(fake, provider, period):
    """Something held under the name, as a lost or refused request of ours leaves it."""
    provider.reserve("TMP4", period)
    circuit = fake.oscars.rows.pop()
    fake.oscars.hold(replace(circuit.asked, name="CXA5"))


def test_a_hold_is_no_purchase(fake, provider):
    held(fake, provider, LATER)
    assert provider.status("CXA5").state is PurchaseState.ASKED


def test_a_hold_left_over_is_cleared_and_not_taken_for_the_circuit(fake, provider):
    held(fake, provider, replace(LATER, rate_bps=7 * GIGABIT))
    provider.reserve("CXA5", LATER)
    assert (fake.oscars.held, provider.status("CXA5").period) == ({}, LATER)


def test_a_hold_that_hides_a_circuit_is_cleared_before_it_is_changed(fake, provider):
    held(fake, provider, replace(LATER, rate_bps=7 * GIGABIT))
    fake.oscars.held.clear()
    provider.reserve("CXA5", LATER)
    fake.oscars.hold(replace(fake.oscars.rows[0].asked, end_s=99_999 + START // SECOND))
    assert provider.change("CXA5", LATER) == LATER


def test_what_has_not_begun_may_change_everything(fake, provider):
    provider.reserve("CXA5", LATER)
    other = Period(START + 500 * SECOND, START + 2 * DAY, 3 * GIGABIT)
    assert provider.change("CXA5", other) == other
    assert fake.oscars.created == ["CXA5"]


def test_what_has_begun_changes_end_and_rate_and_keeps_its_start(fake, provider):
    until_up(fake, provider)
    other = Period(START + 77 * SECOND, START + 2 * DAY, 3 * GIGABIT)
    assert provider.change("CXA5", other) == replace(other, start_us=LATER.start_us)


def test_a_new_rate_is_not_up_before_it_is_deployed_again(fake, provider):
    until_up(fake, provider)
    provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT))
    seen = []
    for ahead in (1_023, 1_042, 1_043):
        fake.ahead_s = ahead
        seen.append(provider.status("CXA5").state.value)
    assert seen == ["deploying", "deploying", "up"]


def test_a_smaller_rate_goes_before_a_later_end_and_a_larger_after_a_sooner(fake, provider):
    until_up(fake, provider, replace(LATER, rate_bps=2 * GIGABIT))
    fake.requests.clear()
    provider.change("CXA5", replace(LATER, end_us=LATER.end_us + DAY))
    fake.ahead_s += 100
    provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT))
    modifies = [request.rsplit("/", 1)[1] for request in fake.requests if "modify" in request]
    assert modifies == ["bandwidth", "schedule", "schedule", "bandwidth"]


def test_a_second_rate_is_sent_when_the_routers_have_the_first(fake, provider):
    until_up(fake, provider)
    for gigabits in (2, 3):
        provider.change("CXA5", replace(LATER, rate_bps=gigabits * GIGABIT))
        with pytest.raises(ProviderUnavailable, match="the change before"):
            provider.change("CXA5", replace(LATER, rate_bps=9 * GIGABIT))
        fake.ahead_s += 50
        assert provider.status("CXA5").state is PurchaseState.UP
        assert fake.oscars.rows[0].routers_mbps == gigabits * 1000


def test_what_is_as_asked_is_not_asked_for_again(fake, provider):
    provider.reserve("CXA5", LATER)
    provider.change("CXA5", LATER)
    fake.ahead_s = 1_023
    provider.change("CXA5", LATER)
    assert asked_of(fake, "modify") + asked_of(fake, "replace") == 0


def test_a_refused_rate_has_its_reason(fake, provider):
    until_up(fake, provider)
    with pytest.raises(ProviderRefused, match="200000 Mbit/s asked"):
        provider.change("CXA5", replace(LATER, rate_bps=200 * GIGABIT))


@pytest.mark.parametrize(
    ("other", "differs"),
    [(replace(LATER, rate_bps=2 * GIGABIT), "its rate"), (replace(LATER, end_us=LATER.end_us + DAY), "its end")],
)
def test_a_change_that_was_confirmed_and_not_made_is_told(fake, provider, other, differs):
    until_up(fake, provider)
    fake.faults = Faults(lie=True)
    with pytest.raises(NotInForce, match=differs):
        provider.change("CXA5", other)


def test_a_replacement_that_was_confirmed_and_not_made_is_told(fake, provider):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(lie=True)
    with pytest.raises(NotInForce, match="its rate differs"):
        provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT))


def test_a_creation_that_was_confirmed_and_not_made_is_told(fake, provider):
    fake.faults = Faults(lie=True)
    with pytest.raises(NotInForce, match="not there") as told:
        provider.reserve("CXA5", LATER)
    assert told.value.found is None


def test_a_circuit_that_does_not_drop_what_is_above_its_rate_is_told(fake, provider):
    provider.reserve("CXA5", LATER)
    asked = fake.oscars.rows[0].asked
    asked.fixtures = tuple(replace(fixture, strict=False) for fixture in asked.fixtures)
    with pytest.raises(NotInForce, match="above its rate"):
        provider.reserve("CXA5", LATER)


@pytest.mark.parametrize("ahead", [0, 2_000])
def test_released_is_gone_whether_oscars_deletes_or_archives(fake, provider, ahead):
    provider.reserve("CXA5", LATER)
    fake.ahead_s = ahead
    provider.release("CXA5")
    assert provider.status("CXA5").state in {PurchaseState.FAILED, PurchaseState.ENDED}
    provider.release("CXA5")
    assert asked_of(fake, "release") == 1


def test_a_release_that_is_lost_may_be_repeated(fake, provider):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(only="DELETE", times=1, drop="after")
    with pytest.raises(ProviderUnavailable):
        provider.release("CXA5")
    provider.release("CXA5")
    assert fake.oscars.rows == []


def test_a_release_that_was_confirmed_and_not_made_is_told(fake, provider):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(lie=True)
    with pytest.raises(NotInForce, match="still there"):
        provider.release("CXA5")


def test_a_release_that_finds_nothing_is_fine_only_if_nothing_is_there(fake, provider):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(only="DELETE", status=404)
    with pytest.raises(NotInForce, match="still there"):
        provider.release("CXA5")


def test_wrong_times_of_what_was_modified_and_archived_are_no_obstacle(fake, provider):
    until_up(fake, provider)
    provider.change("CXA5", replace(LATER, end_us=LATER.end_us + DAY))
    provider.release("CXA5")
    status = provider.status("CXA5")
    assert (status.state, status.period) == (PurchaseState.ENDED, None)


def test_somebody_elses_circuit_of_the_same_name_is_left_alone(fake, url, provider):
    other = OscarsProvider(settings(url, a_end=replace(A_END, vlan_vid=9)), at_first)
    other.reserve("CXA5", LATER)
    for buy in (provider.reserve, provider.change):
        with pytest.raises(ProviderRefused, match="between other ports"):
            buy("CXA5", replace(LATER, rate_bps=2 * GIGABIT))
    provider.release("CXA5")
    assert provider.status("CXA5").state is PurchaseState.FAILED
    assert other.status("CXA5").period == LATER


def test_a_name_is_used_once(fake, provider):
    until_up(fake, provider)
    provider.release("CXA5")
    with pytest.raises(ProviderRefused, match="used once"):
        provider.reserve("CXA5", LATER)
    with pytest.raises(ProviderRefused, match="not any more"):
        provider.change("CXA5", LATER)


def test_a_path_is_reserved_and_another_one_is_found_where_it_is_full(fake, provider):
    fake.rules.ports_mbps = {"chic-cr6:1/1/b1": 900}
    provider.reserve("CXA5", LATER)
    (pipe,) = fake.oscars.rows[0].asked.pipes
    assert "stlo-cr5" in pipe[3]
    assert provider.change("CXA5", replace(LATER, end_us=LATER.end_us + DAY)).end_us == LATER.end_us + DAY
    assert fake.oscars.rows[0].asked.pipes == (pipe,)


def test_what_no_path_has_free_is_refused_and_not_bought(fake, provider):
    fake.rules.ports_mbps = {"chic-cr6:1/1/b1": 900, "stlo-cr5:1/1/b2": 900}
    with pytest.raises(ProviderRefused, match="no path from chic-cr6 to nash-cr6 has 1000 Mbit/s free"):
        provider.reserve("CXA5", LATER)
    assert fake.oscars.rows == []


def test_what_reserves_no_path_is_called_no_guarantee(fake, provider):
    until_up(fake, provider)
    asked = fake.oscars.rows[0].asked
    asked.pipes = tuple((*pipe[:3], ()) for pipe in asked.pipes)
    provider._lacks.clear()  # as a process that starts
    status = provider.status("CXA5")
    why = "nothing is reserved between chic-cr6 and nash-cr6"
    assert (status.state, status.lacks, status.route) == (PurchaseState.UP, why, ())
