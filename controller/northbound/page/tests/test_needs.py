"""The headline: every case of which it must say no, with what it means and what helps."""

from dataclasses import replace

import pytest

from controller.northbound.page import needs as module
from controller.northbound.page.needs import ADVICE, Around, Since, concerns, headline
from controller.northbound.page.watch import Watch
from controller.northbound.tests.site import dependencies_of
from controller.plan.faults import PlaceFault
from controller.plan.leading import LeaderView, PairStanding
from controller.plan.tests.factories import flow
from controller.plan.wiring import SeenPort
from controller.security.own_certificates import EndingCertificate
from controller.state.faults import note_failed
from controller.state.reported import PlaceAlarm
from controller.tests.fakes import START_US, FakeSite, image, ready_site
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass

S = 1_000_000
TWO = chile_illinois_2()
STANDING = (flow(FlowClass.PREDICTABLE, "base22", network=TWO),)
SOUTH_PORT, BASE20 = 9, 1


@pytest.fixture
def site():
    """A site with two circuits, whose plan is in force, with all that belongs to it connected."""
    site = FakeSite(TWO, STANDING)
    site.attach_all()
    site.wire()
    site.converge()
    return site


def seen(site, **behind):
    """What needs somebody, after a look and another one three seconds later."""
    watch = Watch(dependencies_of(site, **behind))
    watch.look()
    site.clock.now_us += 3 * S
    return watch.look().needs


def test_a_site_that_is_well_needs_nobody(site):
    assert headline(seen(site)) == "All is as planned."


def put_reported(site, **changes):
    """Let something have been reported."""
    with site.state.changed:
        site.state.put(reported=replace(site.state.reported, **changes))


def circuit_dies(site):
    site.port_said(1, SOUTH_PORT, is_live=False)
    site.converge()


def port_dies(site):
    site.switch_reports.port_said(1, BASE20, SeenPort("ls1-eth1", is_live=False))
    site.converge()


def agent_goes(site):
    site.reports.host_down("base20")
    site.clock.now_us += S
    site.converge()


def alarm(site):
    put_reported(site, alarms={"ls1": (PlaceAlarm("queue shadowed: somebody's QoS is on port 8"),)})


def database_hangs(site):
    put_reported(site, database_error="it does not answer")


def clock_is_set(site):
    put_reported(site, calendar_off_us=3_600 * S)


CASES = [
    (circuit_dies, "line", "south", "south: the line is down"),
    (port_dies, "port", "ls1", "ls1: port 1 ls1-eth1 to base20 is down"),
    (agent_goes, "agent", "base20", "base20: its agent is not connected"),
    (alarm, "alarm", "ls1", "ls1: queue shadowed: somebody's QoS is on port 8"),
    (database_hangs, "database", "database", "the database: it does not answer"),
    (clock_is_set, "clock", "clock", "the clock is +3600.0 s off the calendar's time"),
]


@pytest.mark.parametrize(("happens", "kind", "place", "text"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_it_says_what_since_when_and_what_helps(site, happens, kind, place, text):
    happens(site)
    at_us = site.clock.now_us
    (found,) = seen(site)
    assert (found.kind, found.place, found.text, found.since_us) == (kind, place, text, at_us)
    assert headline((found,)) == "1 thing needs you."
    assert found.meaning
    assert found.command


LEADS = LeaderView(PairStanding.LEADER, term=7, address="https://a.example.org", holder="ctl-a", others=("ctl-b",))
STANDS_BY = replace(LEADS, standing=PairStanding.STANDBY, takes=False, others=())


def test_a_pair_of_which_one_leads_and_another_stands_by_needs_nobody(site):
    assert seen(site, leader=lambda: LEADS) == ()


@pytest.mark.parametrize(
    ("leader", "kind"),
    [
        (replace(LEADS, others=()), "standby"),
        (replace(LEADS, standing=PairStanding.UNSURE, takes=False), "unsure"),
        (replace(STANDS_BY, holder="", address=""), "leaderless"),
        (replace(STANDS_BY, age_us=6 * S), "behind"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_what_a_pair_lacks_is_said_but_not_what_is_just_passing(site, leader, kind):
    watch = Watch(dependencies_of(site, leader=lambda: leader))
    first = watch.look().needs
    assert kind == "behind" or not first
    site.clock.now_us += 3 * S
    (found,) = watch.look().needs
    assert (found.kind, found.place, found.since_us) == (kind, "pair", START_US)
    assert found.meaning
    assert found.command


def test_who_stands_by_says_that_and_nothing_of_what_is_the_leader_s(site):
    circuit_dies(site)
    watch = Watch(dependencies_of(site, leader=lambda: STANDS_BY, connected=frozenset))
    watch.look()
    site.clock.now_us += 60 * S
    look = watch.look()
    assert (look.needs, look.headline) == ((), "This controller stands by: ctl-a leads.")


def test_a_switch_that_is_gone_is_said_once_with_the_promises_that_wait_for_it(site):
    site.announce(image())
    site.converge()
    found = seen(site, connected=lambda: frozenset({2}))
    assert [(n.kind, n.place) for n in found] == [("switch-gone", "ls1")]


def test_a_switch_that_cannot_be_told_anything_is_no_fault_of_the_plan_beside(site):
    why = "0000000000000001 is not connected; it keeps forwarding by the rules it has"
    with site.state.changed:
        note_failed(site.state, [PlaceFault("switch ls1", why, frozenset({"ls1"}), is_gone=True)])
    found = seen(site, connected=lambda: frozenset({2}))
    assert [(n.kind, n.place) for n in found] == [("switch-gone", "ls1")]


def test_what_is_not_carried_for_want_of_an_agent_is_said_with_the_agent_s(site):
    site.announce(image())
    site.converge()
    agent_goes(site)
    found = {n.place: n.touches for n in seen(site) if n.kind == "agent"}
    assert found == {"base20": ("announcement image",)}


def test_a_dead_circuit_is_one_thing_with_the_ports_at_its_ends(site):
    circuit_dies(site)
    down = PlaceAlarm("port misconfigured: down: see to the cable", port_name="ls1-south")
    put_reported(site, alarms={"ls1": (down, PlaceAlarm("somebody's QoS", port_name="ls1-north"))})
    assert [(n.kind, n.place) for n in seen(site)] == [("alarm", "ls1"), ("line", "south")]


@pytest.mark.parametrize(("days", "is_said"), [(29, True), (31, False)])
def test_a_certificate_about_to_end_is_said(site, days, is_said):
    end_s = (START_US + 10 * S) / 1e6 + days * 86_400
    found = seen(site, certificates=lambda: {"base20": end_s})
    assert [n.text for n in found] == [f"base20: the certificate of its agent ends in {days} days"] * is_said


@pytest.mark.parametrize(("days", "is_said"), [(29, True), (31, False)])
def test_a_switchs_certificate_about_to_end_is_said(site, days, is_said):
    end_s = (START_US + 10 * S) / 1e6 + days * 86_400
    found = seen(site, switch_certificates=lambda: {"ls1": end_s})
    assert [n.text for n in found] == [f"ls1: the switch's certificate ends in {days} days"] * is_said
    assert [n.command for n in found] == ["headway pki renew pki ls1"] * is_said


@pytest.mark.parametrize("whose", ["controller", "authority", "rest"])
def test_the_controllers_own_certificate_and_its_authoritys_are_said_before_they_end(site, whose):
    end_s = (START_US + 10 * S) / 1e6 + 3 * 86_400
    own = EndingCertificate(whose, "192.0.2.1", end_s)
    (found,) = seen(site, own_certificates=lambda: (own,))
    assert found.text == f"the certificate of the {whose}, 192.0.2.1, ends in 3 days"
    assert "headway pki" in found.command


def test_a_plan_that_takes_a_moment_to_be_in_force_needs_nobody():
    site = ready_site()
    site.switches.gone = True
    watch = Watch(dependencies_of(site))
    site.announce(image())
    assert watch.look().needs == ()
    site.clock.now_us += 3 * S
    assert "plan" in {n.kind for n in watch.look().needs}


def test_since_when_begins_anew_when_it_was_over():
    since = Since()
    one = module.Concern("line", "south", "south: the line is down")
    assert since.seen([one], 5)[0].since_us == 5
    assert since.seen([one], 9)[0].since_us == 5
    assert since.seen([], 10) == ()
    assert since.seen([one], 11)[0].since_us == 11


@pytest.mark.parametrize(
    ("kind", "place", "texts"),
    [
        ("late", "image", ("5.0 MB of 2.7 GB have arrived", "5.1 MB of 2.7 GB have arrived")),
        ("clock", "clock", ("the clock is +12.3 s off", "the clock is +12.4 s off")),
        ("certificate", "base20", ("base20: it ends in 29 days", "base20: it ends in 28 days")),
        ("receiver", "base20", ("base20 takes no more than 1.211 Gbit/s", "base20 takes no more than 1.212 Gbit/s")),
        (module.TroubleKind.PROVIDER, "south", ("south: its provider: 502", "south: its provider: no answer")),
        (module.TroubleKind.RESERVATION, "r1", ("reservation r1: 1 Gbit/s", "reservation r1: 2 Gbit/s")),
        (module.TroubleKind.ANNOUNCEMENT, "image", ("announcement image: a", "announcement image: b")),
    ],
    ids=str,
)
def test_since_when_stays_while_its_words_change(kind, place, texts):
    since = Since()
    for at_us in range(0, 60 * S, S):
        found = since.seen([module.Concern(kind, place, texts[at_us // S % 2])], START_US + at_us)
    assert [(n.text, n.since_us) for n in found] == [(texts[1], START_US)]


def test_of_several_things_at_one_place_each_has_its_time():
    since = Since()
    ports = [module.Concern(module.TroubleKind.PORT, "ls1", f"ls1: port {n} is down") for n in (1, 2)]
    since.seen(ports[:1], 5)
    assert [n.since_us for n in since.seen(ports, 9)] == [5, 9]


def test_an_image_of_which_nothing_comes_is_late_when_its_promise_is_over(site):
    site.announce(image())
    site.converge()
    promised_us = site.value.wished.ledger.announcements["image"].promised_us
    assert seen(site) == ()
    site.clock.now_us = promised_us + 3 * S
    (one,) = seen(site)
    assert (one.kind, one.place, "0 B of" in one.text) == ("late", "image", True)


def test_every_kind_of_trouble_has_its_advice(site):
    assert set(module.TroubleKind) <= set(ADVICE)
    assert concerns(site.reports.view(), (), 3 * S, Around({}, {}, (), {}), 0)[0].text == "the database does not answer"
