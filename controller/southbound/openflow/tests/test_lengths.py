"""Which messages are given to os-ken's parser."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.ofproto: they import each other
from os_ken.ofproto.ofproto_parser import msg

from controller.southbound.openflow.lengths import Malformed, check_message
from controller.southbound.openflow.tests.played_switch import PlayedDatapath
from controller.southbound.openflow.tests.switch_messages import messages_of_switches

OTHERS = b"\x04\x13\0\x18\0\0\0\0\0\3\0\0\0\0\0\0" + bytes(8)  # the statistics of tables


def cut(message, at, length):
    """A message in which a length says something else."""
    return message[:at] + length.to_bytes(2, "big") + message[at + 2 :]


@pytest.fixture(scope="module")
def messages():
    """What a switch sends."""
    return messages_of_switches(PlayedDatapath(None))


def test_what_a_switch_sends_is_taken(messages):
    for message in messages:
        check_message(message)
    check_message(bytes.fromhex("04000010000000010001000800000010"))  # hello with a bitmap
    check_message(bytes.fromhex("0100000800000001"))  # hello of OpenFlow 1.0


@pytest.mark.parametrize(("which", "at"), [(1, 16), (1, 16 + 48 + 2), (3, 16), (3, 24 + 2), (4, 16), (4, 24)])
@pytest.mark.parametrize("length", [0, 1, 65_535])
def test_a_part_of_no_length_or_beyond_the_end_is_refused(messages, which, at, length):
    with pytest.raises(Malformed):
        check_message(cut(messages[which], at, length))


def test_an_element_of_a_hello_that_would_be_padded_does_not_hide_one_of_no_length():
    with pytest.raises(Malformed, match="a part of 0 bytes at byte 12"):
        check_message(bytes.fromhex("04000010000000010000000409000000"))


@pytest.mark.parametrize(
    "message", [b"", bytes(7), b"\x05\x13" + bytes(14), b"\x04\x0e" + bytes(62), OTHERS, b"\x04\x13\0\x0a" + bytes(6)]
)
def test_what_is_not_a_switch_s_to_send_is_refused(message):
    with pytest.raises(Malformed):
        check_message(message)


# Statistics of a flow: behind a match of 32 bytes a meter, and actions: a queue, a field that is set, an output.
METER, QUEUE, FIELD, OUTPUT = 96, 112, 120, 136


@pytest.mark.parametrize(
    ("at", "length", "what"),
    [
        (METER, 40, "an instruction of type 6 of 40 bytes"),
        (METER, 56, "an instruction of type 6 of 56 bytes"),
        (QUEUE, 24, "an action of type 21 of 24 bytes"),
        (QUEUE, 40, "an action of type 21 of 40 bytes"),
        (OUTPUT, 8, "an action of type 0 of 8 bytes"),
    ],
)
def test_a_part_that_says_another_size_than_that_of_its_type_is_refused(messages, at, length, what):
    with pytest.raises(Malformed, match=what):
        check_message(cut(messages[1], at + 2, length))


def test_what_hides_in_an_instruction_that_os_ken_takes_for_shorter_is_refused():
    # Found by mininet-tests/run fuzz: behind the first 8 bytes of the meter os-ken met an action of no length.
    head = bytes.fromhex("0413009800000000000100000000000000880000") + bytes(44)
    match = bytes.fromhex("0001001c80000a02080080000c02100581001908" + "0a000000ffffff00") + bytes(4)
    meter = bytes.fromhex("00060028000003e8" + "000400300000000000150008000000010019000010801001" + "2e00000000000000")
    with pytest.raises(Malformed, match="an instruction of type 6 of 40 bytes"):
        check_message(head + match + meter + bytes.fromhex("0000001000000003ffe5000000000000"))


def flow_of(steps):
    """Statistics of a flow that matches everything, with instructions."""
    flow = (48 + 8 + len(steps)).to_bytes(2, "big") + bytes(46) + b"\0\1\0\4" + bytes(4) + steps
    return b"\4\x13" + (16 + len(flow)).to_bytes(2, "big") + bytes(4) + b"\0\1" + bytes(6) + flow


def with_actions(kind, actions):
    """An instruction of a type, with actions."""
    return kind.to_bytes(2, "big") + (8 + len(actions)).to_bytes(2, "big") + bytes(4) + actions


def tracked(*actions):
    """Statistics of a flow whose only action is Open vSwitch's ``ct`` with some actions."""
    inside = b"".join(actions)
    ct = (
        b"\xff\xff"
        + (24 + len(inside)).to_bytes(2, "big")
        + bytes.fromhex("000023200023")
        + bytes(10)
        + b"\4\0"
        + bytes(2)
    )
    return flow_of(with_actions(4, ct + inside))


def test_actions_of_connection_tracking_are_looked_at_too():
    field, queue = bytes.fromhex("0019001080001001" + "2e00000000000000"), bytes.fromhex("0015000800000001")
    message = tracked(field, queue)
    check_message(message)
    (flow,) = parsed(message).body
    assert [action.len for action in flow.instructions[0].actions[0].actions] == [16, 8]
    with pytest.raises(Malformed, match="a part of 0 bytes"):
        check_message(tracked(field, b"\0\x19\0\0" + bytes(4)))
    with pytest.raises(Malformed, match="an action of type 21 of 16 bytes"):
        check_message(tracked(b"\0\x15\0\x10" + bytes(12)))
    ct = tracked()[-24:]
    with pytest.raises(Malformed, match="connection tracking in connection tracking"):
        check_message(tracked(ct))


def parsed(message):
    """What os-ken makes of a message."""
    return msg(PlayedDatapath(None), 4, message[1], len(message), 0, message)


def part_of(types, inside):
    """Parts of a type and a size, with parts in them, cut or filled up."""
    return st.builds(
        lambda kind, size, rest: (
            kind.to_bytes(2, "big") + size.to_bytes(2, "big") + rest.ljust(size, b"\0")[: size - 4]
        ),
        st.sampled_from(types),
        st.sampled_from([8, 16, 24]),
        st.lists(inside, max_size=2).map(lambda parts: bytes(4) + b"".join(parts)),
    )


def parts(*types):
    return st.lists(part_of(types, part_of(types, st.just(b""))), max_size=3)


@given(parts(4, 6), parts(0, 21, 25), st.sampled_from([4, 6]))
@settings(max_examples=300)
def test_of_what_is_taken_os_ken_reads_each_part_where_it_is(before, actions, kind):
    message = flow_of(b"".join(before) + with_actions(kind, b"".join(actions)))
    try:
        check_message(message)
    except Malformed:
        return
    try:
        (found,) = parsed(message).body
    except Exception:  # noqa: BLE001 - as of every message that cannot be read: it came to an end
        return
    assert [step.type for step in found.instructions] == [part[1] for part in before] + [kind]
    if kind == 4:
        assert [action.type for action in found.instructions[-1].actions] == [part[1] for part in actions]
