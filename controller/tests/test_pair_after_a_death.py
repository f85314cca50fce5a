"""Announcements of one pair of hosts, one after the other, while a circuit dies under the first and returns."""

from copy import deepcopy
from dataclasses import replace

import pytest

from controller.plan.admission import Reason, Refused
from controller.tests.fakes import FakeSite, image
from mininet_tests.testing.networks import chile_illinois_2

S = 1_000_000
TWO = chile_illinois_2()
NORTH_AT_LS1 = (1, 8)


def asked(name):
    """An image of one sender, of which the lesser circuit has room for three at once."""
    return image(name, senders=("base20",), size_bytes=150_000_000, deadline_us=10 * S)


@pytest.fixture
def site():
    """A site whose first image is under way over the first of two circuits."""
    site = FakeSite(TWO, (), return_after_us=S)
    site.attach_all()
    site.converge()
    promised(site, "first")
    return site


def promised(site, name):
    """Announce an image, and let its sender see that it can send; return the line that it is promised by."""
    promise = site.announce(asked(name))
    assert not isinstance(promise, Refused), promise
    rests(site)
    return promise.flows[0].path[2]


def rests(site):
    """Let the sender see that it can send, once what it is promised has begun, and the site come to rest."""
    site.clock.now_us += S
    site.converge()
    site.demand("base20")
    for _ in range(2):
        site.converge()


def says(site, *, is_live):
    """Let the first circuit die or return, and the site come to rest."""
    site.port_said(*NORTH_AT_LS1, is_live=is_live)
    site.converge()
    site.clock.now_us += S
    for _ in range(2):
        site.converge()


def planned(site):
    """By sender, the line that the desired plan has for it, and what it is promised there."""
    return {e.flow.host: (e.flow.path[2], e.flow.floor_bps) for e in site.value.desired.plan.entries}


def floors_bps(site):
    """What the site's announcements are promised now, together."""
    return sum(known.floor_bps(site.clock.now_us) for known in site.value.wished.ledger.announcements.values())


def lines_saved(site):
    """By announcement, the line that the database has it by."""
    saved = site.database.load().announcements
    return {name: next(line for line in ("north", "south") if f'"{line}"' in text) for name, text in saved.items()}


def test_the_next_image_is_promised_beside_one_that_was_led_another_way(site):
    says(site, is_live=False)
    assert promised(site, "second") == "south"
    assert planned(site) == {"base20": ("south", floors_bps(site))}


def test_one_that_was_led_another_way_stays_there_with_what_it_is_promised_beside_it_when_the_circuit_is_back(site):
    says(site, is_live=False)
    promised(site, "second")
    says(site, is_live=True)
    assert planned(site) == {"base20": ("south", floors_bps(site))}


def test_what_was_led_another_way_for_the_next_image_is_saved_so(site):
    says(site, is_live=False)
    assert lines_saved(site) == {"first": "north"}
    promised(site, "second")
    assert lines_saved(site) == {"first": "south", "second": "south"}


def test_without_room_for_what_both_are_promised_the_next_is_refused_and_the_first_stays_as_it_was(site):
    says(site, is_live=False)
    ledger = site.value.wished.ledger
    booked, known = deepcopy(ledger.calendar), dict(ledger.announcements)
    no = site.announce(replace(asked("second"), size_bytes=450_000_000))
    assert (no.reason, "ls1->south has" in str(no)) == (Reason.DEADLINE_UNREACHABLE, True)
    assert (ledger.calendar, ledger.announcements, ledger.has_changed) == (booked, known, False)


def test_beside_one_without_room_for_what_it_is_promised_there_the_next_is_refused(site):
    says(site, is_live=False)
    promised_there = replace(asked("there"), senders=("base21",), size_bytes=450_000_000)
    assert not isinstance(site.announce(promised_there), Refused)
    no = site.announce(replace(asked("second"), size_bytes=1_000_000))
    assert no.reason is Reason.NOT_TOLD_APART


def test_all_of_the_pair_that_were_led_another_way_are_promised_by_it_together_with_their_other_senders(site):
    site.announce(replace(asked("two"), senders=("base20", "base21")))
    says(site, is_live=False)
    promised(site, "second")
    assert lines_saved(site) == {"first": "south", "two": "south", "second": "south"}
    assert {host: line for host, (line, _) in planned(site).items()} == {"base20": "south", "base21": "south"}


def test_the_next_image_goes_the_way_of_those_under_way_when_the_circuit_is_back(site):
    says(site, is_live=False)
    promised(site, "second")
    says(site, is_live=True)
    assert promised(site, "third") == "south"
    assert planned(site) == {"base20": ("south", floors_bps(site))}
