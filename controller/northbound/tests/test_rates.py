"""How often one may ask: each principal for itself, and nobody by where it asks from."""

from datetime import UTC, datetime

from fastapi.testclient import TestClient

from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.tests.site import dependencies_of
from controller.security.rates import BURST_US, MOST_KEPT, Rates, RequestRate
from controller.security.tokens import Role, Tokens
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois

BURST_S = BURST_US // 1_000_000


class Micros:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now_us = 10**9

    def __call__(self):
        """Return it."""
        return self.now_us


def test_a_burst_and_then_so_many_a_second_each_for_itself():
    elapsed = Micros()
    rates = Rates(RequestRate(5), elapsed)
    assert [rates.wait_us("ana") for _ in range(5 * BURST_S)] == [0] * 5 * BURST_S
    assert 0 < rates.wait_us("ana") <= 200_000
    assert rates.wait_us("bob") == 0
    passed = 0
    for _ in range(200):  # asked ten times as often as one may
        elapsed.now_us += 20_000
        passed += rates.wait_us("ana") == 0
    assert passed == 20
    elapsed.now_us += BURST_US
    assert [rates.wait_us("ana") for _ in range(5 * BURST_S)] == [0] * 5 * BURST_S


def test_who_has_not_asked_lately_is_forgotten_and_the_rest_is_bounded():
    elapsed = Micros()
    rates = Rates(RequestRate(1), elapsed)
    for number in range(MOST_KEPT):
        rates.wait_us(str(number))
    elapsed.now_us += 2_000_000
    rates.wait_us("ana")
    assert len(rates._even_us) == 1
    for number in range(2 * MOST_KEPT):
        rates.wait_us(str(number))
    assert len(rates._even_us) <= MOST_KEPT


def test_who_asks_too_often_is_told_when_to_come_back_and_others_are_served():
    rules = AccessRules(
        lambda: Tokens(()), lambda: datetime.now(UTC), anybody=None, local=Role.READ, rate=RequestRate(1)
    )
    app = api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules)
    here, near, far = (TestClient(app, client=(address, 5)) for address in ("127.0.0.1", "192.0.2.1", "192.0.2.2"))
    for client, allowed in ((here, 200), (near, 401)):
        answers = [client.get("/v1/topology") for _ in range(BURST_S + 2)]
        assert [answer.status_code for answer in answers[:BURST_S]] == [allowed] * BURST_S
        assert (answers[-1].status_code, answers[-1].headers["retry-after"]) == (429, "1")
        assert answers[-1].json()["type"] == "/problems/too-many"
    assert far.get("/v1/topology").status_code == 401
    assert near.get("/docs").status_code == 200  # what everybody may see costs nothing that is scarce
