"""Announcements as they are kept."""

import json
from dataclasses import replace
from ipaddress import IPv4Network

from controller.database.announcements import announcement_of, announcement_text
from controller.plan.announcements import Announcement
from controller.plan.calendar import Need
from controller.plan.keys import ClassShare, Pool
from controller.plan.plan import Flow
from controller.plan.volume import ConstantRate
from topology.network import Hop
from topology.protocol import FlowClass

WAN = Hop("ls1", "ch1")
SENT = Flow("a/base20", FlowClass.URGENT, "base20", "arch", IPv4Network("10.0.0.1"), ("base20", "ls1", "ch1", "arch"))
NEED = Need(((WAN, 1_000_000), (ClassShare(WAN, FlowClass.URGENT), 1_000_000), (Pool("night"), 20_000)))
KNOWN = Announcement("a", 10**9, (SENT,), NEED, (ConstantRate(1, 2, 3),), "night", 0, 2)


def test_what_it_books_is_kept_by_name():
    assert '"need":{"shares_ppm":[["ls1->ch1",1000000],["ls1->ch1 urgent",1000000],["reservation night",20000]]},' in (
        announcement_text(KNOWN)
    )


def test_an_announcement_is_the_same_once_it_was_kept():
    assert announcement_of(announcement_text(KNOWN)) == KNOWN
    bare = replace(KNOWN, rates=(), pool="", need=Need(()))
    assert announcement_of(announcement_text(bare)) == bare


def test_the_text_has_each_attribute_under_its_name():
    assert list(json.loads(announcement_text(KNOWN))) == list(KNOWN.__dataclass_fields__)
