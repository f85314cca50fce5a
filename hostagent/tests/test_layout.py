"""Values of the plan as the kernel part reads them."""

import re
from ipaddress import IPv6Network

from hostagent import layout
from hostagent.kernel import named_image, object_image
from hostagent.plan import MAX_ENTRIES, Match
from hostagent.tests.rig import REPOSITORY


def test_numbers_agree_with_the_shared_header():
    header = (REPOSITORY / "hostagent/bpf/headway.h").read_text()
    defined = dict(re.findall(r"#define (HEADWAY_\w+) (\d+)", header))
    assert int(defined["HEADWAY_MAX_ENTRIES"]) == MAX_ENTRIES
    assert int(defined["HEADWAY_EPOCH_NS"]) == layout.EPOCH_NS


def test_a_match_is_bits_then_ports_in_network_order_then_the_address():
    match = Match(IPv6Network("::ffff:10.1.2.0/120"), dest_port=443, local_port=1)
    expected = (152).to_bytes(4, "little") + b"\x01\xbb\x00\x01" + bytes(10) + b"\xff\xff\x0a\x01\x02\x00"
    assert layout.match_bytes(match) == expected


def test_nobody_is_active_when_the_epoch_is_old():
    counters = layout.Counters(0, 0, 0, epoch_start_ns=10**9, active_now=1, active_before=3, connections=5, rtt_us=50)
    assert counters.active(now_ns=10**9 + layout.EPOCH_NS) == 3
    assert counters.active(now_ns=10**9 + 2 * layout.EPOCH_NS + 1) == 0


def test_a_long_round_trip_lengthens_the_epoch():
    counters = layout.Counters(0, 0, 0, epoch_start_ns=0, active_now=2, active_before=0, connections=2, rtt_us=300_000)
    assert counters.active(now_ns=500_000_000) == 2


def test_the_prebuilt_object_holds_the_placeholder_once():
    image = object_image()
    named = named_image(image, "headway1")
    assert len(named) == len(image)
    assert b"headway1\0\0\0\0\0\0\0\0" in named
