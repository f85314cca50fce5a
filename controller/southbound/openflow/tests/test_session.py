"""What the sessions believe of a switch, with a connection played by the test."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.ofproto: they import each other
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser
from structlog.testing import capture_logs

from controller.plan.wiring import SeenPort, SeenPorts
from controller.security.tls import ShownEnd
from controller.southbound.errors import SwitchGone, SwitchRefused, SwitchTimeout
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import SwitchState, drop_meter
from controller.southbound.openflow.tests.played_switch import DPID, LARGE, SMALL, TERM, at_port, connected
from controller.southbound.openflow.tests.recorder import RecordedSwitches
from mininet_tests.testing.eventually import eventually

SWAPPED = SwitchState(meters=frozenset({drop_meter(1000, 1_000_000, 1000), drop_meter(1001, 9_000_000, 1000)}))
SWAPPED_BACK = SwitchState(meters=frozenset({drop_meter(1000, 9_000_000, 1000), drop_meter(1001, 1_000_000, 1000)}))


@pytest.fixture
def sessions() -> Iterator[SwitchSessions]:
    """Sessions that nobody listens to."""
    sessions = SwitchSessions(RecordedSwitches(), TERM)
    yield sessions
    sessions.close()


def everything(_message: Any) -> bool:
    """A switch that does not answer."""
    return True


def barriers(message: Any) -> bool:
    """A switch that answers questions and confirms nothing."""
    return isinstance(message, ofproto_v1_3_parser.OFPBarrierRequest)


def in_background(call: Callable[[], object]) -> list[BaseException]:
    """Run ``call`` in a thread; the list gets what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except (SwitchGone, SwitchTimeout) as error:
            raised.append(error)

    threading.Thread(target=run, daemon=True).start()
    return raised


def test_the_same_state_again_sends_nothing(sessions):
    datapath = connected(sessions)
    sessions.apply(DPID, SMALL, timeout_s=1)
    sent = len(datapath.sent)
    sessions.apply(DPID, SMALL, timeout_s=1)
    assert len(datapath.sent) == sent


def test_a_refusal_names_the_message_its_type_and_its_code(sessions):
    connected(sessions, refuse=lambda msg: isinstance(msg, ofproto_v1_3_parser.OFPMeterMod))
    with pytest.raises(SwitchRefused) as refused:
        sessions.apply(DPID, SMALL, timeout_s=1)
    assert (refused.value.error_type, refused.value.error_code) == (12, 2)
    assert "meter 1000" in str(refused.value)
    assert "OFPMMFC_INVALID_METER" in str(refused.value)


def test_nothing_grows_after_a_shrink_was_refused(sessions):
    datapath = connected(sessions)
    sessions.apply(DPID, SWAPPED, timeout_s=1)
    datapath.sent.clear()
    datapath.refuse = lambda msg: getattr(msg, "meter_id", None) == 1001
    with pytest.raises(SwitchRefused):
        sessions.apply(DPID, SWAPPED_BACK, timeout_s=1)
    assert datapath.meter_mods() == [1001]


def test_after_a_refusal_the_state_is_read_back_before_anything_is_sent(sessions):
    datapath = connected(sessions, refuse=lambda msg: isinstance(msg, ofproto_v1_3_parser.OFPMeterMod))
    with pytest.raises(SwitchRefused):
        sessions.apply(DPID, SMALL, timeout_s=1)
    datapath.sent.clear()
    datapath.refuse = lambda _msg: False
    sessions.apply(DPID, SMALL, timeout_s=1)
    assert isinstance(datapath.sent[0], ofproto_v1_3_parser.OFPFlowStatsRequest)


def test_a_switch_that_does_not_confirm_is_a_timeout(sessions):
    connected(sessions, ignores=everything)
    with pytest.raises(SwitchTimeout):
        sessions.apply(DPID, SMALL, timeout_s=0.05)


def test_an_answer_of_another_kind_than_the_question_is_none(sessions):
    datapath = connected(sessions, ignores=lambda msg: isinstance(msg, ofproto_v1_3_parser.OFPFlowStatsRequest))
    raised = in_background(lambda: sessions.installed(DPID, timeout_s=0.2))
    assert eventually(lambda: datapath.sent, within_s=5, what="it is asked")
    meters = ofproto_v1_3_parser.OFPMeterConfigStats(0, [], 1000)
    datapath.say(ofproto_v1_3_parser.OFPMeterConfigStatsReply(datapath, body=[meters], flags=0), datapath.sent[0].xid)
    assert isinstance(eventually(lambda: raised and raised[0], within_s=5, what="it gives up"), SwitchTimeout)


def test_a_switch_that_goes_before_its_last_barrier_has_confirmed_nothing(sessions):
    datapath = connected(sessions, ignores=barriers)
    raised = in_background(lambda: sessions.apply(DPID, SMALL, timeout_s=60))
    eventually(lambda: any(map(barriers, datapath.sent)), within_s=5, what="the barrier is sent")
    sessions.disconnected(datapath)
    eventually(lambda: [type(error) for error in raised] == [SwitchGone], within_s=5, what="SwitchGone")


def test_whoever_waits_for_a_switch_is_told_at_once_that_it_has_gone(sessions):
    datapath = connected(sessions, ignores=everything)
    raised = in_background(lambda: sessions.apply(DPID, SMALL, timeout_s=60))
    eventually(lambda: datapath.sent, within_s=5, what="the question is sent")
    sessions.disconnected(datapath)
    eventually(lambda: [type(error) for error in raised] == [SwitchGone], within_s=5, what="SwitchGone")


def test_a_switch_that_is_not_connected_is_gone(sessions):
    with pytest.raises(SwitchGone):
        sessions.apply(DPID, SMALL, timeout_s=1)


def test_a_switch_that_has_just_gone_gets_its_state_as_soon_as_it_is_back(sessions):
    sessions.disconnected(connected(sessions))
    raised = in_background(lambda: sessions.apply(DPID, LARGE, timeout_s=5))
    back = connected(sessions)
    eventually(lambda: back.meter_mods() == [1000], within_s=5, what="it has its meter")
    assert raised == []


def test_a_switch_that_has_just_gone_is_not_waited_for_beyond_the_callers_time(sessions, monkeypatch):
    monkeypatch.setattr("controller.southbound.openflow.session.BACK_WITHIN_S", 60.0)
    sessions.disconnected(connected(sessions))
    began_s = time.monotonic()
    with pytest.raises(SwitchGone):
        sessions.apply(DPID, SMALL, timeout_s=0.1)
    assert 0.1 <= time.monotonic() - began_s < 60


def test_the_end_of_an_older_connection_does_not_end_the_newer(sessions):
    older = connected(sessions)
    older.close()  # of which the sessions have not been told yet
    newer = connected(sessions)
    sessions.disconnected(older)
    sessions.apply(DPID, LARGE, timeout_s=1)
    assert newer.meter_mods() == [1000]


def test_an_answer_on_an_older_connection_does_not_count(sessions):
    older = connected(sessions)
    older.close()
    newer = connected(sessions, ignores=everything)
    raised = in_background(lambda: sessions.apply(DPID, SMALL, timeout_s=0.2))
    eventually(lambda: len(newer.sent) == 3, within_s=5, what="all questions are sent")
    for msg in newer.sent:
        older.say(ofproto_v1_3_parser.OFPFlowStatsReply(older, body=[], flags=0), msg.xid)
    eventually(lambda: [type(error) for error in raised] == [SwitchTimeout], within_s=5, what="SwitchTimeout")
    assert newer.meter_mods() == []


def test_every_port_is_told_of_when_the_switch_connects_and_one_that_changes_when_it_does():
    ofp, parser = ofproto_v1_3, ofproto_v1_3_parser
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, TERM)

    def port(number: int, state: int, config: int = 0) -> Any:
        return parser.OFPPort(number, f"02:00:00:00:00:{number:02x}", b"p", config, state, 0, 0, 0, 0, 0, 0)

    datapath = connected(
        sessions, ports={8: port(8, ofp.OFPPS_LIVE), 9: port(9, ofp.OFPPS_LIVE | ofp.OFPPS_LINK_DOWN), 7: port(7, 0)}
    )
    for reason, now in (
        (ofp.OFPPR_MODIFY, port(8, ofp.OFPPS_LIVE, ofp.OFPPC_PORT_DOWN)),
        (ofp.OFPPR_ADD, port(9, ofp.OFPPS_LIVE)),
        (ofp.OFPPR_DELETE, port(9, ofp.OFPPS_LIVE)),
    ):
        sessions.port_changed(parser.OFPPortStatus(datapath, reason, now))
    sessions.close()
    assert listener.said == [
        (DPID, 8, True),
        (DPID, 9, False),
        (DPID, 7, False),
        (DPID, 8, False),
        (DPID, 9, True),
        (DPID, 9, False),
    ]


def test_a_callback_may_apply_at_once_and_a_failing_one_does_not_end_the_telling():
    class Applying(RecordedSwitches):
        def switch_up(self, dpid: int, address: str, ports: SeenPorts) -> None:
            sessions.apply(dpid, SMALL, timeout_s=1)
            super().switch_up(dpid, address, ports)
            raise ValueError("a bug in the reports")

    listener = Applying()
    sessions = SwitchSessions(listener, TERM)
    datapath = connected(sessions)
    eventually(lambda: listener.told == [DPID], within_s=5, what="told of the switch")
    sessions.disconnected(datapath)
    eventually(lambda: listener.told == [DPID, -DPID], within_s=5, what="told of its end")
    sessions.close()


def test_another_switch_under_the_datapath_id_of_one_that_is_there_is_turned_away_and_told_of():
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, TERM)
    first = connected(sessions, ports=at_port(1, "02:00:00:00:00:01"))
    second = connected(sessions, ports=at_port(1, "02:00:00:00:00:99"), address=("192.0.2.9", 4711))
    sessions.apply(DPID, SMALL, timeout_s=1)
    assert (first.meter_mods(), second.sent, second.is_closed, first.is_closed) == ([1000], [], True, False)
    sessions.disconnected(second)
    assert sessions.dpids() == {DPID}
    sessions.disconnected(first)
    third = connected(sessions, ports=at_port(1, "02:00:00:00:00:99"))
    sessions.close()
    assert (listener.claims, listener.told) == ([(DPID, "192.0.2.9:4711")], [DPID, -DPID, DPID])
    assert not third.is_closed


def test_a_certificate_of_one_switch_does_not_make_another_even_if_that_is_not_there():
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, TERM)
    another = connected(sessions, certified_dpid=DPID + 1)
    assert (sessions.dpids(), another.is_closed) == (frozenset(), True)
    own = connected(sessions, certified_dpid=DPID, ports=at_port(1, "02:00:00:00:00:01"))
    copies_all = connected(sessions, certified_dpid=DPID + 1, ports=at_port(1, "02:00:00:00:00:01"))
    sessions.disconnected(copies_all)
    assert (sessions.dpids(), own.is_closed, copies_all.is_closed) == ({DPID}, False, True)
    sessions.close()
    assert listener.told == [DPID]


def test_the_certificate_of_a_switch_is_that_of_the_connection_that_it_has(sessions):
    first = connected(sessions, certificate=ShownEnd(1, 10))
    connected(sessions, id=DPID + 1)  # without TLS
    assert sessions.certificates() == {DPID: (1, 10)}
    sessions.disconnected(first)
    assert sessions.certificates() == {}
    connected(sessions, certificate=ShownEnd(2, 5))
    assert sessions.certificates() == {DPID: (2, 5)}


SAME = at_port(1, "02:00:00:00:00:01")


def test_who_copies_all_that_a_switch_shows_does_not_take_its_place_while_it_is_there():
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, TERM)
    first = connected(sessions, ports=SAME)
    copy = connected(sessions, ports=SAME, address=("192.0.2.9", 4711))
    sessions.disconnected(copy)
    sessions.apply(DPID, SMALL, timeout_s=1)
    sessions.close()
    assert (first.meter_mods(), first.is_closed, copy.sent, copy.is_closed) == ([1000], False, [], True)
    assert copy.generation is None, "it was asked to lead"
    assert (listener.claims, listener.told) == ([(DPID, "192.0.2.9:4711")], [DPID])


def test_a_switch_that_calls_again_replaces_a_connection_that_was_cut_and_answers_no_more(monkeypatch):
    monkeypatch.setattr("controller.southbound.openflow.session.ANSWERS_WITHIN_S", 0.05)
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, TERM)
    older = connected(sessions, ports=SAME, is_there=False)
    with capture_logs() as logs:
        newer = connected(sessions, ports=SAME | at_port(2, "02:00:00:00:00:02"))
        third = connected(sessions, ports=SAME)
        eventually(lambda: listener.told == [DPID, DPID], within_s=5, what="the newer one is taken")
    sessions.apply(DPID, SMALL, timeout_s=1)
    sessions.disconnected(older)
    sessions.close()
    assert (older.meter_mods(), newer.meter_mods(), third.sent) == ([], [1000], [])
    assert (older.is_closed, newer.is_closed, third.is_closed) == (True, False, True)
    assert "switch.replaced" in [each["event"] for each in logs]
    assert sessions.dpids() == {DPID}


def test_who_waits_for_the_place_of_a_switch_has_it_at_once_when_that_hangs_up(monkeypatch):
    monkeypatch.setattr("controller.southbound.openflow.session.ANSWERS_WITHIN_S", 60.0)
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, TERM)
    older = connected(sessions, ports=SAME, is_there=False)
    newer = connected(sessions, ports=SAME)
    assert (sessions.dpids(), newer.generation) == ({DPID}, None)
    sessions.disconnected(older)
    sessions.apply(DPID, SMALL, timeout_s=1)
    sessions.close()
    assert newer.meter_mods() == [1000]
    assert listener.told == [DPID, -DPID, DPID]


def test_a_connection_that_does_not_take_us_for_its_master_gives_way_and_is_ended():
    sessions = SwitchSessions(RecordedSwitches(), TERM)
    mute = connected(sessions, ports=SAME, role=())
    switch = connected(sessions, ports=SAME)
    assert (mute.is_closed, switch.is_closed, sessions.dpids()) == (True, False, {DPID})
    sessions.close()


def test_ports_are_shown_by_number_and_name_as_said_last():
    sessions = SwitchSessions(RecordedSwitches(), TERM)
    datapath = connected(sessions, ports=at_port(1, "02:00:00:00:00:01"))
    assert sessions.ports(DPID) == {1: SeenPort("ls1-eth1", is_live=True)}
    parser, ofp = ofproto_v1_3_parser, ofproto_v1_3
    (gone,) = at_port(1, "02:00:00:00:00:01").values()
    sessions.port_changed(parser.OFPPortStatus(datapath, ofp.OFPPR_DELETE, gone))
    assert sessions.ports(DPID) == {}
    sessions.disconnected(datapath)
    sessions.close()
    with pytest.raises(SwitchGone):
        sessions.ports(DPID)
