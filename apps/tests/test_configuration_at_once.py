"""What is wrong beside a network, or an address, that is wrong too, is said at once."""

import pytest

from apps.tests.test_configuration import GOOD, problems

WRONG = {
    "flows": [{"name": "a", "class": "urgent", "from": "base1", "to": "arch"}],
    "ovsdb": {"ls1": "foo"},
    "store": "mysql://x",
    "circuits": {"mars": {"nowhere": {}}},
    "audit": {"ignore": [{}]},
    "webhooks": [{"url": "nope", "secret": "nope"}],
    "pair": {"address": "x"},
}
PLACES = {
    "ovsdb.ls1",
    "store",
    "circuits.mars.nowhere",
    "audit.ignore[0]",
    "webhooks[0].url",
    "webhooks[0].secret",
    "pair",
    "pair.address",
}


def places(data):
    """Where something is wrong; nothing is said twice."""
    found = [problem.partition(": ")[0] for problem in problems(data)]
    assert sorted(found) == sorted(set(found))
    return set(found)


@pytest.mark.parametrize(
    "network", [{}, {"network": None}, {"network": "mars.yaml"}], ids=["missing", "empty", "wrong"]
)
def test_a_network_that_is_not_known_hides_nothing_else_that_is_wrong(network):
    assert places(WRONG | network) == PLACES | {"network"}


def test_an_address_that_is_none_hides_nothing_else_that_is_wrong():
    wrong = GOOD | WRONG | {"listen": {"openflow": "here", "proxies": ["x"]}}
    assert places(wrong) == PLACES | {"listen.openflow", "listen.proxies[0]", "flows[0]", "circuits.mars"}
