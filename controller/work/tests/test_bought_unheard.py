"""What a database writes unheard of a purchase, and says once it is read anew, while its provider is asked."""

import threading

import pytest

from controller.database import DatabaseFailed
from controller.plan.purchases import PurchaseState, Terms
from controller.providers.provider import CircuitStatus
from controller.providers.static import StaticProvider
from controller.tests.fakes import START_US
from controller.work.purchasing import Purchasing
from controller.work.recovery import Recovery
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9
NOT_THERE = CircuitStatus(PurchaseState.ENDED, None)
REFUSED = CircuitStatus(PurchaseState.FAILED, None, "no room", refused=True)


class PromptSeller(StaticProvider):
    """A provider, during whose answers something may happen."""

    def __init__(self):
        super().__init__()
        self.sold, self.released, self.says = {}, [], None
        self.meanwhile = lambda: None

    @property
    def terms(self):
        return Terms(lead_us=10 * S, tail_us=0, min_duration_us=60 * S, gap_us=0)

    def reserve(self, name, period, apart=frozenset()):
        self.meanwhile()
        self.sold[name] = period
        return True

    def change(self, name, period):
        self.meanwhile()
        self.sold[name] = period
        return period

    def release(self, name):
        self.released.append(name)
        return True

    def status(self, name):
        self.meanwhile()
        return self.says or CircuitStatus(PurchaseState.RESERVED, self.sold[name])


class LateSite(BuyingSite):
    """A site whose database writes what it is told once more, and answers only when it is let go on."""

    def __init__(self, path):
        self.seller = PromptSeller()
        super().__init__(lambda _: {CIRCUIT: self.seller}, database=f"sqlite:///{path}/headway.db")
        self.goes_on = threading.Event()
        self.write = self.database._session.write

    def is_late_with(self, state):
        """Let the database not answer once a purchase is to be in a state."""

        def writing(batch):
            self.write(batch)
            if any(row.state is state for row in batch.purchases.values() if row is not None):
                self.goes_on.wait(30)

        self.database._session.write = writing
        self.database._save_within_s = 0.5

    def recovers(self):
        """Let the database answer, and be read anew; once."""
        self.seller.meanwhile = lambda: None
        self.goes_on.set()
        self.database._save_within_s = 30
        self.database._session.write = self.write
        assert Recovery(self.state, self.use_cases.saves).step()

    def fails(self):
        """Let somebody find out that nothing is saved."""
        with pytest.raises(DatabaseFailed):
            self.promised(GIGABIT, END + 900 * S, END + 1_500 * S)

    def states(self):
        """Of all that was bought."""
        return [p.state for p in self.value.wished.purchases[CIRCUIT].values()]


@pytest.fixture
def site(tmp_path):
    """A site that buys of somebody who sells at once."""
    one = LateSite(tmp_path)
    yield one
    one.goes_on.set()
    one.close()
    one.database.close()


@pytest.mark.parametrize("says", [None, NOT_THERE, REFUSED], ids=["sold", "not there", "refused"])
def test_what_was_sold_is_sold_whatever_its_provider_is_asked_meanwhile(site, says):
    name = site.promised(GIGABIT, START, END)
    site.is_late_with(PurchaseState.RESERVED)
    site.purchasing.step()
    assert site.states() == [PurchaseState.ASKED]
    site.fails()
    site.seller.says, site.seller.meanwhile = says, site.recovers
    site.purchasing.step()
    assert site.states() == [PurchaseState.RESERVED]
    assert site.reservation(name).reason == ""
    assert site.told("provider.refused") == site.told("provider.given_up") == []


def test_what_was_given_back_unheard_is_given_back_at_the_next_step(site):
    name = site.promised(GIGABIT, START, END)
    site.step()
    site.use_cases.release(name).saved.result()
    site.is_late_with(PurchaseState.DROPPED)
    site.purchasing.step()
    assert (site.states(), site.seller.released) == ([PurchaseState.RESERVED], [])
    site.fails()

    decided = []

    def may_decide():
        """Return that we lead; the database is read anew once it is decided what to do."""
        decided.append(True)
        if len(decided) == 2:
            site.recovers()
        return True

    buying = Purchasing(site.state, site.use_cases, CIRCUIT, site.seller, may_decide)
    buying.step()
    assert (site.states(), len(site.seller.released)) == ([], 1)


def test_what_was_changed_unheard_while_it_is_changed_again_stays_as_its_provider_says(site):
    site.promised(GIGABIT, START, END)
    site.step()
    (before,) = site.bought()
    site.promised(GIGABIT, START, END)
    site.is_late_with(PurchaseState.RESERVED)
    site.purchasing.step()
    site.fails()
    site.recovers()
    site.seller.meanwhile = lambda: None
    site.step()
    (after,) = site.bought()
    assert after.period == site.seller.sold[after.name] != before.period
