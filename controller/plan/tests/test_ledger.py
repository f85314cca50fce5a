"""The ledger: single stories."""

from dataclasses import replace

import pytest

from controller.plan.admission import OfferKind, Reason, Refused
from controller.plan.kept_ledger import KeptLedger
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import Illegal, LifecycleEvent, ReservationState
from controller.plan.overbooked import overbooked
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from controller.plan.tests.asking import BOOKABLE, NOW, WAN, S, asked, created, wish
from mininet_tests.testing.networks import (
    FILES,
    asc_ring,
    chile_illinois,
    chile_illinois_2,
    described,
    four_lanes,
    loaded,
)
from topology.network import Hop
from topology.network_text import section_of
from topology.protocol import FlowClass


@pytest.fixture
def ledger():
    """An empty ledger of the two-site network."""
    return Ledger(chile_illinois(), DEFAULT_POLICY)


def test_a_hold_that_nobody_commits_lapses_and_its_bandwidth_is_free_again(ledger):
    ledger.hold(asked(rate_bps=BOOKABLE), created("a"))
    assert isinstance(ledger.hold(asked(), created("b")), Refused)
    ledger.tick(ledger.due_us())
    assert ledger.reservations["a"].state is ReservationState.EXPIRED
    assert ledger.hold(asked(), created("b", NOW + 61 * S)).state is ReservationState.HELD


def test_a_renewed_hold_lapses_later(ledger):
    ledger.hold(asked(), created("a"))
    ledger.renew("a", NOW + 50 * S)
    ledger.tick(NOW + 61 * S)
    assert ledger.reservations["a"].state is ReservationState.HELD
    ledger.tick(NOW + 110 * S)
    assert ledger.reservations["a"].state is ReservationState.EXPIRED
    with pytest.raises(Illegal):
        ledger.renew("a", NOW + 111 * S)


def test_start_and_end_are_acted_on_by_the_clock(ledger):
    ledger.hold(asked(), created("a"))
    ledger.happened("a", LifecycleEvent.COMMIT, NOW)
    seen = []
    while ledger.due_us() is not None:
        ledger.tick(now := ledger.due_us())
        seen.append(((now - NOW) // S, ledger.reservations["a"].state))
    assert (100, ReservationState.PROVISIONING) in seen
    assert seen[-1] == (200, ReservationState.EXPIRED)


def test_a_refusal_names_resource_asked_free_since_when_and_the_nearest_offers(ledger):
    ledger.hold(asked(), created("a"))
    no = ledger.hold(asked(start_us=NOW + 50 * S, end_us=NOW + 150 * S), created("b"))
    assert (no.reason, no.resource) == (Reason.CAPACITY_UNAVAILABLE, str(WAN))
    assert (no.asked_bps, no.free_bps, no.at_us) == (600_000_000, BOOKABLE - 600_000_000, NOW + 100 * S)
    offers = {o.kind: o for o in no.offers}
    assert offers[OfferKind.EARLIEST_START].start_us == NOW + 200 * S
    assert offers[OfferKind.HIGHEST_RATE].rate_bps == BOOKABLE - 600_000_000
    for name, offer in enumerate(no.offers):  # an offer is good for what it says
        fresh = Ledger(ledger.network, DEFAULT_POLICY)
        fresh.hold(asked(), created("a"))
        taken = asked(
            rate_bps=offer.rate_bps, start_us=offer.start_us, end_us=offer.end_us, flow_class=offer.flow_class
        )
        assert not isinstance(fresh.hold(taken, created(str(name))), Refused)


def test_a_class_that_may_have_no_more_is_offered_a_lower_one(ledger):
    no = ledger.hold(asked(flow_class=FlowClass.PREDICTABLE), created("a"))
    assert no.resource == f"{WAN} predictable"
    assert [o.flow_class for o in no.offers if o.kind is OfferKind.LOWER_CLASS] == [FlowClass.URGENT]


def test_on_change_the_own_share_counts_as_free_and_a_refused_change_changes_nothing(ledger):
    ledger.hold(asked(), created("a"))
    before = ledger.reservations["a"]
    assert isinstance(ledger.change("a", asked(rate_bps=BOOKABLE + 1), NOW), Refused)
    assert ledger.reservations["a"] == before
    wider = ledger.change("a", asked(rate_bps=BOOKABLE, end_us=NOW + 300 * S), NOW)
    assert (wider.rate_bps, wider.version) == (BOOKABLE, before.version + 1)
    assert ledger.calendar.free_bps(WAN, NOW + 250 * S) == 0


def test_back_to_back_reservations_of_the_whole_rate_fit(ledger):
    ledger.hold(asked(rate_bps=BOOKABLE), created("a"))
    second = asked(rate_bps=BOOKABLE, start_us=NOW + 200 * S, end_us=NOW + 300 * S)
    assert not isinstance(ledger.hold(second, created("b")), Refused)


def test_a_host_is_no_faster_than_its_interface():
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    (host, *_), others = ring.network.hosts, [h for h in ring.network.hosts if h.site != ring.network.hosts[0].site]
    interface = next(link.rate_bps for tail, _, link in ring.network.links() if tail == host.name)
    no = ring.hold(asked(a_end=host.name, z_end=others[0].name, rate_bps=interface + 1), created("a"))
    assert isinstance(no, Refused)


def test_on_a_ring_the_second_reservation_goes_the_other_way_round():
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    request = asked(a_end="albuquerque", z_end="livermore", rate_bps=9_000_000_000)
    first, second = (ring.hold(request, created(name)) for name in "ab")
    assert len(second.path) > len(first.path)
    assert isinstance(ring.hold(request, created("c")), Refused)
    assert set(zip(first.path, first.path[1:], strict=False)).isdisjoint(
        zip(second.path, second.path[1:], strict=False)
    )


def test_a_backup_shares_no_circuit_and_is_booked_too():
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    request = asked(
        a_end="albuquerque", z_end="livermore", rate_bps=5_000_000_000, constraints=Constraints(backup=True)
    )
    ring.hold(request, created("a"))
    assert isinstance(ring.hold(request, created("b")), Refused)


def test_what_is_excluded_included_or_too_far_is_said_when_no_path_is_left():
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    request = asked(a_end="albuquerque", z_end="livermore", constraints=Constraints(max_rtt_us=1))
    no = ring.hold(request, created("a"))
    assert (no.reason, "the shortest round trip is" in no.why) == (Reason.NO_PATH, True)


def test_announcements_keep_each_others_promises(ledger):
    """The second image waits for what the first one is promised, and says so."""
    first = ledger.announce(wish("a"), ("base20", "base21"), "arch", NOW)
    second = ledger.announce(wish("b"), ("base22",), "arch", NOW)
    assert second.promised_us - NOW > 1.9 * (first.promised_us - NOW - 540_000)
    ledger.forget("a", NOW)
    ledger.forget("b", NOW)
    assert ledger.calendar == Ledger(ledger.network, DEFAULT_POLICY).calendar


def test_a_reservation_that_begins_meanwhile_counts_in_the_promise(ledger):
    alone = ledger.announce(wish(size_bytes=10**9), ("base20",), "arch", NOW)
    ledger.forget("image", NOW)
    ledger.hold(asked(start_us=NOW + 2 * S), created("a"))
    beside = ledger.announce(wish(size_bytes=10**9), ("base20",), "arch", NOW)
    assert beside.promised_us > alone.promised_us + 5 * S


def test_a_deadline_takes_the_lowest_rate_that_meets_it(ledger):
    answer = ledger.announce(wish(deadline_us=10 * S), ("base20",), "arch", NOW)
    assert answer.promised_us <= NOW + 10 * S
    assert 85_000_000 < answer.floor_bps(NOW + S) < 95_000_000
    assert answer.floor_bps(NOW + 10 * S) == 0


def running(ledger, name="night", **changes):
    """A reservation whose time has come."""
    ledger.hold(asked(start_us=NOW, **changes), created(name))
    ledger.happened(name, LifecycleEvent.COMMIT, NOW)
    ledger.tick(NOW)


def test_an_announcement_draws_on_what_its_site_has_reserved(ledger):
    running(ledger, rate_bps=BOOKABLE)
    answer = ledger.announce(wish(), ("base20", "base21"), "arch", NOW)
    assert answer.pool == "night"
    assert len(ledger.announce(wish("b"), ("base22",), "arch", NOW).rates) == 1  # after the first, on the same
    assert ledger.calendar.free_bps(WAN, NOW) == 0


def test_a_reservation_given_back_leaves_what_drew_on_it_without_a_promise_but_in_the_plan(ledger):
    running(ledger)
    ledger.announce(wish(), ("base20",), "arch", NOW)
    ledger.happened("night", LifecycleEvent.RELEASE, NOW)
    assert ledger.announcements["image"].rates == ()
    assert [f.host for f in ledger.demand((), NOW, lambda _: None).flows] == ["base20"]
    ledger.forget("image", NOW)
    assert ledger.calendar == Ledger(ledger.network, DEFAULT_POLICY).calendar


def test_what_draws_on_a_reservation_keeps_no_promise_when_that_is_of_another_class(ledger):
    running(ledger)
    drawn = ledger.announce(wish("drawn", size_bytes=10**10), ("base20",), "arch", NOW)
    assert drawn.pool == "night"
    ledger.change("night", asked(flow_class=FlowClass.BACKGROUND, start_us=NOW), NOW)
    assert (ledger.announcements["drawn"].pool, ledger.announcements["drawn"].rates) == ("", ())
    ledger.announce(wish("other", size_bytes=10**10), ("base21",), "arch", NOW)
    floors = {flow.host: flow.floor_bps for flow in ledger.demand((), NOW + S, lambda _: None).flows}
    assert floors == {"base20": 0, "base21": BOOKABLE - 600_000_000}
    again = KeptLedger(ledger.network, DEFAULT_POLICY)
    again.restore(ledger.reservations.values(), [drawn], NOW)  # a controller of before has saved both so
    assert (again.announcements["drawn"].pool, again.announcements["drawn"].rates) == ("", ())


def test_the_demand_reserves_for_a_class_what_is_promised_now_and_no_earlier(ledger):
    running(ledger)
    reserved = ledger.demand((), NOW, lambda _: None).reserved_bps
    assert reserved[Hop("ls1", "ch1"), FlowClass.URGENT] == 600_000_000
    assert 0 < reserved[Hop("ch1", "ls1"), FlowClass.URGENT] < 60_000_000  # the answers
    ledger.hold(asked(start_us=NOW + 10 * S, rate_bps=1_000_000), created("later"))
    assert ledger.demand((), NOW, lambda _: None).reserved_bps == reserved


def test_a_schedule_of_the_provider_is_a_change_of_capacity_and_fails_the_newest_that_no_longer_fits(ledger):
    running(ledger, "old", rate_bps=400_000_000)
    running(ledger, "new", rate_bps=500_000_000)
    ledger.set_schedule(WAN, [(NOW + 10 * S, NOW + 20 * S, 500_000_000)])
    assert list(overbooked(ledger, NOW)) == []
    failed = []
    for known in overbooked(ledger, NOW + 10 * S):
        failed.append(known.reservation_id)
        ledger.happened(known.reservation_id, LifecycleEvent.FAIL, NOW + 10 * S, "the circuit has less")
    assert failed == ["new"]
    assert ledger.demand((), NOW + 10 * S, lambda _: None).capacity_bps[WAN] == 500_000_000


def test_a_change_that_asks_for_no_more_is_granted_whatever_has_become_of_its_circuit(ledger):
    ledger.hold(asked(), created("a"))
    ledger.set_schedule(WAN, [(NOW + 150 * S, NOW + 160 * S, 0)])
    assert isinstance(ledger.change("a", asked(rate_bps=600_000_001), NOW), Refused)
    assert isinstance(ledger.change("a", asked(end_us=NOW + 201 * S), NOW), Refused)
    less = ledger.change("a", asked(rate_bps=500_000_000, start_us=NOW + 110 * S, description="half a night"), NOW)
    assert (less.rate_bps, less.start_us, less.description) == (500_000_000, NOW + 110 * S, "half a night")
    assert ledger.calendar.free_bps(WAN, NOW + 155 * S) == -500_000_000


def test_a_change_keeps_both_paths_of_one_with_a_backup():
    section = section_of(chile_illinois_2())
    north = section["circuits"]["north"]
    for number, (name, delay) in enumerate((("middle", "95 ms"), ("south", "100 ms")), start=90):
        ends = {e: {**north[e], "port": f"{north[e]['switch']}-{name}", "number": number} for e in "az"}
        section["circuits"][name] = {**north, **ends, "delay": delay}
    ledger = Ledger(described(section), DEFAULT_POLICY)
    ledger.hold(asked(rate_bps=900_000_000), created("full"))
    before = ledger.hold(asked(constraints=Constraints(backup=True)), created("r"))
    assert before.paths == (("ls1", "middle", "ch1"), ("ls1", "south", "ch1"))
    ledger.happened("full", LifecycleEvent.RELEASE, NOW)
    after = ledger.change("r", asked(constraints=before.constraints, description="other words"), NOW)
    assert (after.paths, after.description) == (before.paths, "other words")
    assert ledger.change("r", asked(), NOW).paths == (before.path,)
    elsewhere = ledger.change("r", asked(constraints=Constraints(exclude=("middle",), backup=True)), NOW)
    assert elsewhere.paths == (("ls1", "north", "ch1"), ("ls1", "south", "ch1"))


def test_a_change_of_one_with_a_backup_is_granted_beside_a_maintenance_that_does_not_break_it():
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    request = asked(a_end="albuquerque", z_end="livermore", constraints=Constraints(backup=True))
    before = ring.hold(request, created("a"))
    (circuit, *_) = ring.network.circuits_along(before.backup)
    for tail, head, link in ring.network.circuit_links:
        if link.circuit == circuit:
            ring.set_schedule(Hop(tail, head), [(NOW + 150 * S, NOW + 160 * S, 0)])
    after = ring.change("a", replace(request, description="the same"), NOW)
    assert (after.paths, after.description) == (before.paths, "the same")


def test_a_circuit_that_is_bought_at_need_wants_its_lead_time():
    bought = Ledger(chile_illinois(), DEFAULT_POLICY, {"chile-illinois": 150 * S})
    no = bought.hold(asked(), created("a"))
    assert (no.reason, no.offers[0].start_us) == (Reason.PROVIDER_TOO_LATE, NOW + 210 * S)
    assert isinstance(bought.announce(wish(), ("base20",), "arch", NOW), Refused)
    assert isinstance(bought.hold(asked(start_us=NOW + 150 * S, end_us=NOW + 250 * S), created("a")), Refused)
    running_from = asked(start_us=NOW + 151 * S, end_us=NOW + 250 * S)
    bought.hold(running_from, created("a"))
    bought.happened("a", LifecycleEvent.COMMIT, NOW)
    bought.tick(NOW + 151 * S)
    assert bought.announce(wish(), ("base20",), "arch", NOW + 151 * S).pool == "a"


def test_only_what_leads_between_the_ends_is_waited_for_where_it_is_too_late_to_buy():
    far = Ledger(loaded(FILES["three-sites"]), DEFAULT_POLICY, {"ocean": 86_400 * S, "rhine": 150 * S})
    soon = asked(a_end="dl-a", z_end="cern", rate_bps=S)
    no = far.hold(soon, created("a"))
    assert (no.reason, no.resource) == (Reason.PROVIDER_TOO_LATE, "rhine")
    assert "rhine is bought at need, which takes 150 s" in str(no)
    (offer,) = no.offers
    assert offer.start_us == NOW + 210 * S
    taken = replace(soon, start_us=offer.start_us, end_us=offer.end_us)
    assert not isinstance(far.hold(taken, created("a", NOW + 59 * S)), Refused)
    over_both = far.hold(replace(soon, a_end="pt-a"), created("b"))
    assert (over_both.resource, over_both.offers[0].start_us) == ("ocean, rhine", NOW + 86_460 * S)


def test_the_earliest_start_that_is_offered_may_be_on_what_can_be_bought_by_then():
    """What is leased is full for a day, and what is bought at need is there in minutes."""
    beside = Ledger(chile_illinois_2(), DEFAULT_POLICY, {"south": 150 * S})
    full = asked(rate_bps=BOOKABLE, start_us=NOW, end_us=NOW + 86_400 * S, constraints=Constraints(include=("north",)))
    beside.hold(full, created("full"))
    soon = asked(rate_bps=400_000_000)
    no = beside.hold(soon, created("a"))
    assert no.reason is Reason.CAPACITY_UNAVAILABLE
    (offer,) = (offer for offer in no.offers if offer.kind is OfferKind.EARLIEST_START)
    assert (offer.start_us, offer.circuits) == (NOW + 210 * S, ("south",))
    taken = replace(soon, start_us=offer.start_us, end_us=offer.end_us)
    assert not isinstance(beside.hold(taken, created("a", NOW + 59 * S)), Refused)


def test_a_start_is_not_moved_to_before_what_it_needs_can_be_bought():
    bought = Ledger(chile_illinois(), DEFAULT_POLICY, {"chile-illinois": 150 * S})
    tomorrow = asked(start_us=NOW + 86_400 * S, end_us=NOW + 86_500 * S)
    soon = asked(start_us=NOW + S, end_us=NOW + 101 * S)
    for name, is_committed in (("held", False), ("committed", True)):
        bought.hold(replace(tomorrow, rate_bps=S), created(name))
        if is_committed:
            bought.happened(name, LifecycleEvent.COMMIT, NOW)
        no = bought.change(name, replace(soon, rate_bps=S), NOW)
        assert (no.reason, no.offers[0].start_us) == (Reason.PROVIDER_TOO_LATE, NOW + 210 * S)
        offered = replace(soon, rate_bps=S, start_us=no.offers[0].start_us, end_us=no.offers[0].end_us)
        assert bought.change(name, offered, NOW + 59 * S).start_us == NOW + 210 * S


def test_what_is_bought_for_a_promise_and_its_backup_serves_it_when_it_changes():
    ring = asc_ring()
    ledger = Ledger(ring, DEFAULT_POLICY, {circuit.name: 150 * S for circuit in ring.circuits})
    ends = {"a_end": "albuquerque", "z_end": "livermore", "constraints": Constraints(backup=True)}
    times = {"start_us": NOW + 171 * S, "end_us": NOW + 1_000 * S}
    before = ledger.hold(asked(**ends, **times), created("a"))
    ledger.happened("a", LifecycleEvent.COMMIT, NOW)
    ledger.tick(NOW + 171 * S)
    now_us = NOW + 300 * S
    more = {"rate_bps": 700_000_000}, {"rate_bps": 1}, {"end_us": now_us + S}, {"description": "of the night"}
    for changed in more:
        answer = ledger.change("a", asked(**(ends | times | changed)), now_us)
        assert (answer.state, answer.paths) == (ReservationState.PROVISIONING, before.paths)


def test_a_backup_is_asked_for_so_much_earlier_as_one_circuit_waits_for_the_way_of_the_other():
    ring = asc_ring()
    ledger = Ledger(ring, DEFAULT_POLICY, {circuit.name: 150 * S for circuit in ring.circuits})
    ends = {"a_end": "albuquerque", "z_end": "livermore", "constraints": Constraints(backup=True)}
    late = ledger.hold(asked(**ends, start_us=NOW + 170 * S, end_us=NOW + 1_000 * S), created("a"))
    assert (late.reason, "takes 170 s" in late.why) == (Reason.PROVIDER_TOO_LATE, True)
    held = ledger.hold(asked(**ends, start_us=NOW + 190 * S, end_us=NOW + 1_000 * S), created("a"))
    assert held.hold_until_us == NOW + 20 * S


def test_a_hold_lapses_while_what_it_needs_can_still_be_bought():
    bought = Ledger(chile_illinois(), DEFAULT_POLICY, {"chile-illinois": 150 * S})
    in_200_s = asked(start_us=NOW + 200 * S, end_us=NOW + 300 * S)
    held = bought.hold(in_200_s, created("a"))
    assert held.hold_until_us == NOW + 50 * S
    assert held.reason == ("chile-illinois is bought at need, which takes 150 s: commit it before 2026-01-01T00:00:50Z")
    assert bought.renew("a", NOW + 40 * S, 3_600 * S).hold_until_us == NOW + 50 * S
    later = replace(in_200_s, start_us=NOW + 205 * S)
    assert bought.change("a", later, NOW + 41 * S).hold_until_us == NOW + 50 * S
    assert bought.renew("a", NOW + 42 * S, 5 * S).reason == ""
    assert bought.renew("a", NOW + 42 * S).hold_until_us == NOW + 55 * S
    assert bought.change("a", in_200_s, NOW + 43 * S).hold_until_us == NOW + 50 * S
    bought.tick(NOW + 50 * S)
    assert bought.reservations["a"].state is ReservationState.EXPIRED
    committed = bought.hold(in_200_s, created("b"))
    committed = bought.happened("b", LifecycleEvent.COMMIT, NOW + 49 * S)
    assert (committed.hold_until_us, committed.reason) == (None, "")


def test_a_change_keeps_the_path_beside_what_could_not_be_bought_in_time():
    ledger = Ledger(four_lanes(), DEFAULT_POLICY, {"lane3": 150 * S})
    ends = {"a_end": "albuquerque", "z_end": "livermore"}
    before = ledger.hold(asked(**ends, constraints=Constraints(exclude=("lane0",))), created("a"))
    assert ledger.network.circuits_along(before.path) == ("lane1",)
    assert ledger.change("a", asked(**ends), NOW).path == before.path


def test_a_hold_on_what_is_leased_is_kept_for_as_long_as_was_asked():
    ledger = Ledger(chile_illinois(), DEFAULT_POLICY, {"another": 150 * S})
    assert ledger.hold(asked(), created("a", hold_us=3_600 * S)).hold_until_us == NOW + 3_600 * S


def test_a_reservation_over_a_link_that_is_gone_is_failed_at_restart():
    ledger = KeptLedger(chile_illinois(), DEFAULT_POLICY)
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    ring.hold(asked(a_end="albuquerque", z_end="livermore"), created("a"))
    ledger.restore(ring.reservations.values(), (), NOW)
    assert ledger.reservations["a"].state is ReservationState.FAILED


def test_the_plan_is_asked_for_the_very_flows_of_before_where_nothing_has_changed(ledger):
    def flows(at_us):
        return ledger.demand((), at_us, lambda _: None).flows

    first = ledger.announce(wish("one"), ("base20",), "arch", NOW)
    before = flows(NOW + S)
    ledger.announce(wish("two", flow_class=FlowClass.BACKGROUND), ("base21",), "arch", NOW)
    assert any(flow is before[0] for flow in flows(NOW + S))
    (later,) = (flow for flow in flows(first.rates[-1].end_us) if flow.name == before[0].name)
    assert (before[0].floor_bps > 0, later.floor_bps) == (True, 0)
    ledger.go_by(ledger.network)
    assert all(flow is not before[0] for flow in flows(NOW + S))
