"""Times as people write them, at the edges of days and of daylight saving time. Pure."""

import os
import time
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from apps.cli import shown, times
from topology.units import instant_us, shown_time

SANTIAGO, BERLIN = ZoneInfo("America/Santiago"), ZoneInfo("Europe/Berlin")


def at(text, where=SANTIAGO, now="2026-11-21T12:00:00-03:00"):
    """A time that somebody writes, as RFC 3339."""
    return shown_time(times.local_instant_us(text, where, instant_us(now)))


def last(text, now):
    """A time that somebody writes in Berlin who means the last one, as RFC 3339."""
    now_us = instant_us(now)
    return shown_time(times.local_instant_us(text, BERLIN, now_us, times.day_before_us(now_us, BERLIN)))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("now", "2026-11-21T15:00:00Z"),
        ("22:00", "2026-11-22T01:00:00Z"),
        ("11:59", "2026-11-22T14:59:00Z"),
        ("12:00", "2026-11-22T15:00:00Z"),
        ("12:00:01", "2026-11-21T15:00:01Z"),
        ("today 11:00", "2026-11-21T14:00:00Z"),
        ("tomorrow 06:30", "2026-11-22T09:30:00Z"),
        ("tomorrow 23:00", "2026-11-23T02:00:00Z"),
        ("2026-12-24 22:00", "2026-12-25T01:00:00Z"),
        ("2026-12-24T22:00", "2026-12-25T01:00:00Z"),
        ("2026-12-24T22:00:00+01:00", "2026-12-24T21:00:00Z"),
        ("2026-12-24T22:00:00.5Z", "2026-12-24T22:00:00.500000Z"),
    ],
)
def test_each_form_means_one_instant(written, meant):
    assert at(written) == meant


def test_an_end_without_a_date_is_the_next_after_the_start_but_tomorrow_is_as_seen_from_now():
    now, start = instant_us("2026-11-21T12:00:00-03:00"), instant_us("2026-11-25T22:00:00-03:00")
    assert shown_time(times.local_instant_us("08:00", SANTIAGO, now, start)) == "2026-11-26T11:00:00Z"
    assert shown_time(times.local_instant_us("tomorrow 08:00", SANTIAGO, now, start)) == "2026-11-22T11:00:00Z"


def test_tomorrow_is_the_zones_own():
    assert at("tomorrow 06:30", BERLIN, "2026-11-21T23:30:00Z") == "2026-11-23T05:30:00Z"


@pytest.mark.parametrize(
    "text", ["", "later", "25:00", "22", "2026-13-01 22:00", "2026-02-30T22:00:00Z", "10pm", "²2:00"]
)
def test_what_is_no_time_is_refused_with_examples(text):
    with pytest.raises(ValueError, match="tomorrow 06:30"):
        at(text)


def test_a_time_that_comes_twice_is_refused_with_both():
    with pytest.raises(ValueError, match="comes twice") as error:
        at("2026-10-25 02:30", BERLIN)
    for choice in ("2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"):
        assert choice in str(error.value)
        assert at(choice, BERLIN)


def test_a_time_that_does_not_come_is_refused_with_its_neighbours():
    with pytest.raises(ValueError, match="does not come") as error:
        at("2027-03-28 02:30", BERLIN)
    for choice in ("2027-03-28T01:30:00+01:00", "2027-03-28T03:30:00+02:00"):
        assert choice in str(error.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-10-25 01:59", "2026-10-24T23:59:00Z"),
        ("2026-10-25 03:00", "2026-10-25T02:00:00Z"),
        ("2027-03-28 01:59", "2027-03-28T00:59:00Z"),
        ("2027-03-28 03:00", "2027-03-28T01:00:00Z"),
    ],
)
def test_the_minutes_beside_a_change_of_the_clocks_are_good(written, meant):
    assert at(written, BERLIN) == meant


def test_the_next_time_is_found_over_a_change_of_the_clocks():
    assert at("22:00", BERLIN, "2026-10-24T20:30:00Z") == "2026-10-25T21:00:00Z"


@pytest.mark.parametrize(
    ("written", "now", "meant"),
    [
        ("11:00", "2026-10-25T10:30:00+01:00", "2026-10-24T09:00:00Z"),
        ("10:00", "2026-10-25T10:30:00+01:00", "2026-10-25T09:00:00Z"),
        ("10:00", "2026-03-29T10:30:00+02:00", "2026-03-29T08:00:00Z"),
        ("11:00", "2026-03-29T10:30:00+02:00", "2026-03-28T10:00:00Z"),
        ("10:30", "2026-11-21T10:30:00+01:00", "2026-11-21T09:30:00Z"),
        ("02:15", "2026-10-26T02:30:00+01:00", "2026-10-26T01:15:00Z"),
        ("02:15", "2026-03-30T02:30:00+02:00", "2026-03-30T00:15:00Z"),
    ],
)
def test_the_last_time_is_found_over_a_change_of_the_clocks(written, now, meant):
    assert last(written, now) == meant


@pytest.mark.parametrize("now", ["2026-10-26T02:30:00+01:00", "2026-03-30T02:30:00+02:00"])
def test_a_last_time_that_came_twice_or_never_is_refused(now):
    with pytest.raises(ValueError, match=r"02:45 (comes twice|does not come)"):
        last("02:45", now)


def test_midnight_that_does_not_come_in_chile_is_refused():
    with pytest.raises(ValueError, match="does not come"):
        at("tomorrow 00:30", SANTIAGO, "2026-09-05T12:00:00Z")


def test_what_is_shown_can_be_typed_again():
    for moment in ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-11-22T01:00:00.000001Z"):
        assert at(shown.exact(moment, BERLIN), BERLIN) == moment


def test_this_machines_zone_is_read_from_its_environment_or_its_files(monkeypatch, tmp_path):
    monkeypatch.setitem(os.environ, "TZ", ":Europe/Berlin")
    assert times.zone(None) == BERLIN
    monkeypatch.delitem(os.environ, "TZ")
    link = tmp_path / "localtime"
    assert times.zone(None, link) is UTC
    link.symlink_to("/usr/share/zoneinfo/America/Santiago")
    assert str(times.zone(None, link)) == "America/Santiago"
    copy = tmp_path / "copy"
    copy.write_bytes(link.read_bytes())
    assert at("22:00", times.zone(None, copy)) == "2026-11-22T01:00:00Z"


@pytest.fixture
def environment(monkeypatch):
    """What is set here libc knows too, as if the command had been started with it."""

    def with_zone(said):
        monkeypatch.setitem(os.environ, "TZ", said)
        time.tzset()

    yield with_zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("said", ["/usr/share/zoneinfo/Europe/Berlin", ":/usr/share/zoneinfo/Europe/Berlin"])
def test_this_machines_zone_may_be_said_as_a_file(environment, said):
    environment(said)
    assert times.zone(None) == BERLIN


@pytest.mark.parametrize("said", ["", ":"])
def test_an_empty_zone_is_utc_as_for_date(environment, said):
    environment(said)
    assert times.zone(None, Path("/usr/share/zoneinfo/Europe/Berlin")) is UTC


def test_this_machines_zone_may_be_said_as_a_file_that_has_lost_its_name(environment, tmp_path):
    copy = tmp_path / "localtime"
    copy.write_bytes(Path("/usr/share/zoneinfo/America/Santiago").read_bytes())
    environment(f":{copy}")
    assert at("22:00", times.zone(None)) == "2026-11-22T01:00:00Z"
    (tmp_path / "linked").symlink_to("/usr/share/zoneinfo/America/Santiago")
    environment(f":{tmp_path / 'linked'}")
    assert str(times.zone(None)) == "America/Santiago"


@pytest.mark.parametrize(
    ("said", "now", "meant"),
    [
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01T12:00:00Z", "2026-07-01T20:00:00Z"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-11-21T12:00:00Z", "2026-11-21T21:00:00Z"),
        ("CET-1CEST", "2026-07-01T12:00:00Z", "2026-07-01T20:00:00Z"),
        ("<-03>3", "2026-11-21T12:00:00Z", "2026-11-22T01:00:00Z"),
        ("XYZ-5:30", "2026-11-21T12:00:00Z", "2026-11-21T16:30:00Z"),
    ],
)
def test_this_machines_zone_may_be_said_as_a_rule_of_posix(environment, said, now, meant):
    environment(said)
    where = times.zone(None)
    assert at("22:00", where, now) == meant
    assert (str(where), shown.short(meant, where)[15:20]) == (said, "22:00")


def test_a_rule_of_posix_means_what_the_zone_of_its_name_does_when_clocks_change(environment):
    environment("CET-1CEST,M3.5.0,M10.5.0/3")
    where = times.zone(None)
    for day, twice_or_never in (("2026-10-25", "comes twice"), ("2027-03-28", "does not come")):
        for clock in ("01:59", "03:00", "03:30"):
            assert at(f"{day} {clock}", where) == at(f"{day} {clock}", BERLIN)
        with pytest.raises(ValueError, match=twice_or_never) as error:
            at(f"{day} 02:30", where)
        with pytest.raises(ValueError, match=twice_or_never) as same:
            at(f"{day} 02:30", BERLIN)
        assert str(error.value) == str(same.value).replace("Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3")
    for moment in ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2027-03-28T00:59:59Z", "2027-03-28T01:00:00Z"):
        assert shown.short(moment, where) == shown.short(moment, BERLIN)
        assert at(shown.exact(moment, where), where) == moment


@pytest.mark.parametrize("said", ["/nowhere", ":/etc/passwd", "CET-", "CET-1CEST,M3", "/usr/share/zoneinfo"])
def test_what_says_no_zone_of_this_machine_is_refused(environment, said):
    environment(said)
    with pytest.raises(ValueError, match="no time zone"):
        times.zone(None)


@pytest.mark.parametrize(
    "name", ["/usr/share/zoneinfo/Europe/Berlin", "CET-1CEST", "Mars/Olympus", "../etc/passwd", "America", "x\0y"]
)
def test_a_zone_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="no time zone"):
        times.zone(name)


@pytest.mark.parametrize("duration_us", [1, 1_000, 5_400_000_000, 36_000_000_000, 24_973_001])
def test_a_duration_that_is_written_is_read_back_exactly(duration_us):
    from topology.units import duration_us as read

    assert read(shown.written_duration(duration_us)) == duration_us
