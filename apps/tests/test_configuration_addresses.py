"""Addresses in the configuration: what nobody could be reached by is refused, and what is one is not taken for two."""

import pytest

from apps.configuration import load, parsed
from apps.tests.test_configuration import GOOD, HALF, OSCARS, problems
from apps.tests.test_other_providers import NSI as NSI_BY_NO_TOKEN
from controller.errors import ConfigError

NSI = NSI_BY_NO_TOKEN | {"token_env": "HEADWAY_TEST_TOKEN"}
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


DIGITS = "9" * 5000  # more than Python makes a number of at once


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"listen": {"openflow": f"127.0.0.1:{DIGITS}"}}, "listen.openflow"),
        ({"listen": {"rest": f"tcp:127.0.0.1:{DIGITS}"}}, "listen.rest"),
        ({"listen": {"agents": "127.0.0.1:٣"}}, "listen.agents"),
        ({"ovsdb": {"ls1": f"tcp:127.0.0.1:{DIGITS}"}}, "ovsdb.ls1"),
        ({"ovsdb": {"ls1": "unix:/run/a\0b"}}, "ovsdb.ls1"),
        ({"policy": {"urgent": {"guarantee": f"{DIGITS}%"}}}, "policy.urgent.guarantee"),
        ({"lease": f"{DIGITS} s"}, "lease"),
        (
            {"circuits": {"chile-illinois": {"schedule": [HALF | {"rate": f"{DIGITS} bit/s"}]}}},
            "circuits.chile-illinois.schedule[0].rate",
        ),
        (bought({"nsi": NSI | {"source": f"{NSI['source']}{DIGITS}"}}), "circuits.chile-illinois.nsi"),
    ],
)
def test_a_number_of_too_many_digits_or_a_path_that_there_is_not_is_a_problem_with_its_place(change, place):
    found = problems(GOOD | change)
    assert found[0].startswith(f"{place}: "), found


@pytest.mark.parametrize("number", [DIGITS, f"0x{DIGITS}"])
def test_a_number_that_nothing_has_is_a_problem_with_its_line(number, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(f"lease: 3 s\npolicy: {number}\n")
    with pytest.raises(ConfigError) as error:
        load(file)
    assert error.value.problems == (f"line 2: a number of {len(number):,} digits, which nothing has",)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"listen": {"rest_socket": "/run/a\0b"}}, "listen.rest_socket"),
        ({"listen": {"agents": "unix:/run/a\0b"}}, "listen.agents"),
        ({"listen": {"tls": {"certificate": "a\0b", "key": "c.key"}}}, "listen.tls.certificate"),
        ({"access": {"tokens": "a\0b"}}, "access.tokens"),
        ({"store": "sqlite:////a\0b"}, "store"),
        ({"store": {"url": "sqlite:////a\0b"}}, "store.url"),
        ({"network": "a\0b"}, "network"),
        ({"webhooks": [{"url": "https://a.example", "secret": "a\0b"}]}, "webhooks[0].secret"),
        (bought({"oscars": BY_LOGIN | {"token_file": "a\0b"}}), "circuits.chile-illinois.oscars.token_file"),
    ],
)
def test_a_text_with_a_nul_character_which_no_path_has_is_a_problem_with_its_place(change, place):
    found = problems(GOOD | change)
    assert found[0].startswith(f"{place}: has a NUL character"), found


@pytest.mark.parametrize("host", ["bü..x", "two..dots", "a" * 64])
def test_a_name_that_no_machine_can_have_is_no_address_to_listen_at(host):
    listen = {"rest": f"tcp:{host}:8080", "openflow": f"tcp:{host}:6653", "agents": f"{host}:50051"}
    said = problems(GOOD | {"listen": listen, "access": {"anybody": "read"}})
    places = [line.partition(": ")[0] for line in said if "is not an address to listen at" in line]
    assert sorted(places) == ["listen.agents", "listen.openflow", "listen.rest"]
