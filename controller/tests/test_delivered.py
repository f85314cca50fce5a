"""Promised against delivered: what is known of an announcement in each of its states, and what of it is kept."""

from dataclasses import replace

import pytest

from controller.announced import Announced, state_at
from controller.database import EndedQuery
from controller.errors import NotKnown, Taken
from controller.plan.announced_flows import AWAKE_BPS
from controller.plan.announcement_states import AnnouncementState
from controller.plan.calendar import Calendar
from controller.plan.deliveries import KEEP_US, LAST_COUNT_US, total_bytes
from controller.plan.ended import Ended, EndedAnnouncement, UsedKey
from controller.plan.unsaved import Unsaved
from controller.plan.unwritten import Unwritten
from controller.state.progress import Hindrance
from controller.tests.fakes import FakeSite, image, ready_site
from controller.work.retention import Retention
from topology.telemetry import EntryTelemetry, Telemetry

S_US = 1_000_000


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def entry(flow, delivered, **more):
    """What a host counts of a flow."""
    return EntryTelemetry(flow, 1, 1, delivered, delivered // 1448, 0, 180_000, **{"counted_since_ns": 1, **more})


def tell(site, host, *entries, ended=(), lease_left_ms=1000, at_us=0):
    """Let a host tell what it has counted."""
    epoch = site.value.reported.hosts[host].sent_epoch
    site.reports.host_telemetry(host, Telemetry(epoch, lease_left_ms, entries, ended, at_us=at_us))


def passed(site, time_us):
    """Let time pass."""
    site.clock.now_us += time_us


def announced(site, **more):
    """Announce an image from one host, and return it as it is known."""
    asked = replace(image(), senders=("base20",), **more)
    return site.announce(asked)


def sending(site):
    """An image that its host wants to send."""
    announced(site)
    site.converge()
    site.demand("base20")
    site.converge()


def read(site):
    """What there is to read."""
    return Announced(site.state, site.database)


def state(site):
    """How the image stands now."""
    return state_at(read(site).one("image"), site.clock())


def planned(site, flow):
    """What a flow is planned for, payload; and what is free for the flows of its class beside it."""
    entries = {entry.flow.name: entry.payload_bps for entry in site.value.desired.plan.entries}
    return entries[flow], sum(bps for name, bps in entries.items() if name != flow)


def test_what_has_delivered_all_keeps_no_more_than_a_connection_awake_and_others_have_the_rest(site):
    known = announced(site)
    for delivered in (known.size_bytes - 1, known.size_bytes):
        tell(site, "base20", entry("image/base20", delivered, wants=False, standing_by=True))
        site.converge()
        kept_bps, others_bps = planned(site, "image/base20")
        if delivered < known.size_bytes:
            stood_by_bps, others_had_bps = kept_bps, others_bps
    assert stood_by_bps > 18_000_000, "what the end of a flight has lost may have to be sent again"
    assert 0.9 * AWAKE_BPS < kept_bps <= AWAKE_BPS
    assert others_bps > others_had_bps + 17_000_000


def test_what_has_delivered_all_and_sends_more_has_its_rate_again(site):
    known = announced(site)
    tell(site, "base20", entry("image/base20", known.size_bytes, wants=False, standing_by=True))
    site.converge()
    site.demand("base20")
    site.converge()
    assert planned(site, "image/base20")[0] > 400_000_000


# The states that the author of a script sees.


def test_an_announcement_is_promised_then_under_way_then_arrived(site):
    known = announced(site)
    site.converge()
    seen = [state(site)]
    for delivered in (0, known.size_bytes // 2, known.size_bytes):
        tell(site, "base20", entry("image/base20", delivered))
        seen.append(state(site))
    assert seen == ["promised", "promised", "under-way", "arrived"]


def test_it_finishes_when_its_last_byte_was_confirmed_and_not_when_that_was_told(site):
    known = announced(site)
    passed(site, 5 * S_US)
    tell(site, "base20", entry("image/base20", known.size_bytes, delivered_ago_ms=700))
    passed(site, 5 * S_US)
    tell(site, "base20", entry("image/base20", known.size_bytes + 9, delivered_ago_ms=0))
    finished_us = read(site).one("image").finished_us
    assert finished_us == known.announced_us + 4_300_000


def test_what_has_not_arrived_by_the_promise_is_late(site):
    known = announced(site)
    tell(site, "base20", entry("image/base20", known.size_bytes - 1))
    passed(site, known.promised_us - known.announced_us)
    assert state(site) is AnnouncementState.UNDER_WAY
    passed(site, 1)
    assert state(site) is AnnouncementState.LATE


@pytest.mark.parametrize(("missing", "state_then"), [(0, AnnouncementState.ARRIVED), (1, AnnouncementState.RELEASED)])
def test_what_was_released_is_kept_with_what_had_arrived(site, missing, state_then):
    known = announced(site)
    tell(site, "base20", entry("image/base20", known.size_bytes - missing))
    site.use_cases.forget("image").saved.result()
    ended = read(site).one("image")
    assert (ended.state, total_bytes(ended.announcement.delivered)) == (state_then, known.size_bytes - missing)


def test_what_nobody_releases_lapses_and_is_said_with_what_had_arrived(site):
    known = announced(site)
    tell(site, "base20", entry("image/base20", 5))
    passed(site, known.lapses_us - known.announced_us)
    site.use_cases.tick()
    assert read(site).one("image").state is AnnouncementState.LAPSED
    (event,) = (e for e in site.state.events.since(0).events if e.name == "announcement.lapsed")
    assert (event.fields["delivered_bytes"], event.fields["bytes"]) == (5, known.size_bytes)


def test_the_last_count_comes_after_the_release_and_belongs_to_it(site):
    known = announced(site)
    tell(site, "base20", entry("image/base20", 5))
    site.use_cases.forget("image").saved.result()
    tell(site, "base20", ended=(entry("image/base20", known.size_bytes),))
    ended = read(site).one("image")
    assert (ended.state, [one.is_last for one in ended.announcement.delivered]) == ("arrived", [True])
    site.use_cases.tick()
    (kept,) = site.database.ended(EndedQuery(announcement_id="image"))
    assert kept == ended


def test_the_count_of_one_that_was_released_is_not_the_next_ones_of_its_name(site):
    announced(site)
    tell(site, "base20", entry("image/base20", 5))
    site.use_cases.forget("image").saved.result()
    announced(site)
    tell(site, "base20", entry("image/base20", 12))
    assert total_bytes(read(site).one("image").delivered) == 7
    tell(site, "base20", entry("image/base20", 20, counted_since_ns=2), ended=(entry("image/base20", 15),))
    known = read(site).one("image")
    assert total_bytes(known.delivered) == 7 + 3 + 20


@pytest.mark.parametrize("is_ended", [False, True])
def test_what_another_host_says_of_a_flow_is_no_count_of_it(site, is_ended):
    known = announced(site)
    site.converge()
    count = entry("image/base20", known.size_bytes)
    tell(site, "base21", *(() if is_ended else (count,)), ended=(count,) if is_ended else ())
    assert (state(site), total_bytes(read(site).one("image").delivered)) == ("promised", 0)


def test_what_another_host_says_of_a_flow_that_has_ended_is_no_count_of_it(site):
    known = announced(site)
    tell(site, "base20", entry("image/base20", 5))
    site.use_cases.forget("image").saved.result()
    tell(site, "base21", ended=(entry("image/base20", known.size_bytes),))
    ended = read(site).one("image")
    assert (ended.state, [one.is_last for one in ended.announcement.delivered]) == ("released", [False])


# Agents and controllers that are started again.


def test_an_agent_that_is_started_again_counts_on_and_what_it_had_not_told_is_not_known(site):
    announced(site)
    tell(site, "base20", entry("image/base20", 1_000))
    tell(site, "base20", entry("image/base20", 300, counted_since_ns=2))
    tell(site, "base20", entry("image/base20", 1_500, counted_since_ns=2))
    (count,) = read(site).one("image").delivered
    assert (count.payload_bytes, count.is_least) == (2_500, True)


def test_an_entry_that_was_out_of_the_plan_for_a_time_is_counted_exactly(site):
    announced(site)
    tell(site, "base20", entry("image/base20", 1_000))
    tell(site, "base20", ended=(entry("image/base20", 1_200),))
    tell(site, "base20", entry("image/base20", 300, counted_since_ns=2), ended=(entry("image/base20", 1_200),))
    (count,) = read(site).one("image").delivered
    assert (count.payload_bytes, count.is_least) == (1_500, False)


def test_a_controller_that_is_started_again_loses_nothing_that_was_delivered(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    site = ready_site(database=url)
    announced(site)
    for since_ns, delivered in ((1, 1_000), (2, 400), (2, 700)):
        tell(site, "base20", entry("image/base20", delivered, counted_since_ns=since_ns))
        site.use_cases.tick()
    site.database.close()
    again = FakeSite(database=url, clock=site.clock)
    again.attach("base20")
    tell(again, "base20", entry("image/base20", 900, counted_since_ns=2))
    (count,) = read(again).one("image").delivered
    assert count.payload_bytes == 1_900
    again.database.close()


# Kept for thirty days.


def test_what_has_ended_is_read_from_the_database_for_thirty_days(site):
    announced(site)
    site.use_cases.forget("image").saved.result()
    passed(site, LAST_COUNT_US)
    site.use_cases.tick()
    assert site.value.wished.ledger.ended.lately == {}, "not in memory for ever"
    assert isinstance(read(site).one("image"), EndedAnnouncement)
    passed(site, KEEP_US)
    Retention(site.state, site.database, None).step()
    with pytest.raises(NotKnown):
        read(site).one("image")


def test_pages_have_those_in_the_plan_and_those_that_have_ended_each_once_in_order(site):
    for number in range(6):
        announced(site, announcement_id=f"a{number}")
        if number % 2:
            site.use_cases.forget(f"a{number}").saved.result()
        if number == 3:
            passed(site, LAST_COUNT_US)
            site.use_cases.tick()
    found, after = [], 0
    while page := read(site).page(after, 2, ())[0]:
        found += page
        after = max(getattr(known, "announcement", known).sequence for known in page)
    names = [getattr(known, "announcement", known).announcement_id for known in found]
    assert names == sorted(set(names))
    assert {f"a{n}" for n in (1, 3, 5)} <= set(names)
    released, _ = read(site).page(0, 10, (AnnouncementState.RELEASED,))
    assert {known.announcement.announcement_id for known in released} >= {"a1", "a3", "a5"}


def test_a_key_is_known_for_thirty_days_whichever_came_before_it():
    book = Ended({}, Unsaved(), Unwritten(Calendar({})))
    ages = {"old": 0, "older": -5, "new": 7}
    book.restore(
        [UsedKey(key, number, KEEP_US + age) for number, (key, age) in enumerate(ages.items())], 3, (), 2 * KEEP_US
    )
    book.forget_old(2 * KEEP_US)
    assert [key for key in ages if book.repeated("", key, "")] == ["new"]


# Asked again.


def test_the_same_again_is_the_same_announcement_and_books_nothing_more(site):
    first = site.use_cases.announce(image())
    again = site.use_cases.announce(image())
    assert (again.value, again.is_repeated, first.is_repeated) == (first.value, True, False)


@pytest.mark.parametrize("change", [{"size_bytes": 5}, {"deadline_us": 60 * S_US}, {"senders": ("base20",)}])
def test_the_same_name_for_something_else_is_taken(site, change):
    site.announce(image())
    with pytest.raises(Taken):
        site.use_cases.announce(replace(image(), **change))


@pytest.mark.parametrize("later_us", [0, LAST_COUNT_US])
def test_a_key_means_the_same_announcement_after_it_has_ended_too(site, later_us):
    asked = replace(image(), key="night-1", is_named=False)
    first = site.announce(asked)
    site.use_cases.forget("image").saved.result()
    passed(site, later_us)
    site.use_cases.tick()
    again = site.use_cases.announce(replace(asked, announcement_id="made-up"))
    value = again.value if later_us == 0 else read(site).repeated(again.value, asked.fingerprint)
    assert value.announcement.sequence == first.sequence
    with pytest.raises(Taken):
        read(site).repeated(again.value, "another") if later_us else site.use_cases.announce(
            replace(asked, size_bytes=5)
        )


# What is in the way.


@pytest.mark.parametrize(
    ("more", "hindrance"),
    [
        ({"fallback": "loss"}, Hindrance.FALLBACK),
        ({"wants": False}, Hindrance.NOTHING_TO_SEND),
        ({"wants": True, "busy_ms": 900, "receiver_limited_ms": 800}, Hindrance.RECEIVER_WINDOW),
        ({"wants": True, "busy_ms": 900, "buffer_limited_ms": 800}, Hindrance.SEND_BUFFER),
        ({"wants": True, "busy_ms": 900, "sent_segments": 5_100, "retransmitted_segments": 5_000}, Hindrance.LOSS),
        ({"wants": True, "busy_ms": 900}, Hindrance.NOT_KNOWN),
    ],
)
def test_what_is_in_the_way_is_said(site, more, hindrance):
    sending(site)
    tell(site, "base20", entry("image/base20", 0, wants=True))
    passed(site, S_US)
    tell(site, "base20", replace(entry("image/base20", 0, wants=True), **more))
    seen = read(site).progress([read(site).one("image")])["image/base20"]
    assert (seen.hindrance, seen.delivered_bps, seen.since_us) == (
        hindrance,
        0,
        site.clock() - (S_US if hindrance is Hindrance.NOT_KNOWN else 0),
    )


def test_what_is_in_the_way_is_so_since_it_was_first_seen(site):
    sending(site)
    first_us = site.clock()
    for _ in range(3):
        tell(site, "base20", entry("image/base20", 0, wants=True, fallback="loss"))
        passed(site, S_US)
    assert site.reports.view().hosts["base20"].delivers("image/base20", 0).since_us == first_us


def test_a_host_whose_lease_is_over_is_said_to_have_none(site):
    sending(site)
    tell(site, "base20", entry("image/base20", 0, wants=True), lease_left_ms=0)
    assert site.reports.view().hosts["base20"].delivers("image/base20", 0).hindrance is Hindrance.NO_LEASE


def test_nothing_is_in_the_way_of_what_has_its_rate(site):
    sending(site)
    (granted,) = (e for e in site.value.reported.hosts["base20"].sent if e.flow.name == "image/base20")
    for second in range(2):
        tell(site, "base20", entry("image/base20", second * granted.payload_bps // 8, wants=True))
        passed(site, S_US)
    seen = site.reports.view().hosts["base20"].delivers("image/base20", 0)
    assert (seen.hindrance, seen.delivered_bps) == (None, granted.payload_bps // 8 * 8)


def test_what_was_delivered_while_its_agent_was_away_is_no_rate_of_the_second_after(site):
    sending(site)
    tell(site, "base20", entry("image/base20", 1_000_000, wants=True))
    site.reports.host_down("base20")
    passed(site, 60 * S_US)
    site.attach("base20")
    for delivered_bytes, delivered_bps in ((600_000_000, 0), (610_000_000, 80_000_000)):
        passed(site, S_US)
        tell(site, "base20", entry("image/base20", delivered_bytes, wants=True))
        assert site.reports.view().hosts["base20"].delivers("image/base20", 0).delivered_bps == delivered_bps


def test_without_its_agent_nothing_is_delivered_as_far_as_anybody_knows(site):
    announced(site)
    site.converge()
    tell(site, "base20", entry("image/base20", 5))
    passed(site, S_US)
    site.reports.host_down("base20")
    went_us = site.clock()
    passed(site, S_US)
    seen = read(site).progress([read(site).one("image")])["image/base20"]
    assert (seen.hindrance, seen.since_us, seen.delivered_bps) == (Hindrance.NO_AGENT, went_us, 0)


def test_a_fallback_is_an_event_and_an_alarm_until_it_is_over(site):
    announced(site)
    site.converge()
    said = []
    for fallback in ("", "loss", "loss", ""):
        tell(site, "base20", entry("image/base20", 5, fallback=fallback))
        dpids = frozenset(switch.dpid for switch in site.state.site.network.switches)
        said.append(any("image/base20 runs its own" in str(why) for why in site.reports.troubles(dpids)))
    assert said == [False, True, True, False]
    begun, over = [e for e in site.state.events.since(0).events if "fallback" in e.name]
    assert (begun.name, begun.fields["why"], over.name) == ("host.fallback", "loss", "host.fallback_over")
