"""What a switch says that it holds, and what becomes of a plan that needs more."""

import pytest
from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.ofproto: they import each other
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser
from structlog.testing import capture_logs

from controller.southbound.errors import SwitchRefused, SwitchTooSmall
from controller.southbound.openflow.lengths import check_message, without_properties
from controller.southbound.openflow.limits import SwitchLimits
from controller.southbound.openflow.rule_parts import ends
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import SwitchState, drop_meter
from controller.southbound.openflow.tests.played_switch import DPID, TERM, connected
from controller.southbound.openflow.tests.recorder import RecordedSwitches

TWO_METERS = SwitchState(meters=frozenset(drop_meter(number, 1_000_000, 1000) for number in (1000, 1001)))
TWO_RULES = SwitchState(rules=frozenset(ends(table_id=1, priority=p, fields={}) for p in (10, 20)))


@pytest.fixture
def sessions():
    """Sessions that nobody listens to."""
    sessions = SwitchSessions(RecordedSwitches(), TERM)
    yield sessions
    sessions.close()


def test_more_meters_than_a_switch_has_said_to_hold_are_not_sent_and_the_cure_is_said(sessions):
    with capture_logs() as logs:
        datapath = connected(sessions, room=(1, {0: 100, 1: 100}))
    with pytest.raises(SwitchTooSmall, match="holds 1 meters and 2 are needed: spread its hosts over several"):
        sessions.apply(DPID, TWO_METERS, timeout_s=1)
    assert datapath.meter_mods() == []
    (said,) = (log for log in logs if log["event"] == "switch.limits")
    assert (said["meters"], said["rules"]) == (1, 100)


def test_who_stood_by_knows_what_a_switch_holds_and_does_not_ask_again_when_it_leads():
    sessions = SwitchSessions(RecordedSwitches(), 0, others_term=lambda: TERM)
    with capture_logs() as logs:
        connected(sessions, room=(1, {0: 100, 1: 100}))
        sessions.lead(TERM + 1)
    with pytest.raises(SwitchTooSmall):
        sessions.apply(DPID, TWO_METERS, timeout_s=1)
    sessions.close()
    assert [log["event"] for log in logs].count("switch.limits") == 1


def test_more_rules_than_a_table_holds_are_not_sent_by_whichever_part_of_the_answer_it_was_said(sessions):
    for table_id in (0, 1):
        datapath = connected(sessions, room=(9, {0: 100, 1: 100} | {table_id: 1}))
        if table_id:
            with pytest.raises(SwitchTooSmall, match="holds 1 rules in table 1 and 2 are needed"):
                sessions.apply(DPID, TWO_RULES, timeout_s=1)
        else:
            sessions.apply(DPID, TWO_RULES, timeout_s=1)
        sessions.disconnected(datapath)


def test_a_switch_that_does_not_say_what_it_holds_is_taken_to_have_room_and_refuses_by_itself(sessions):
    datapath = connected(sessions)
    sessions.apply(DPID, TWO_METERS, timeout_s=1)
    assert datapath.meter_mods() == [1000, 1001]
    sessions.disconnected(datapath)
    connected(sessions, refuse=lambda msg: isinstance(msg, ofproto_v1_3_parser.OFPMeterMod))
    with pytest.raises(SwitchRefused):
        sessions.apply(DPID, TWO_METERS, timeout_s=1)


def test_what_just_fits_is_no_more_than_what_there_is_room_for():
    SwitchLimits(2, {1: 2}).check(DPID, TWO_METERS)
    SwitchLimits(2, {1: 2}).check(DPID, TWO_RULES)
    SwitchLimits(None, {0: 1}).check(DPID, TWO_RULES)
    with pytest.raises(SwitchTooSmall):
        SwitchLimits(0).check(DPID, TWO_METERS)


def test_of_what_tables_can_do_nothing_is_read_but_how_much_they_hold():
    def table(number, entries, properties):
        head = bytes([number]) + bytes(5) + b"t".ljust(32, b"\0") + bytes(20) + entries.to_bytes(4, "big")
        return (64 + len(properties)).to_bytes(2, "big") + head + properties

    body = table(0, 7, bytes(5000)) + table(5, 9, b"")
    head = bytes([4, ofproto_v1_3.OFPT_MULTIPART_REPLY]) + (16 + len(body)).to_bytes(2, "big") + bytes(4)
    message = head + ofproto_v1_3.OFPMP_TABLE_FEATURES.to_bytes(2, "big") + b"\0\1" + bytes(4) + body
    check_message(message)
    short = without_properties(message)
    parse = ofproto_v1_3_parser.OFPMultipartReply.parser
    read = parse(None, 4, ofproto_v1_3.OFPT_MULTIPART_REPLY, len(short), 0, short)
    assert [(one.table_id, one.max_entries, one.properties) for one in read.body] == [(0, 7, []), (5, 9, [])]
    assert (read.flags, len(short)) == (1, 16 + 2 * 64)
