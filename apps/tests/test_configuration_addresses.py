"""Addresses in the configuration: what nobody could be reached by is refused, and what is one is not taken for two."""

import pytest

from apps.configuration import parsed
from apps.tests.test_configuration import GOOD, OSCARS, problems

NSI = {
    "url": "https://proxy.example/aggregator-proxy",
    "requester_nsa": "urn:ogf:network:site.example:2025:nsa:headway",
    "provider_nsa": "urn:ogf:network:aggregator.example:2025:nsa:safnari",
    "source": "urn:ogf:network:north.example:2025:topology:chile?vlan=2000",
    "dest": "urn:ogf:network:south.example:2025:topology:illinois?vlan=2000",
    "token_env": "HEADWAY_TEST_TOKEN",
}
LOGIN = {"url": "https://login.example/token", "client": "headway", "secret_env": "HEADWAY_TEST_TOKEN"}
BY_LOGIN = {key: value for key, value in OSCARS.items() if key != "token_env"}


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("HEADWAY_TEST_TOKEN", "secret-of-the-test")


@pytest.fixture
def secret(tmp_path):
    """A file with a webhook's secret."""
    path = tmp_path / "secret"
    path.write_text("whsec_" + "QUJD" * 10)
    path.chmod(0o600)
    return str(path)


def bought(seller):
    """A configuration of a circuit that somebody sells."""
    return GOOD | {"circuits": {"chile-illinois": seller}}


WRONG_URLS = [
    "http://host:99999/",
    "http://host:abc/",
    "http://host:0/",
    "http://host:" + "9" * 5000,
    "http://[::1/",
    "http://a b/",
    "http://host/\0",
    "http://two..dots/",
]


@pytest.mark.parametrize("url", WRONG_URLS)
def test_a_url_that_nobody_can_ask_is_refused_whatever_it_is_for(url, secret):
    assert [
        problem.partition(": ")[0] for problem in problems(GOOD | {"webhooks": [{"url": url, "secret": secret}]})
    ] == ["webhooks[0].url"]
    for seller in ({"oscars": OSCARS | {"url": url}}, {"oscars": BY_LOGIN | {"login": LOGIN | {"url": url}}}):
        (problem,) = problems(bought(seller))
        assert problem.startswith("circuits.chile-illinois.oscars"), problem
    for key in ("url", "callback"):
        (problem,) = problems(bought({"nsi": NSI | {key: url}}))
        assert problem.startswith("circuits.chile-illinois.nsi"), problem


@pytest.mark.parametrize("url", ["https://host/x", "http://host:65535", "http://[::1]:9/", "http://192.0.2.1:80/?a=b"])
def test_a_url_with_a_port_that_there_is_is_taken(url, secret):
    user = url.replace("//", "//user:password@")
    assert [one.url for one in parsed(GOOD | {"webhooks": [{"url": user, "secret": secret}]}, "test").webhooks] == [
        user
    ]
    for seller in (
        {"oscars": OSCARS | {"url": url}},
        {"oscars": BY_LOGIN | {"login": LOGIN | {"url": url}}},
        {"nsi": NSI | {"url": url, "callback": url}},
    ):
        assert parsed(bought(seller), "test").sellers
        assert "password" in str(problems(bought({"nsi": NSI | {"url": user}})))
