"""What a database that fails does to purchases: what it has written unheard, and what providers say meanwhile."""

import threading

import pytest

from controller.database import DatabaseFailed
from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import PurchaseState, Terms
from controller.providers.provider import CircuitStatus
from controller.providers.static import StaticProvider
from controller.tests.fakes import START_US
from controller.work.purchasing import Purchasing
from controller.work.recovery import Recovery
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from mininet_tests.testing.eventually import eventually

START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9
NOT_THERE = CircuitStatus(PurchaseState.ENDED, None)
REFUSED = CircuitStatus(PurchaseState.FAILED, None, "no room", refused=True)


class PromptSeller(StaticProvider):
    """A provider, during whose answers something may happen."""

    def __init__(self):
        super().__init__()
        self.sold, self.released, self.says, self.state = {}, [], None, PurchaseState.RESERVED
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
        return self.says or CircuitStatus(self.state, self.sold[name])


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

    def saves_nothing(self):
        """Let the database fail, and somebody find out."""

        def writing(_batch):
            raise OSError("disk full")

        self.database._session.write = writing
        self.fails()

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

    def saved(self):
        """The states of all that was bought, as another process would find them."""
        return [row.state for row in self.database.load().purchases]

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


def test_a_circuit_that_comes_up_while_nothing_is_saved_is_used_at_once_and_saved_later(site):
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START - 10 * S)
    site.saves_nothing()
    site.seller.state = PurchaseState.UP
    looks = len(site.told("provider.state"))
    site.pass_to(START + 10 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE
    assert len(site.told("provider.state")) == looks + 1
    assert site.told("provider.failed") == []
    site.recovers()
    assert site.states() == [PurchaseState.UP]
    site.step()
    assert site.saved() == [PurchaseState.UP]
    eventually(lambda: not site.value.wished.unsaved, within_s=30, what="what was shown is known to be saved")


def test_a_circuit_that_fails_while_nothing_is_saved_is_used_no_more_whatever_is_read_anew(site):
    site.seller.state = PurchaseState.UP
    name = site.promised(GIGABIT, START, END)
    site.pass_to(START + 10 * S)
    assert site.reservation(name).state is ReservationState.ACTIVE
    site.saves_nothing()
    site.seller.state = PurchaseState.FAILED
    site.step()
    assert site.value.wished.bought_bps(CIRCUIT, site.clock.now_us) == 0
    assert site.use_cases.reservation(name).state is ReservationState.FAILED
    site.recovers()
    assert site.value.wished.bought_bps(CIRCUIT, site.clock.now_us) == 0
    assert site.use_cases.reservation(name).state is ReservationState.FAILED
    site.pass_to(site.clock.now_us + 10 * S)
    assert site.saved() in ([], [PurchaseState.DROPPED])


def test_what_cannot_be_written_down_keeps_nobody_from_looking_at_what_is_bought(site):
    site.promised(GIGABIT, START, END)
    site.step()
    site.promised(GIGABIT, START + 86_400 * S, END + 86_400 * S)
    site.saves_nothing()
    site.seller.state = PurchaseState.UP
    site.step()
    assert site.states() == [PurchaseState.UP]
    assert len(site.seller.sold) == 1
    site.recovers()
    site.pass_to(site.clock.now_us + 4 * S)
    assert len(site.seller.sold) == 2


def test_a_look_that_cannot_be_saved_tells_of_the_database_and_not_of_the_provider(site):
    site.promised(GIGABIT, START, END)
    site.step()
    site.seller.state = PurchaseState.DEPLOYING
    site.is_late_with(PurchaseState.DEPLOYING)
    site.purchasing.step()
    eventually(lambda: site.told("store.failed"), within_s=30, what="the database is told to have failed")
    assert (len(site.told("store.failed")), site.told("provider.failed")) == (1, [])
    site.recovers()
    assert site.states() == [PurchaseState.DEPLOYING]


def test_what_is_not_guaranteed_is_known_and_told_once_though_the_database_is_read_anew(site):
    name = site.promised(GIGABIT, START, END)
    site.purchasing.step()
    (sold,) = site.seller.sold.values()
    site.seller.says = CircuitStatus(PurchaseState.RESERVED, sold, lacks="100 Mbit/s of it", route=("x", "y"))
    site.step()
    before = site.bought()
    lacking = site.use_cases.not_guaranteed([site.reservation(name)])
    assert lacking == ((f"{CIRCUIT}: 100 Mbit/s of it",),)
    site.saves_nothing()
    site.recovers()
    assert site.bought() == before
    assert site.use_cases.not_guaranteed([site.reservation(name)]) == lacking
    site.step()
    assert len(site.told("provider.lacks")) == 1
