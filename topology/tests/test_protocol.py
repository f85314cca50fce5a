"""What both ends say to each other, also when one of them is newer."""

import json
from dataclasses import replace
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from topology.protocol import (
    MOST_MISTAKES,
    Allocation,
    Allocations,
    Applied,
    Declined,
    Demand,
    Fault,
    FlowClass,
    Hello,
    HostInterface,
    Repaired,
    parsed_allocations,
    parsed_from_agent,
    to_bytes,
)
from topology.telemetry import EntryTelemetry, StoreBrake, StoreTelemetry, Telemetry

ENTRY = Allocation("urgent/base20", FlowClass.URGENT, "192.0.2.7/32", 470_000_000, 7_000)


NATURAL = st.integers(0, 10**12)
PREFIXES = st.sampled_from(["192.0.2.7/32", "10.0.0.0/8", "2001:db8::/32"])
ENTRIES = st.builds(
    Allocation,
    st.text(),
    st.sampled_from(FlowClass),
    PREFIXES,
    st.integers(1_000, 10**11),
    st.integers(1, 10**6),
    dscp=st.none() | st.integers(0, 63),
    standby_bps=st.none() | st.integers(1, 1_000),
    also=st.lists(PREFIXES).map(tuple),
    lanes=st.text(),
)
COUNTED = st.builds(
    EntryTelemetry, st.text(), *[NATURAL] * 6, fallback=st.sampled_from(["", "loss"]), wants=st.none() | st.booleans()
)
ADDRESSES = st.lists(st.ip_addresses(), max_size=3).map(tuple)
SAID = st.one_of(
    st.builds(Applied, NATURAL),
    st.builds(
        Hello,
        st.text(),
        st.text(),
        st.text(),
        st.none() | NATURAL,
        entries=st.lists(ENTRIES).map(tuple),
        interfaces=st.lists(st.builds(HostInterface, st.text(), ADDRESSES, NATURAL, NATURAL), max_size=3).map(tuple),
    ),
    st.builds(Telemetry, NATURAL, NATURAL, ended=st.lists(COUNTED).map(tuple)),
    st.builds(Declined, NATURAL, NATURAL, st.text()),
    st.builds(Demand, NATURAL, st.text(), st.booleans(), st.booleans()),
    st.builds(Repaired, NATURAL, st.text(), st.sampled_from(Fault), st.text()),
)


@given(message=st.builds(Allocations, NATURAL, st.integers(1, 10**6), st.lists(ENTRIES).map(tuple)))
def test_whatever_a_controller_says_arrives(message):
    assert parsed_allocations(to_bytes(message)) == message


@given(message=SAID)
def test_whatever_an_agent_says_arrives(message):
    assert parsed_from_agent(to_bytes(message)) == message


def test_an_older_end_meets_only_what_is_used():
    told = json.loads(to_bytes(Allocations(7, 3_000, (ENTRY,))))
    assert told.keys() == {"kind", "epoch", "lease_ms", "entries"}
    assert told["entries"][0].keys() == {"name", "flow_class", "dest", "rate_bps", "window_segments"}
    assert json.loads(to_bytes(Allocations(7, 3_000))).keys() == {"kind", "epoch", "lease_ms"}
    assert json.loads(to_bytes(Telemetry(7, 2_000))).keys() == {"kind", "epoch", "lease_left_ms"}


@pytest.mark.parametrize(
    "message",
    [
        Hello("base20", "9.9", "7.0", 3, interfaces=(HostInterface("eth0", (ip_address("192.0.2.7"),), 9000, 10**10),)),
        Applied(3),
        Telemetry(3, 1_000, (EntryTelemetry("a", 1, 1, 0, 0, 0, 0),)),
        Demand(3, "urgent/base20", wants=True, standing_by=False),
    ],
    ids=lambda message: message.kind,
)
def test_a_controller_passes_over_what_a_newer_agent_says_besides(message):
    newer = json.loads(to_bytes(message)) | {"colour": "green"}
    for entry in newer.get("entries", ()):
        entry["taste"] = ["bitter"]
    assert parsed_from_agent(json.dumps(newer).encode()) == message


def test_a_reason_that_only_a_newer_agent_knows_leaves_the_rest_of_what_it_says():
    store = StoreTelemetry("data", 280_000_000, True, 0, 0, StoreBrake.DISK)
    newer = to_bytes(Telemetry(3, 1_000, stores=(store,))).replace(b'"disk"', b'"controller of the array"')
    said = parsed_from_agent(newer)
    assert isinstance(said, Telemetry)
    assert said.stores == (replace(store, brake=StoreBrake.WINDOW),)


def test_a_repair_or_a_fallback_for_a_reason_that_only_a_newer_agent_knows_is_told_all_the_same():
    repaired = to_bytes(Repaired(3, "a", Fault.MISSING, "matches")).replace(b'"missing"', b'"swapped"')
    assert parsed_from_agent(repaired) == Repaired(3, "a", Fault.OTHER, "matches")
    fallen = EntryTelemetry("a", 1, 1, 0, 0, 0, 0, fallback="the card is too hot")
    assert parsed_from_agent(to_bytes(Telemetry(3, 1_000, (fallen,)))) == Telemetry(3, 1_000, (fallen,))


@pytest.mark.parametrize("inside", [False, True])
def test_an_agent_does_not_act_on_a_plan_of_which_it_does_not_know_a_part(inside):
    told = json.loads(to_bytes(Allocations(7, 3_000, (ENTRY,))))
    (told["entries"][0] if inside else told)["only_on_sundays"] = True
    with pytest.raises(ValueError, match="only_on_sundays"):
        parsed_allocations(json.dumps(told).encode())


ALLOCATION = b'{"kind":"hello","host":"a","version":"0","kernel":"6","entries":[{'


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (b'{"kind":"telemetry","epoch":1,"lease_left_ms":1,"entries":[', b"]}"),
        (b'{"kind":"telemetry","epoch":1,"lease_left_ms":1,"ended":[', b"]}"),
        (b'{"kind":"telemetry","epoch":1,"lease_left_ms":1,"stores":[{"senders":[', b"]}]}"),
        (b'{"kind":"hello","host":"a","version":"0","kernel":"6","entries":[', b"]}"),
        (ALLOCATION + b'"circuits":[', b"]}]}"),
        (ALLOCATION + b'"also":[', b"]}]}"),
        (ALLOCATION + b'"sources":[', b"]}]}"),
    ],
)
def test_in_a_list_that_is_full_of_mistakes_only_the_first_is_looked_at(start, end):
    with pytest.raises(ValidationError) as caught:
        parsed_from_agent(start + b",".join([b"{}"] * 1000) + end)
    assert caught.value.error_count() <= MOST_MISTAKES


def test_of_more_mistakes_than_anybody_reads_it_is_said_how_many():
    unknown = b",".join(b'"k%d":0' % number for number in range(1000))
    with pytest.raises(ValueError, match=r"^100\d mistakes$"):
        parsed_from_agent(ALLOCATION + unknown + b"}]}")
