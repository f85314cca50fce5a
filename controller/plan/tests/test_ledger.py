"""The ledger: single stories, and a machine that does everything in any order and never promises too much."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.plan.admission import OfferKind, Reason, Refused, Request
from controller.plan.announcements import Announcement, Wish
from controller.plan.kept_ledger import KeptLedger
from controller.plan.ledger import Created, Ledger
from controller.plan.lifecycle import ENDED, Illegal, LifecycleEvent, ReservationState
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from mininet_tests.testing.networks import asc_ring, chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass
from topology.wire import PPM

NOW, S, WAN = 1_767_225_600_000_000, 1_000_000, Hop("ls1", "ch1")
BOOKABLE = 938_800_000  # of 1 Gbit/s, after the guarantees of 5, 0.02, 1 and 0.1%


def asked(**changes):
    """A request of 600 Mbit/s from site to site for a hundred seconds, a hundred seconds from now."""
    fields = {
        "a_end": "la-serena",
        "z_end": "champaign",
        "flow_class": FlowClass.URGENT,
        "rate_bps": 600_000_000,
        "start_us": NOW + 100 * S,
        "end_us": NOW + 200 * S,
    }
    return Request(**(fields | changes))


def wish(name="image", **changes):
    """An announcement of 100 MB without a deadline."""
    fields = {
        "announcement_id": name,
        "flow_class": FlowClass.URGENT,
        "size_bytes": 100_000_000,
        "deadline_us": None,
        "framing": chile_illinois().framing,
    }
    return Wish(**(fields | changes))


@pytest.fixture
def ledger():
    """An empty ledger of the two-site network."""
    return Ledger(chile_illinois(), DEFAULT_POLICY)


def created(name, now_us=NOW, **more):
    """What a new reservation needs beside the request."""
    return Created(name, now_us, **more)


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


def test_a_deadline_that_cannot_be_met_is_refused_with_the_soonest(ledger):
    no = ledger.announce(wish(deadline_us=1_440_000), ("base20",), "arch", NOW)
    assert (no.reason, no.resource) == (Reason.DEADLINE_UNREACHABLE, str(WAN))
    later = next(o for o in no.offers if o.kind is OfferKind.LATER_DEADLINE)
    assert isinstance(ledger.announce(wish(deadline_us=later.end_us - NOW), ("base20",), "arch", NOW), Announcement)
    hopeless = ledger.announce(wish("b", deadline_us=100_000), ("base20",), "arch", NOW)
    assert "handshake" in str(hopeless)


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
    assert list(ledger.overbooked(NOW)) == []
    failed = []
    for known in ledger.overbooked(NOW + 10 * S):
        failed.append(known.reservation_id)
        ledger.happened(known.reservation_id, LifecycleEvent.FAIL, NOW + 10 * S, "the circuit has less")
    assert failed == ["new"]
    assert ledger.demand((), NOW + 10 * S, lambda _: None).capacity_bps[WAN] == 500_000_000


def test_a_circuit_that_is_bought_at_need_wants_its_lead_time():
    bought = Ledger(chile_illinois(), DEFAULT_POLICY, {"chile-illinois": 150 * S})
    no = bought.hold(asked(), created("a"))
    assert (no.reason, no.offers[0].start_us) == (Reason.PROVIDER_TOO_LATE, NOW + 210 * S)
    assert isinstance(bought.announce(wish(), ("base20",), "arch", NOW), Refused)
    running_from = asked(start_us=NOW + 150 * S, end_us=NOW + 250 * S)
    bought.hold(running_from, created("a"))
    bought.happened("a", LifecycleEvent.COMMIT, NOW)
    bought.tick(NOW + 150 * S)
    assert bought.announce(wish(), ("base20",), "arch", NOW + 150 * S).pool == "a"


def test_a_reservation_over_a_link_that_is_gone_is_failed_at_restart(ledger):
    ring = Ledger(asc_ring(), DEFAULT_POLICY)
    ring.hold(asked(a_end="albuquerque", z_end="livermore"), created("a"))
    ledger.restore(ring.reservations.values(), (), NOW)
    assert ledger.reservations["a"].state is ReservationState.FAILED


HOSTS = ["base20", "base21", "la-serena"]


class Promises(RuleBasedStateMachine):
    """Everything that can happen to a ledger, with restarts in between."""

    def __init__(self):
        super().__init__()
        self.ledger = KeptLedger(chile_illinois(), DEFAULT_POLICY)
        self.now_us = NOW
        self.saved, self.announced, self.number = {}, {}, 0

    def keep(self):
        """Save what has changed, as the store does."""
        part = self.ledger.changes(decided=True)
        self.saved |= part.reservations
        self.announced = {k: v for k, v in (self.announced | part.announcements).items() if v is not None}
        self.ledger.saved(part)

    def known(self, data):
        """Any reservation there is."""
        return data.draw(st.sampled_from(sorted(self.ledger.reservations)))

    requests = st.builds(
        lambda a_end, flow_class, rate, start, length: (a_end, flow_class, rate, start * S, length * S),
        st.sampled_from(HOSTS),
        st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND]),
        st.sampled_from([1, 300_000_000, 600_000_000, BOOKABLE]),
        st.integers(0, 40),
        st.integers(1, 40),
    )

    def request(self, fields):
        """A request from drawn fields."""
        a_end, flow_class, rate_bps, start_us, length_us = fields
        z_end = "champaign" if a_end == "la-serena" else "arch"
        start_us += self.now_us
        return Request(a_end, z_end, flow_class, rate_bps, start_us, start_us + length_us)

    @rule(fields=requests)
    def hold(self, fields):
        self.number += 1
        self.ledger.hold(self.request(fields), created(f"r{self.number}", self.now_us, hold_us=20 * S))

    @precondition(lambda self: self.ledger.reservations)
    @rule(data=st.data(), event=st.sampled_from(["commit", "up", "lose", "release", "fail"]).map(LifecycleEvent))
    def happen(self, data, event):
        try:
            self.ledger.happened(self.known(data), event, self.now_us)
        except Illegal as illegal:
            assert illegal.event is event

    @precondition(lambda self: self.ledger.reservations)
    @rule(data=st.data(), fields=requests)
    def change(self, data, fields):
        name = self.known(data)
        before = self.ledger.reservations[name], self.ledger.calendar.free_bps(WAN, self.now_us)
        try:
            answer = self.ledger.change(name, self.request(fields), self.now_us)
        except Illegal:
            return
        if isinstance(answer, Refused):
            assert before == (self.ledger.reservations[name], self.ledger.calendar.free_bps(WAN, self.now_us))

    @rule(host=st.sampled_from(["base20", "base21"]), mb=st.integers(1, 3000), deadline=st.none() | st.integers(1, 60))
    def announce(self, host, mb, deadline):
        self.number += 1
        asked_for = wish(f"a{self.number}", size_bytes=mb * 10**6, deadline_us=deadline and deadline * S)
        self.ledger.announce(asked_for, (host,), "arch", self.now_us)

    @precondition(lambda self: self.ledger.announcements)
    @rule(data=st.data())
    def forget(self, data):
        self.ledger.forget(data.draw(st.sampled_from(sorted(self.ledger.announcements))), self.now_us)

    @rule(seconds=st.integers(0, 30))
    def time_passes(self, seconds):
        self.now_us += seconds * S
        self.ledger.tick(self.now_us)

    @rule()
    def restart(self):
        """Another process with what was saved: the same calendar and the same timers."""
        self.keep()
        again = KeptLedger(self.ledger.network, DEFAULT_POLICY)
        again.restore([r for r in self.saved.values() if r.state not in ENDED], self.announced.values(), self.now_us)
        assert again.reservations == self.ledger.reservations
        assert again.announcements == self.ledger.announcements
        assert again.calendar == self.ledger.calendar
        again.tick(self.now_us)
        self.ledger = again

    @invariant()
    def the_sum_of_all_promises_never_exceeds_a_capacity(self):
        """Counted from the promises themselves, not by the calendar."""
        wan_bps, class_bps = {}, {}
        kept = [r for r in self.ledger.reservations.values() if r.state not in ENDED]
        spans = [(r.start_us, r.end_us, r.rate_bps, r.flow_class) for r in kept]
        for a in self.ledger.announcements.values():
            if not a.pool:
                spans += [(p.start_us, p.end_us, p.rate_bps * len(a.flows), a.flows[0].flow_class) for p in a.rates]
        for at_us in {start for start, *_ in spans}:
            wan_bps[at_us] = sum(bps for start, end, bps, _ in spans if start <= at_us < end)
            for flow_class in FlowClass:
                class_bps[flow_class, at_us] = sum(
                    bps for start, end, bps, c in spans if start <= at_us < end and c is flow_class
                )
            assert self.ledger.calendar.free_bps(WAN, at_us) == BOOKABLE - wan_bps[at_us]
        assert all(bps <= BOOKABLE for bps in wan_bps.values())
        for (flow_class, _), bps in class_bps.items():
            policy = DEFAULT_POLICY.classes[flow_class]
            assert bps <= 10**9 * (policy.cap_ppm - policy.guarantee_ppm) // PPM

    @invariant()
    def what_draws_on_a_reservation_never_exceeds_it(self):
        for a in self.ledger.announcements.values():
            if a.pool:
                known = self.ledger.reservations[a.pool]
                assert known.state not in ENDED
                drawn = [p for b in self.ledger.announcements.values() if b.pool == a.pool for p in b.rates]
                for at_us in {p.start_us for p in drawn}:
                    assert sum(p.rate_bps for p in drawn if p.start_us <= at_us < p.end_us) <= known.rate_bps

    @invariant()
    def nothing_is_late(self):
        self.ledger.tick(self.now_us)
        for r in self.ledger.reservations.values():
            if r.state is ReservationState.HELD:
                assert self.now_us < r.hold_until_us
            if r.state not in ENDED:
                assert self.now_us < r.end_us
            if r.state is ReservationState.COMMITTED:
                assert self.now_us < r.start_us


TestPromises = Promises.TestCase
TestPromises.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
