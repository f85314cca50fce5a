"""What others are to get of what a slow receiver cannot take, and that nobody waits longer for it. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, above, at_least, at_most, none_of

REACTION_S = 2.5  # two tellings of a second each, and what they and the plan take
OTHERS_GET = 0.93  # of what the receiver cannot take: it is held to a sixteenth more than it reads
LATER_S = 0.3  # than when it is not held, until all is read


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    held, free = report["variants"]["held"], report["variants"]["not held"]
    return {
        "CPU idle": at_least(report["cpu"]["least_idle_share"], report["cpu"]["needed_idle_share"]),
        "layers above the next": none_of(held["violations"] + free["violations"]),
        "held, s after the buffer was full": at_most(held["held_after_full_s"], REACTION_S),
        "others have, of what it cannot take": at_least(held["background_of_the_rest_while_held"], OTHERS_GET),
        "changes of the rate it is held to": at_most(len(held["held_bps"]) - 1, 2),
        "read later than if it were not held, s": at_most(held["read_s"] - free["read_s"], LATER_S),
        "background, of that without": above(held["background_bytes"] / max(1, free["background_bytes"]), 2),
        "segments sent again": none_of(held["sent_again"] + free["sent_again"]),
        "not held without leave": none_of(free["held_bps"]),
    }
