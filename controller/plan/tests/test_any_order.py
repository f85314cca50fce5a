"""A machine that does everything to a ledger in any order, with restarts in between: it never promises too much."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.plan.admission import Refused, Request
from controller.plan.kept_ledger import KeptLedger
from controller.plan.lifecycle import ENDED, Illegal, LifecycleEvent, ReservationState
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.asking import BOOKABLE, NOW, WAN, S, created, wish
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass
from topology.wire import PPM

HOSTS = ["base20", "base21", "la-serena"]
LEAD_US = 15 * S


class Promises(RuleBasedStateMachine):
    """Everything that can happen to a ledger, with restarts in between."""

    def __init__(self):
        super().__init__()
        self.now_us = NOW
        self.saved, self.announced, self.number = {}, {}, 0

    @initialize(lead_us=st.sampled_from([{}, {"chile-illinois": LEAD_US}]))
    def begin(self, lead_us):
        """The circuit is leased, or bought at need."""
        self.ledger = KeptLedger(chile_illinois(), DEFAULT_POLICY, lead_us)

    def keep(self):
        """Save what has changed, as the database does."""
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
            known = self.ledger.happened(self.known(data), event, self.now_us)
        except Illegal as illegal:
            assert illegal.event is event
            return
        if event is LifecycleEvent.COMMIT:
            self.can_be_bought(known)

    def can_be_bought(self, known):
        """What is bought for a promise can be there when it begins."""
        for lead_us in self.ledger.lead_us.values():
            assert self.now_us <= known.start_us - lead_us

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
        elif answer.start_us < before[0].start_us:
            self.can_be_bought(answer)

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
        again = KeptLedger(self.ledger.network, DEFAULT_POLICY, self.ledger.lead_us)
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
