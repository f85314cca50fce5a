"""What audits are to find and repair, and to leave alone. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, above, at_most, below, equal, none_of

READ_S = 1.0  # to look, to repair, and to see it
OTHERS = ("shadowed", "ignored")  # two rules of other people stand there all the time


def aims(report: dict[str, Any], interval_s: float) -> dict[str, Aim]:
    """Return the aims of a report of audits each ``interval_s``."""
    (allocation,) = report["plan"]["allocations"]
    before, under_way = report["before"]["places"], report["traffic"]["each_second_bps"][3:-2]
    found = {
        "messages to a proper site": none_of(sum(place["messages"] for place in before)),
        "deviations of a proper site": none_of([each for place in before for each in place["latest"]["deviations"]]),
        "errors of audits of a proper site": none_of([e for place in before for e in place["latest"]["errors"]]),
        "segments sent again": none_of(report["traffic"]["retransmits"]),
        "packets dropped on the line": none_of(sum(report["drops"]["line"].values())),
        "packets dropped at ports": none_of(sum(report["drops"]["port"].values())),
        "least rate in a second, bit/s": above(min(under_way, default=None), 0.95 * allocation["payload_bps"]),
        "others' rule there": equal(report["foreign_rule_there"], expected=True),
        "ignored rule there": equal(report["ignored_rule_there"], expected=True),
        "messages in all": equal(
            sum(place["messages"] for place in report["after"]["places"]),
            sum(one["expected_messages"] for one in report["breaks"]),
        ),
    }
    for one in report["breaks"]:
        found |= {f"{one['name']}: {name}": aim for name, aim in _of_a_break(one, interval_s).items()}
    return found


def _of_a_break(one: dict[str, Any], interval_s: float) -> dict[str, Aim]:
    after_s, shapes = one["repaired_after_s"], [d for d in one["deviations"] if d["shape"] not in OTHERS]
    at_once = one["shape"] == "missing" and one["kind"] == "flow"
    return {
        "repaired after, s": below(after_s, READ_S) if at_once else at_most(after_s, interval_s + READ_S),
        "messages": equal(one["messages"], one["expected_messages"]),
        "found": equal(
            [[d["kind"], d["shape"], d["outcome"]] for d in shapes], [[one["kind"], one["shape"], "repaired"]]
        ),
    }
