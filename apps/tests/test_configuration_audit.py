"""The section ``audit``."""

import pytest

from apps.configuration import parsed
from apps.tests.test_configuration import GOOD, problems
from controller.southbound.openflow.foreign import Ignored
from controller.southbound.openflow.state import match


def audited(**section):
    """The settings of a section."""
    return parsed(GOOD | {"audit": section}, "test.yaml").audit


def test_without_the_section_there_is_an_audit_each_ten_seconds_and_nothing_is_ignored():
    audit = parsed(GOOD, "test.yaml").audit
    assert (audit.interval_s, audit.ignored) == (10.0, ())


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        ({"cookie": 0x77}, Ignored(cookie=0x77)),
        ({"cookie": "0x7700/0xff00"}, Ignored(cookie=0x7700, cookie_mask=0xFF00)),
        ({"table": 1, "priority": 7}, Ignored(table_id=1, priority=7)),
        (
            {"match": {"eth_type": 0x0800, "ipv4_dst": "10.9.0.0/16"}, "table": 0},
            Ignored(table_id=0, match=match({"eth_type": 0x0800, "ipv4_dst": "10.9.0.0/16"})),
        ),
    ],
)
def test_an_entry_is_a_cookie_a_table_and_priority_or_a_match(entry, meant):
    assert audited(interval="2 s", ignore=[entry]).ignored == (meant,)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"interval": "100 ms"}, "audit.interval: must be between 1 s and 1 h"),
        ({"ignore": [{}]}, "audit.ignore[0]: names too much, give cookie, or match, or both table and priority"),
        ({"ignore": [{"table": 0}]}, "audit.ignore[0]: names too much"),
        ({"ignore": [{"cookie": "ours"}]}, 'audit.ignore[0].cookie: "ours" is not a cookie, try 0x77 or 0x7700/0xff00'),
        ({"ignore": [{"cookie": "1/0"}]}, 'audit.ignore[0].cookie: "1/0" is not a cookie of 64 bits with at least one'),
        ({"ignore": [{"match": {"nw_dst": "10.0.0.1"}}]}, "audit.ignore[0].match.nw_dst: there is no such field"),
        ({"ignore": [{"match": {"ipv4_dst": "10.0.0.1/16"}}]}, "audit.ignore[0].match: 10.0.0.1/16 has host bits set"),
        ({"ignore": [{"cookie": 1, "colour": 2}]}, "audit.ignore[0].colour: there is no such key"),
        (
            {"ignore": [{"match": {"eth_type": "arp"}}]},
            'audit.ignore[0].match.eth_type: "arp" is no value of it, try 0x',
        ),
        (
            {"ignore": [{"match": {"eth_dst": "01:80:c2:00:00:00/ff:ff:ff:00:00:00"}}]},
            'audit.ignore[0].match.eth_dst: "01:80:c2:00:00:00/ff:ff:ff:00:00:00" is no value of it',
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_path(section, problem):
    (found,) = problems(GOOD | {"audit": section})
    assert found.startswith(problem)
