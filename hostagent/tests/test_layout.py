"""Values of the plan as the kernel part reads them."""

import re
from ipaddress import IPv6Network

from hostagent.kernel import layout
from hostagent.kernel.kernel import named_image, object_image
from hostagent.kernel.plan import MAX_ENTRIES, Match
from hostagent.tests.rig import REPOSITORY


def test_numbers_agree_with_the_shared_header():
    header = (REPOSITORY / "hostagent/bpf/headway.h").read_text()
    defined = dict(re.findall(r"#define (HEADWAY_\w+) (\d+)", header))
    assert int(defined["HEADWAY_MAX_ENTRIES"]) == MAX_ENTRIES


def test_a_match_is_bits_then_ports_in_network_order_then_the_address():
    match = Match(IPv6Network("::ffff:10.1.2.0/120"), dest_port=443, local_port=1)
    expected = (152).to_bytes(4, "little") + b"\x01\xbb\x00\x01" + bytes(10) + b"\xff\xff\x0a\x01\x02\x00"
    assert layout.match_bytes(match) == expected


def test_the_greedy_and_the_lesser_share_an_allocation():
    data = (7).to_bytes(8, "little") + bytes(16) + b"".join(n.to_bytes(4, "little") for n in (3, 1, 9, 180_000))
    counters = layout.counters(data.ljust(len(layout.ZERO_COUNTERS), b"\0"))
    assert (counters.delivered_bytes, counters.active, counters.connections, counters.rtt_us) == (7, 4, 9, 180_000)


def test_the_prebuilt_object_holds_the_placeholder_once():
    image = object_image()
    named = named_image(image, "headway1")
    assert len(named) == len(image)
    assert b"headway1\0\0\0\0\0\0\0\0" in named
