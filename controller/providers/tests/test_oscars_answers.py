"""Answers of OSCARS that are none, or mean nothing; and questions that it could not understand."""

import re
import socket
from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.purchases import Period, PurchaseState
from controller.providers.answers import decoded
from controller.providers.errors import ProviderDenied, ProviderRefused, ProviderUnavailable
from controller.providers.http_session import HttpSession
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_compare import BEGIN_NOTICE_US
from controller.providers.oscars_values import OscarsPort
from controller.providers.oscars_wire import verdict
from controller.providers.tests.buying import (
    A_END,
    GIGABIT,
    LATER,
    SECOND,
    at_first,
    of,
    settings,
    until_up,
)
from controller.providers.tests.fake_oscars import Faults

NAMING = OscarsProvider(settings("http://127.0.0.1:9"), at_first)
OF_OTHERS = ["<html>404 page not found</html>", '{"message": "no route matched with those values"}']


@pytest.mark.parametrize("token", ["wrong", "token-of-someone-without-group"])
def test_a_token_that_is_not_accepted_is_denied(fake, url, token):
    with pytest.raises(ProviderDenied, match=r"40[13], the token"):
        OscarsProvider(settings(url, token=of(token)), at_first).reserve("CXA5", LATER)


def test_a_server_that_is_starting_is_tried_again(fake, provider):
    fake.rules.start_s = 60
    fake.oscars.restart()
    with pytest.raises(ProviderUnavailable, match="starting or stopping"):
        provider.reserve("CXA5", LATER)
    fake.ahead_s = 60
    provider.reserve("CXA5", LATER)


@pytest.mark.parametrize("status", [302, 418, 429, 502, 504])
def test_an_answer_of_somebody_in_between_is_tried_again(fake, provider, status):
    fake.faults = Faults(only="POST", status=status)
    with pytest.raises(ProviderUnavailable, match=rf"answer {status} is unclear \(unknown status\)"):
        provider.reserve("CXA5", LATER)


@pytest.mark.parametrize("asked", ["GET /api/l2vpn/get", "DELETE"])
@pytest.mark.parametrize("answer", OF_OTHERS, ids=["page", "gateway"])
def test_a_404_of_what_stands_before_oscars_says_nothing_of_a_circuit(fake, provider, asked, answer):
    provider.reserve("CXA5", LATER)
    fake.faults = Faults(only=asked, status=404, answer=answer)
    with pytest.raises(ProviderUnavailable, match="404 is unclear"):
        provider.release("CXA5")
    fake.faults = Faults()
    assert provider.status("CXA5").state is PurchaseState.RESERVED


def test_nobody_listening_is_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ProviderUnavailable, match="ConnectError"):
        OscarsProvider(settings(f"http://127.0.0.1:{port}"), at_first).status("CXA5")


def test_no_answer_in_time_is_tried_again(fake, url):
    fake.faults = Faults(slow_s=5)
    with pytest.raises(ProviderUnavailable, match="ReadTimeout"):
        OscarsProvider(settings(url, timeout_s=0.1), at_first).status("CXA5")


GOOD = (
    '{"new in 1.3": [], "schedule": {"beginning": 1, "ending": 2000000000}, "qos": {"bandwidth": 1,'
    '"excessAction": "DROP"},'
    '"status": {"phase": "RESERVED", "state": "ACTIVE", "deploymentState": "DEPLOYED",'
    '"deploymentIntent": "SHOULD_BE_DEPLOYED"}, "endpoints": [{"port": "chic-cr6:1/1/c9/1", "vlan": 2},'
    '{"port": "nash-cr6:1/1/c17/2", "vlan": 3, "edgePort": {}}],'
    '"bundles": [{"lsps": [{"role": "PRIMARY", "path": [{"urn": "chic-cr6"}]}]}]}'
)


def test_fields_that_nobody_asked_for_are_ignored(fake, provider):
    fake.faults = Faults(only="GET /api/l2vpn", answer=GOOD)
    assert provider.status("CXA5").state is PurchaseState.UP


@pytest.mark.parametrize(
    "answer",
    ["", "<html>busy</html>", "[]", "null", "NaN", "[" * 100_000]
    + [
        GOOD.replace(a, b)
        for a, b in (
            ('"RESERVED"', '"PARKED"'),
            ('"beginning": 1', '"beginning": "soon"'),
            ('"beginning": 1', '"beginning": "2026-01-01T00:00:00"'),
            ('"beginning": 1', '"beginning": true'),
            ('"beginning": 1', '"beginning": 1e999999'),
            ('"beginning": 1', '"beginning": 1e99999999999999999999'),
            ('"beginning": 1', '"beginning": NaN'),
            ('"beginning": 1', '"begin": 1'),
            ('"bandwidth": 1', '"bandwidth": 1.5'),
            ('"bandwidth": 1', '"bandwidth": -1'),
            ('"bandwidth": 1', '"bandwidth": 10000000000000'),
            ('"endpoints"', '"ends"'),
            ('"vlan": 2', '"vlan": "2"'),
            ('"state": "ACTIVE"', '"state": null'),
        )
    ],
)
def test_an_answer_that_cannot_be_understood_is_tried_again_and_shown(fake, provider, answer):
    fake.faults = Faults(answer=answer)
    with pytest.raises(ProviderUnavailable, match="unclear") as unclear:
        provider.status("CXA5")
    assert unclear.value.problem.endswith(" ".join(answer.split())[:200])


def test_half_a_character_in_an_answer_can_be_told_on():
    _, why = verdict(
        decoded('{"valid": false, "message": "no room for \\ud83d, nor \\ud83d\\ude00"}'), "valid", "message"
    )
    assert why == "no room for \ufffd, nor \U0001f600"
    assert decoded('{"loc\\udc00": ["a", {"urn": "b\\ud800"}, 1.5]}') == {
        "loc\ufffd": ["a", {"urn": "b\ufffd"}, Decimal("1.5")]
    }


@pytest.mark.parametrize("path", ["/protected/modify/bandwidth", "/protected/l2vpn/new", "/api/l2vpn/validate"])
def test_an_unclear_answer_to_a_change_is_tried_again(fake, provider, path):
    if "modify" in path:
        until_up(fake, provider)
    fake.faults = Faults(only=f"POST {path}", answer="{}")
    if "modify" in path:
        with pytest.raises(ProviderUnavailable, match="no success"):
            provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT))
    elif "validate" in path:
        with pytest.raises(ProviderUnavailable, match="no valid"):
            provider.reserve("CXA5", replace(LATER, rate_bps=200 * GIGABIT))
    else:
        provider.reserve("CXA5", LATER)  # what is there decides, not what was said


@pytest.mark.parametrize("only", ["GET", "DELETE", "POST /protected/modify"])
def test_a_500_where_nothing_is_refused_is_tried_again(fake, provider, only):
    until_up(fake, provider)
    fake.faults = Faults(only=only, status=500)
    with pytest.raises(ProviderUnavailable, match="500"):
        provider.change("CXA5", replace(LATER, rate_bps=2 * GIGABIT)) if only != "DELETE" else provider.release("CXA5")


@pytest.mark.parametrize(
    ("period", "why"),
    [
        (replace(LATER, rate_bps=GIGABIT + 1), "1,000,000,001 bit/s is not a positive whole number of Mbit/s"),
        (replace(LATER, rate_bps=0), "0 bit/s is not"),
        (replace(LATER, end_us=2_145_916_800 * SECOND + 1), "no times after 2038"),
    ],
)
def test_what_oscars_cannot_say_is_refused_before_it_is_asked(fake, provider, period, why):
    for buy in (provider.reserve, provider.change):
        with pytest.raises(ProviderRefused, match=why):
            buy("CXA5", period)
    assert fake.requests == []


def test_times_are_rounded_outwards_to_whole_seconds(fake, provider):
    provider.reserve("CXA5", Period(LATER.start_us - 1, LATER.end_us + 1, GIGABIT))
    assert provider.status("CXA5").period == Period(LATER.start_us - SECOND, LATER.end_us + SECOND, GIGABIT)


def test_the_last_day_of_oscars_can_be_bought(fake, provider):
    last = replace(LATER, end_us=2_145_916_800 * SECOND)
    provider.reserve("CXA5", last)
    assert provider.status("CXA5").period == last


@given(st.randoms(use_true_random=False))
def test_names_are_as_oscars_makes_them(random):
    assert re.fullmatch("[CDFGHJKMNPRTWXYZ][234679CDFGHJKMNPRTWXYZ]{3}", NAMING.new_name(random))


def test_names_differ():
    random = Random(1)  # noqa: S311 - names are no secrets
    assert len({NAMING.new_name(random) for _ in range(1_000)}) > 980


def test_the_lead_is_the_notice_and_the_time_of_deploying(fake, url):
    assert OscarsProvider(settings(url, deploy_us=7), at_first).terms.lead_us == BEGIN_NOTICE_US + 7
    assert OscarsProvider(settings(url), at_first).schedule == ()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"url": "oscars:8201"}, "need the URL"),
        ({"url": "https://user:word@oscars"}, "without user and password"),
        ({"url": "https://oscars:8201x"}, "need the URL"),
        ({"url": "https://oscars:82011"}, "need the URL"),
        ({"mtu_bytes": 9216}, "1500 to 9000"),
        ({"z_end": A_END}, "both ends"),
        ({"timeout_s": 0.0}, "a time to wait"),
    ],
)
def test_settings_that_could_not_work_are_refused(wrong, why):
    with pytest.raises(ValueError, match=why) as refused:
        settings(**{"url": "http://oscars:8201", **wrong})
    assert "word" not in str(refused.value).replace("password", "")


def test_a_path_that_no_url_can_have_is_asked_for_by_nobody_and_ends_no_thread(url):
    session = HttpSession(url, None, 1.0)
    with pytest.raises(ProviderUnavailable, match="InvalidURL"):
        session.sent("GET", "/api/\x7f")
    session.close()


@pytest.mark.parametrize(("port", "vlan"), [("1/1/c9/1", 2), ("chic-cr6:1/1/c9/1", 4095), ("chic-cr6:1", -1)])
def test_endpoints_that_oscars_would_not_find_are_refused(port, vlan):
    with pytest.raises(ValueError, match=r"no port of|outside 0..4094"):
        OscarsPort("chic-cr6", port, vlan)


@pytest.mark.parametrize("name", ["", "CXA", "5XAC", "C" * 13, "../../protected/held"])
def test_names_that_oscars_does_not_have_are_refused_before_it_is_asked(fake, provider, name):
    with pytest.raises(ProviderRefused, match="a letter"):
        provider.reserve(name, LATER)
    assert fake.requests == []
