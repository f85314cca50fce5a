"""A controller that buys its circuits, whole but for its process: what tests of purchases have in common."""

import itertools
from dataclasses import replace

from controller.plan.admission import Request
from controller.plan.booking_lead import booking_lead_us
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import PurchaseState
from controller.plan.reservations import NO_CONSTRAINTS
from controller.reserved import Reserved
from controller.tests.fakes import Clock, FakeSite
from controller.use_cases import UseCases
from controller.work.purchasing import Purchasing
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

S = 1_000_000
CIRCUIT = "chile-illinois"
OVER = {PurchaseState.DROPPED, PurchaseState.ENDED}
_numbers = itertools.count()


class BuyingSite(FakeSite):
    """A site whose circuits are bought, all on one clock.

    ``made`` returns, by circuit, a client of its provider, as a process that starts makes it.
    """

    def __init__(self, made, network=None, database="sqlite://", now_us=None):
        self.made, self.clock = made, Clock()
        self.clock.now_us = self.clock.now_us if now_us is None else now_us
        self.providers = made(self.clock)
        lead_us = {circuit: booking_lead_us(provider.terms) for circuit, provider in self.providers.items()}
        super().__init__(network or chile_illinois(10**10), (), database, clock=self.clock, lead_us=lead_us)
        self.started = self.state.events.last
        self.restart()
        self.attach_all()
        self.converge()

    def restart(self):
        """Another process on the same database: nothing is known that was not saved."""
        self.close()
        self.providers = self.made(self.clock)
        with self.state.changed:
            self.state.put(wished=replace(self.state.wished, purchases={circuit: {} for circuit in self.providers}))
        self.use_cases = UseCases(self.state, self.database)
        self.buying = {c: Purchasing(self.state, self.use_cases, c, p) for c, p in self.providers.items()}

    @property
    def purchasing(self):
        """What buys the only circuit."""
        (one,) = self.buying.values()
        return one

    def close(self):
        """Close the clients."""
        for provider in self.providers.values():
            provider.close()

    def promised(self, rate_bps, start_us, end_us, ends=("la-serena", "champaign"), constraints=NO_CONSTRAINTS):
        """A committed reservation's name."""
        request = Request(*ends, FlowClass.URGENT, rate_bps, start_us, end_us, constraints)
        name = f"r{next(_numbers)}"
        held = self.use_cases.hold(lambda _: request, lambda now_us: Created(name, now_us))
        assert held.value.state is ReservationState.HELD, held.value
        self.use_cases.commit(name).saved.result()
        return name

    def step(self):
        """One round of everything."""
        for buying in self.buying.values():
            buying.step()
        self.converge()

    def pass_to(self, now_us, step_us=2 * S):
        """Let the time pass, everything at work."""
        while self.clock.now_us < now_us:
            self.clock.now_us = min(now_us, self.clock.now_us + step_us)
            self.step()

    def reservation(self, name):
        """As it is now."""
        return Reserved(self.use_cases, self.database).one(name)

    def bought(self, circuit=CIRCUIT):
        """What is bought and not over."""
        return [p for p in self.value.wished.purchases[circuit].values() if p.state not in OVER]

    def told(self, name):
        """The events of a name."""
        return [e for e in self.state.events.since(self.started).events if e.name == name]
