"""Promises on a disk: both times, a deadline for either, a disk that is not promised twice, what is refused by it."""

import pytest

from controller.errors import NotAllowed
from controller.plan.admission import OfferKind, Refused
from controller.plan.announcements import Announcement
from controller.plan.keys import StorePlace
from controller.state.lateness import late_promises
from controller.tests.fakes import FakeSite, image, ready_site
from controller.tests.test_known_stores import store, tells
from topology.telemetry import EntryTelemetry, Telemetry

S = 1_000_000
MB = 10**6
SIZE = 500 * MB


@pytest.fixture
def site():
    """A site whose receiver has a disk of 280 Mbit/s, as its operator says, and room for 75 MB."""
    found = ready_site()
    tells(found, store(3, waits=False, rate_bps=280 * MB, room_bytes=75 * MB))
    return found


def announced(site, name="one", **changes):
    fields = {"size_bytes": SIZE, "senders": ("base20",)} | changes
    return site.use_cases.announce(image(name, **fields)).value


def delivers(site, flow, size_bytes):
    """Let the telemetry of a sender say that so much of a flow has arrived."""
    seen = EntryTelemetry(flow, 1, 1, size_bytes, size_bytes // 1448, 0, 180_000, counted_since_ns=1)
    site.reports.host_telemetry(flow.partition("/")[2], Telemetry(0, 1_000, entries=(seen,)))


def in_s(promise):
    return (promise.promised_us - promise.announced_us) / S, (promise.stored_us - promise.announced_us) / S


def test_a_promise_says_when_all_is_across_and_when_it_is_stored(site):
    promise = announced(site)
    across_s, stored_s = in_s(promise)
    overhead_s = 1.1  # handshake, hand-over, confirmation; and before the disk begins to write
    assert across_s == pytest.approx((SIZE - 75 * MB) * 8 / 280e6, abs=overhead_s)
    assert stored_s == pytest.approx(SIZE * 8 / 280e6, abs=overhead_s)
    (rate,) = promise.rates
    line_bps = 280e6 * SIZE / (SIZE - 75 * MB) * 1538 / 1448
    assert rate.rate_bps == pytest.approx(line_bps, rel=0.02), "eq. (4): the lowest that has it as soon"


def test_where_nobody_knows_what_is_stored_only_the_network_is_promised():
    promise = announced(ready_site())
    assert (promise.store, promise.stored_us, promise.drains) == (None, None, ())


def test_a_disk_is_not_promised_twice(site):
    first, second = announced(site, "one"), announced(site, "two", senders=("base21",))
    assert in_s(second)[1] > 1.9 * in_s(first)[1] - 1, "the second has what the first leaves of the disk"
    with site.state.changed:
        calendar = site.state.wished.ledger.calendar
        place = StorePlace("arch", "data")
        moments = [part.start_us for one in (first, second) for part in one.drains]
        assert all(calendar.free_bps(place, at_us) >= 0 for at_us in moments)


def test_a_disk_that_still_writes_what_is_across_is_promised_to_nobody_else_meanwhile():
    site = ready_site()
    tells(site, store(3, waits=False, rate_bps=100 * MB, room_bytes=5_000 * MB))
    first = announced(site, size_bytes=4_000 * MB)
    across_s, stored_s = in_s(first)
    assert stored_s > 3 * across_s + 60, "it lies in the page cache"
    site.clock.now_us = first.stored_us - 60 * S
    site.use_cases.tick()
    tells(site, store(100, rate_bps=100 * MB, room_bytes=4_200 * MB))
    second = announced(site, "two", senders=("base21",), size_bytes=4_000 * MB)
    assert second.drains[0].start_us >= first.stored_us


def test_a_deadline_may_be_for_either(site):
    across_s, stored_s = in_s(announced(site, "one"))
    site.use_cases.forget("one").saved.result()
    between_us = round((across_s + stored_s) / 2 * S)
    met = announced(site, "two", deadline_us=between_us)
    assert isinstance(met, Announcement)
    assert met.promised_us - met.announced_us <= between_us
    site.use_cases.forget("two").saved.result()
    refused = announced(site, "three", deadline_us=between_us, is_stored_by=True)
    assert isinstance(refused, Refused)
    late = announced(site, "four", deadline_us=round(stored_s * S) + S, is_stored_by=True)
    assert late.stored_us - late.announced_us <= round(stored_s * S) + S


def test_a_refusal_names_the_disk_and_its_rate_and_its_offer_is_granted(site):
    refused = announced(site, deadline_us=8 * S)
    assert isinstance(refused, Refused)
    assert refused.resource == "store:arch:data"
    assert refused.free_bps == pytest.approx(280e6 * 1538 / 1448, rel=0.01)
    assert refused.asked_bps > refused.free_bps
    offer = next(one for one in refused.offers if one.kind is OfferKind.LATER_DEADLINE)
    granted = announced(site, deadline_us=offer.end_us - offer.start_us)
    assert isinstance(granted, Announcement)


def test_what_no_network_carries_in_time_is_not_blamed_on_the_disk(site):
    refused = announced(site, deadline_us=1 * S)
    assert refused.resource != "store:arch:data"


def test_a_deadline_for_a_disk_that_nobody_knows_makes_no_sense():
    with pytest.raises(NotAllowed, match="nobody knows what arch stores"):
        announced(ready_site(), deadline_us=60 * S, is_stored_by=True)


def test_a_disk_is_not_promised_twice_across_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    before = ready_site(database=url)
    disk = store(3, waits=False, rate_bps=280 * MB, room_bytes=75 * MB)
    tells(before, disk)
    kept = before.use_cases.announce(image("one", size_bytes=SIZE, senders=("base20",)))
    kept.saved.result()
    before.database.close()
    after = FakeSite(database=url, clock=before.clock)
    after.attach_all()
    after.converge()
    tells(after, disk)
    with after.state.changed:
        assert after.state.wished.ledger.announcements["one"] == kept.value
    second = announced(after, "two", senders=("base21",))
    assert second.drains[0].start_us >= kept.value.drains[-1].end_us - 2 * S
    after.database.close()


def test_a_promise_that_knew_the_disk_is_not_held_to_less_while_its_room_fills(site):
    promise = announced(site)
    site.converge()
    site.demand("base20")
    site.clock.now_us = promise.rates[0].start_us
    tells(site, store(280, rate_bps=280 * MB, room_bytes=74 * MB))
    (entry,) = [e for e in site.value.desired.plan.entries if e.flow.name == "one/base20"]
    wire_bps = entry.frame_bps * 1538 // 1514
    assert wire_bps >= promise.rates[0].rate_bps - 2_000
    late = late_promises(site.state.site, site.value, site.clock.instant())
    assert late == {}


def test_of_two_promises_to_one_disk_the_first_is_sent_alone_and_then_the_second(site):
    announced(site, "one")
    announced(site, "two", senders=("base21",))
    site.converge()
    site.demand("base20")
    site.demand("base21")
    tells(site, store(280, rate_bps=280 * MB, room_bytes=74 * MB))

    def planned_mbit(name):
        return next(e.payload_bps / MB for e in site.value.desired.plan.entries if e.flow.name == name)

    assert planned_mbit("one/base20") > 280
    assert planned_mbit("two/base21") < 1.2, "the disk is the first's until that is stored"
    site.use_cases.forget("one").saved.result()
    site.use_cases.tick()
    assert planned_mbit("two/base21") > 265, "all that the disk drains, but for what other classes are guaranteed"


def test_the_second_of_two_promises_to_a_disk_waits_until_the_first_is_stored_and_is_due_then(site):
    first, second = announced(site, "one"), announced(site, "two", senders=("base21",))
    assert second.rates[0].start_us >= first.stored_us
    line_bps = 280e6 * SIZE / (SIZE - 75 * MB) * 1538 / 1448
    assert [rate.rate_bps for rate in second.rates] == [pytest.approx(line_bps, rel=0.02)]
    site.converge()
    site.demand("base20")
    site.demand("base21")
    delivers(site, "one/base20", SIZE)
    site.demand("base20", wants=False)

    def second_mbit():
        site.use_cases.tick()
        site.converge()
        return next(e.payload_bps / MB for e in site.value.desired.plan.entries if e.flow.name == "two/base21")

    site.clock.now_us = first.promised_us
    assert second_mbit() < 1.2, "the first is across, and the disk still writes it"
    site.clock.now_us = second.rates[0].start_us
    assert second_mbit() > 280


def test_a_promise_that_is_asked_for_while_the_room_is_full_has_it_in_its_turn(site):
    first = announced(site, "one")
    tells(site, store(280, rate_bps=280 * MB, room_bytes=0, most_bytes=75 * MB))
    second = announced(site, "two", senders=("base21",))
    assert [rate.rate_bps for rate in second.rates] == [pytest.approx(first.rates[0].rate_bps, rel=0.01)]
