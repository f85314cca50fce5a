"""What an NSI proxy answers of connections: which one is ours."""

import pytest

from controller.plan.purchases import Period, PurchaseState
from controller.providers.errors import AnswerLost
from controller.providers.nsi import NsiProvider
from controller.providers.tests.buying import START, START_S
from controller.providers.tests.faulty import Faults
from controller.providers.tests.test_contract import nsi_settings

S = 1_000_000
NOW = Period(START, START + 50_000 * S, 10**9)
OTHERS = {
    "source_stp": "urn:ogf:network:x.example:2025:a?vlan=9",
    "dest_stp": "urn:ogf:network:x.example:2025:z?vlan=9",
}
NAME, OTHER = "8c03b5e7-0000-4000-8000-000000000001", "8c03b5e7-0000-4000-8000-000000000002"


@pytest.fixture
def opened(nsi, nsi_url):
    """Makes clients of the proxy, on its clock."""
    made = []

    def opened(**other):
        made.append(NsiProvider(nsi_settings(nsi_url, **other), lambda: int((START_S + nsi.ahead_s) * S)))
        return made[-1]

    yield opened
    for one in made:
        one.close()


def answers(instance):
    """Let the next request for a connection be answered by the name of some connection."""
    return Faults(only="POST /reservations", times=1, answer=f'{{"instance": "{instance}"}}')


@pytest.mark.parametrize("is_there", [True, False])
def test_a_connection_of_somebody_elses_that_an_answer_names_is_not_ours(nsi, opened, is_there):
    opened(**OTHERS).reserve(OTHER, NOW)
    provider = opened()
    nsi.faults = answers("/reservations/c0ffee0001")
    provider.reserve(NAME, NOW)
    if not is_there:
        nsi.rows.pop()
    nsi.ahead_s += 10
    assert provider.status(NAME).state is (PurchaseState.RESERVED if is_there else PurchaseState.FAILED)
    provider.tend(NAME, NOW)
    assert [row.connection_id for row in nsi.rows if row.provisioned_s is not None] == ["c0ffee0002"] * is_there


def test_a_slash_at_the_end_is_no_part_of_a_connections_name(nsi, opened):
    provider = opened()
    nsi.faults = answers("/reservations/c0ffee0001/")
    provider.reserve(NAME, NOW)
    nsi.requests.clear()
    assert provider.status(NAME).state is PurchaseState.ASKED
    assert nsi.requests == ["GET /reservations/c0ffee0001"]


@pytest.mark.parametrize("instance", ["", "/"])
def test_an_answer_that_names_no_connection_is_lost_and_it_is_found_by_ours(nsi, opened, instance):
    provider = opened()
    nsi.faults = answers(instance)
    with pytest.raises(AnswerLost, match="unclear"):
        provider.reserve(NAME, NOW)
    assert provider.status(NAME).state is PurchaseState.ASKED
