"""Which messages are given to os-ken's parser."""

import pytest

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
