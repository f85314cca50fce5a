"""Who is a switch's master, with a connection played by the test."""

from collections.abc import Iterator

import pytest
from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.ofproto: they import each other
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from controller.southbound.errors import SwitchGone, SwitchRefused
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.played_switch import DPID, LARGE, SMALL, TERM, at_port, connected
from controller.southbound.openflow.tests.recorder import RecordedSwitches

STALE, UNSUPPORTED, IS_SLAVE = (11, 0), (11, 1), (1, 10)  # OpenFlow 1.3, section 7.4.4


@pytest.fixture
def listener() -> RecordedSwitches:
    """Who hears of switches."""
    return RecordedSwitches()


@pytest.fixture
def sessions(listener) -> Iterator[SwitchSessions]:
    """Sessions that are heard."""
    sessions = SwitchSessions(listener, TERM)
    yield sessions
    sessions.close()


def test_a_switch_is_asked_to_take_us_for_its_master_under_our_term_before_anything_is_written(sessions, listener):
    silent = connected(sessions, role=())
    assert (silent.generation, sessions.dpids()) == (TERM, frozenset())
    with pytest.raises(SwitchGone):
        sessions.apply(DPID, SMALL, timeout_s=0.05)
    obeys = connected(sessions)
    sessions.disconnected(silent)
    sessions.apply(DPID, SMALL, timeout_s=1)
    sessions.close()
    assert (silent.sent, obeys.meter_mods(), listener.told) == ([], [1000], [DPID])


def test_a_switch_that_obeys_a_controller_of_a_later_term_is_told_of_and_let_go(sessions, listener):
    datapath = connected(sessions, role=STALE)
    sessions.disconnected(datapath)
    sessions.close()
    assert (datapath.is_closed, datapath.sent, sessions.dpids()) == (True, [], frozenset())
    assert (listener.lost, listener.told) == ([DPID], [])


def test_a_switch_that_another_controller_takes_over_meanwhile_is_let_go_at_its_first_refusal(sessions, listener):
    datapath = connected(sessions)
    sessions.apply(DPID, SMALL, timeout_s=1)
    datapath.refuse, datapath.refusal = lambda msg: isinstance(msg, ofproto_v1_3_parser.OFPMeterMod), IS_SLAVE
    with pytest.raises(SwitchRefused):
        sessions.apply(DPID, LARGE, timeout_s=1)
    sessions.close()
    assert (datapath.is_closed, listener.lost) == (True, [DPID])


def test_a_switch_that_knows_no_roles_is_led_without_one(sessions):
    datapath = connected(sessions, role=UNSUPPORTED)
    sessions.apply(DPID, SMALL, timeout_s=1)
    assert datapath.meter_mods() == [1000]


def test_a_port_that_changes_before_the_switch_has_answered_is_shown_as_it_is_now(sessions, listener):
    datapath = connected(sessions, role=(), ports=at_port(1, "02:00:00:00:00:01"))
    (gone,) = at_port(1, "02:00:00:00:00:01").values()
    sessions.port_changed(ofproto_v1_3_parser.OFPPortStatus(datapath, ofproto_v1_3.OFPPR_DELETE, gone))
    reply = ofproto_v1_3_parser.OFPRoleReply(datapath, role=2, generation_id=TERM)
    datapath.say(reply, next(datapath.xids) - 1)
    assert sessions.ports(DPID) == {}
    sessions.close()
    assert (listener.told, listener.said) == ([DPID], [])


@pytest.fixture
def standing_by(listener) -> Iterator[SwitchSessions]:
    """Sessions of a controller that stands by, while another leads under TERM."""
    sessions = SwitchSessions(listener, 0, others_term=lambda: TERM)
    yield sessions
    sessions.close()


def test_who_stands_by_asks_to_be_a_slave_under_the_leaders_term_and_hears_of_ports(standing_by, listener):
    datapath = connected(standing_by, ports=at_port(1, "02:00:00:00:00:01"))
    assert (datapath.asked_role, datapath.generation) == (ofproto_v1_3.OFPCR_ROLE_SLAVE, TERM)
    assert standing_by.ports(DPID).keys() == {1}
    standing_by.close()
    assert listener.told == [DPID]


def test_who_begins_to_lead_asks_each_switch_again_and_writes_nothing_before_it_obeys(standing_by, listener):
    datapath = connected(standing_by)
    datapath.role = ()  # it does not answer yet
    standing_by.lead(TERM + 1)
    assert (datapath.asked_role, datapath.generation) == (ofproto_v1_3.OFPCR_ROLE_MASTER, TERM + 1)
    with pytest.raises(SwitchGone):
        standing_by.apply(DPID, SMALL, timeout_s=0.05)
    datapath.role = None
    standing_by.lead(TERM + 2)
    standing_by.apply(DPID, SMALL, timeout_s=1)
    later = connected(standing_by, id=DPID + 1)
    standing_by.close()
    assert (datapath.meter_mods(), later.asked_role) == ([1000], ofproto_v1_3.OFPCR_ROLE_MASTER)
    assert listener.told == [DPID, DPID, DPID + 1]


def test_a_switch_that_dies_before_it_obeys_who_begins_to_lead_is_said_to_be_gone(standing_by, listener):
    died, is_back = connected(standing_by), connected(standing_by, id=DPID + 1)
    died.role = is_back.role = ()
    standing_by.lead(TERM + 1)
    standing_by.disconnected(died)
    connected(standing_by, id=DPID + 1)
    standing_by.disconnected(is_back)  # it has called anew meanwhile
    standing_by.close()
    assert listener.told == [DPID, DPID + 1, -DPID, DPID + 1]


def test_who_begins_to_lead_where_another_leads_already_is_let_go(standing_by, listener):
    datapath = connected(standing_by)
    datapath.role = STALE
    standing_by.lead(TERM + 1)
    standing_by.close()
    assert (datapath.is_closed, listener.lost) == (True, [DPID])


def test_a_switch_that_calls_one_that_is_not_sure_to_lead_is_asked_for_nothing_until_it_is(listener):
    sure = [True, False]  # at the first switch; then no more
    sessions = SwitchSessions(listener, TERM, leads=lambda: sure[0])
    known = connected(sessions)
    sure.pop(0)
    restarted = connected(sessions, id=DPID + 1)  # it has forgotten whom it obeyed
    sessions.ask_waiting()
    assert (known.generation, restarted.generation, sessions.dpids()) == (TERM, None, {DPID})
    with pytest.raises(SwitchGone):
        sessions.apply(DPID + 1, SMALL, timeout_s=0.05)
    sure[0] = True
    sessions.ask_waiting()
    sessions.ask_waiting()  # it is asked once
    sessions.apply(DPID + 1, SMALL, timeout_s=1)
    sessions.close()
    assert (restarted.generation, restarted.meter_mods(), listener.told) == (TERM, [1000], [DPID, DPID + 1])


def test_a_switch_vouches_for_us_while_it_says_that_we_are_its_master(sessions):
    ours, theirs = connected(sessions), connected(sessions, id=DPID + 1)
    theirs.now_role = ofproto_v1_3.OFPCR_ROLE_SLAVE
    assert sessions.still_obeying(timeout_s=0.05) == {DPID}
    assert (ours.generation, theirs.is_closed) == (TERM, False)  # it was asked, and for nothing


@pytest.mark.parametrize("says", [(), UNSUPPORTED], ids=["nothing", "that it knows no roles"])
def test_a_switch_vouches_for_nobody_that_says(sessions, says):
    datapath = connected(sessions)
    assert sessions.still_obeying(timeout_s=0.05) == {DPID}
    datapath.role = says  # what it said before counts no more
    assert sessions.still_obeying(timeout_s=0.05) == frozenset()


@pytest.mark.parametrize("others_term", [None, lambda: TERM], ids=["leads", "stands by"])
def test_a_switch_that_is_not_in_the_network_is_told_of_and_goes_on_to_obey_whom_it_obeys(listener, others_term):
    sessions = SwitchSessions(listener, TERM, others_term=others_term, ours=frozenset({DPID}))
    stranger, ours = connected(sessions, id=99, room=(5, {})), connected(sessions)
    sessions.lead(TERM + 1)
    assert (stranger.asked_role, stranger.generation, stranger.sent) == (None, None, [])
    assert (ours.asked_role, ours.generation) == (ofproto_v1_3.OFPCR_ROLE_MASTER, TERM + 1)
    assert sessions.dpids() == {DPID, 99}
    sessions.disconnected(connected(sessions, id=98))
    sessions.close()
    assert (listener.told, sessions._gone_s.keys()) == ([99, DPID, 99, DPID, 98, -98], {99, DPID})
