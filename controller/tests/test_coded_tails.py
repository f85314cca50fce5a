"""Coded tails: told to the agents of both ends that offer them, for what asks for them."""

from dataclasses import replace

import pytest

from controller.plan.policy import DEFAULT_POLICY
from controller.tests.fakes import DATABASE, FakeSite, image
from topology.protocol import FlowClass, Hello, Tail

SENDERS = ("base20", "base21")


def site_with(*offering, policy=DEFAULT_POLICY, **more):
    """A site of whose agents these offer coded tails, with its first plan in force."""
    site = FakeSite(policy=policy, **more)
    for host in site.state.site.network.agents:
        site.attach(host, codes_tails=host in offering)
    site.converge()
    return site


def told(site, host, flow_class=FlowClass.URGENT):
    """What a host was told last of the tails of a class."""
    message = next(message for name, message in reversed(site.hosts.sent) if name == host)
    return {entry.tail for entry in message.entries if entry.flow_class is flow_class}


def announced(site, **changes):
    answer = site.announce(image(**changes))
    site.converge()
    return answer


def test_what_is_announced_with_a_coded_tail_is_told_so_to_its_senders():
    site = site_with(*SENDERS, "arch")
    announced(site, tail=Tail.CODED)
    assert [told(site, host) for host in SENDERS] == [{Tail.CODED}] * 2
    assert told(site, "base23", FlowClass.BACKGROUND) == {Tail.PLAIN}


def test_it_is_off_where_nobody_asks_for_it():
    site = site_with(*SENDERS, "arch")
    announced(site)
    assert [told(site, host) for host in SENDERS] == [{Tail.PLAIN}] * 2


@pytest.mark.parametrize("offering", [(), SENDERS, ("arch",), ("base20", "arch")])
def test_a_sender_is_told_only_if_it_and_the_receiver_offer_it(offering):
    site = site_with(*offering)
    announced(site, tail=Tail.CODED)
    for host in SENDERS:
        assert told(site, host) == {Tail.CODED if {host, "arch"} <= {*offering} else Tail.PLAIN}


def test_a_receiver_that_offers_it_later_makes_the_tails_coded_and_one_that_does_not_any_more_plain():
    site = site_with(*SENDERS)
    announced(site, tail=Tail.CODED)
    assert told(site, "base20") == {Tail.PLAIN}
    for codes_tails, tail in ((True, Tail.CODED), (False, Tail.PLAIN)):
        site.reports.host_down("arch")
        site.attach("arch", codes_tails=codes_tails)
        site.converge()
        assert told(site, "base20") == {tail}


def test_an_agent_that_is_older_when_it_comes_back_hears_nothing_of_coded_tails():
    site = site_with(*SENDERS, "arch")
    announced(site, tail=Tail.CODED)
    held = site.value.reported.hosts["base20"]
    site.reports.host_down("base20")
    again = site.reports.host_up(Hello("base20", "0", "6.12", held.sent_epoch))
    assert {entry.tail for entry in again.entries} == {Tail.PLAIN}


def test_a_class_may_have_it_for_all_its_flows_and_a_flow_for_itself():
    urgent = replace(DEFAULT_POLICY.classes[FlowClass.URGENT], tail=Tail.CODED)
    policy = replace(DEFAULT_POLICY, classes=DEFAULT_POLICY.classes | {FlowClass.URGENT: urgent})
    site = site_with(*SENDERS, "base22", "arch", standing=(replace(DATABASE, tail=Tail.CODED),), policy=policy)
    announced(site)
    assert told(site, "base20") == {Tail.CODED}
    assert told(site, DATABASE.host, DATABASE.flow_class) == {Tail.CODED}


def test_what_an_earlier_controller_granted_with_a_coded_tail_is_granted_again_so():
    site = site_with(*SENDERS, "arch")
    announced(site, tail=Tail.CODED)
    held = next(message for host, message in reversed(site.hosts.sent) if host == "base20")
    after = FakeSite(clock=site.clock)
    again = after.reports.host_up(Hello("base20", "0", "6.12", held.epoch, 200, held.entries, codes_tails=True))
    assert again.entries == held.entries


def test_the_promise_has_room_for_the_parities():
    plain, coded = (announced(site_with(), size_bytes=10**8, senders=("base20",), tail=tail) for tail in Tail)
    bits = [sum(rate.rate_bps * (rate.end_us - rate.start_us) for rate in one.rates) // 10**6 for one in (plain, coded)]
    assert bits[1] - bits[0] == pytest.approx(1024 * 8 * 1538, rel=0.01)
