"""What a host delivers that was booted meanwhile: its clock, by which its counts are told apart, began at 0 again."""

from dataclasses import replace

import pytest

from controller.tests.fakes import ready_site
from controller.tests.test_delivered import S_US, announced, entry, read, tell

DAY_NS = 86_400 * 10**9


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def test_a_host_that_was_booted_again_counts_on_although_its_clock_began_at_0(site):
    announced(site)
    tell(site, "base20", entry("image/base20", 1_000, counted_since_ns=DAY_NS), at_us=DAY_NS // 1000 + S_US)
    booted = entry("image/base20", 300, counted_since_ns=60 * 10**9)
    tell(site, "base20", booted, at_us=61 * S_US)
    late = entry("image/base20", 1_100, counted_since_ns=30 * 10**9)
    tell(site, "base20", replace(booted, delivered_bytes=400), ended=(late,), at_us=62 * S_US)
    (count,) = read(site).one("image").delivered
    assert (count.payload_bytes, count.is_least) == (1_400, True)


def test_the_next_of_a_name_is_counted_although_its_host_was_booted_in_between(site):
    announced(site)
    tell(site, "base20", entry("image/base20", 1_000, counted_since_ns=DAY_NS), at_us=DAY_NS // 1000 + S_US)
    site.use_cases.forget("image").saved.result()
    announced(site)
    tell(site, "base20", entry("image/base20", 300, counted_since_ns=60 * 10**9), at_us=61 * S_US)
    (count,) = read(site).one("image").delivered
    assert (count.payload_bytes, count.is_least) == (300, False)
