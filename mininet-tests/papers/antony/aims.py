"""How near the measured bursts are to the formulas, and what Headway may lose: nothing. Pure."""

from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.testing.aims import Aim, above, at_least, at_most, below, equal, none_of

AROUND = 0.03  # of the formula: a frame in 7,000 is lost or not by where the bucket's tokens stand
ONE_LOST_IN = 900 / 278
PACED_BYTES = 500_000  # of 11 and 20 MB
UNPACED = ("whole window", "slow start")


def aims(reports: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of those experiments that have a report, by name."""
    parts = {"freemon": _freemon, "antony_fig2": _fig2, "antony_fig4": _fig4}
    return {
        f"{name}: {aim}": one
        for name, part in parts.items()
        if name in reports
        for aim, one in part(reports[name]).items()
    }


def _freemon(report: dict[str, Any]) -> dict[str, Aim]:
    found = {"CPU idle": at_least(min(one["idle_share"] for one in report["points"]), LEAST_IDLE_SHARE)}
    for one in report["points"]:
        if one["sender"] == "whole window":
            found |= {f"{one['name']}: {aim}": each for aim, each in _whole_window(one, report["printed_mb"]).items()}
        elif "buffer_bytes" in one:
            found[f"{one['name']}: buffer, bytes"] = below(one["buffer_bytes"], PACED_BYTES)
            found[f"{one['name']}: lost or sent again"] = none_of(one["dropped"] + one["sent_again"])
    return found


def _whole_window(one: dict[str, Any], printed_mb: dict[int, int]) -> dict[str, Aim]:
    """Return the aims of a search: the smallest buffer is the formula's, and nearly the printed one."""
    smallest = one["smallest_bytes"]
    off = None if smallest is None else abs(smallest - one["predicted_bytes"]) / one["predicted_bytes"]
    off_mb = None if smallest is None else abs(smallest / 1e6 - printed_mb[one["senders"]])
    smaller = [tried["dropped"] for tried in one["tried"] if smallest and tried["buffer_bytes"] < smallest]
    return {
        "smallest buffer, off the formula": at_most(off, AROUND),
        "smallest buffer, off the printed, MB": below(off_mb, 1),
        "least lost in a smaller one": above(min(smaller, default=None), 0),
    }


def _fig2(report: dict[str, Any]) -> dict[str, Aim]:
    predicted, measured = report["predicted"], report["measured"]
    share = measured["share_lost_after_first"]
    passing = measured["passing"]
    return {
        "CPU idle": at_least(report["idle_share"], LEAST_IDLE_SHARE),
        "packets before the first loss, off eq. (1)": below(
            None if passing is None else abs(passing / predicted["passing"] - 1), AROUND
        ),
        "packets lost, off eq. (1)": below(abs(measured["lost"] / predicted["lost"] - 1), AROUND),
        "then one lost in so many, off 900/278": below(abs(1 / share - ONE_LOST_IN) if share else None, 0.1),
        "most lost in a row": equal(measured["most_lost_in_a_row"], 1),
        "interface's rate, off 900 Mbit/s": below(abs(measured["nic_bps"] / 900e6 - 1), 0.01),
        "port's rate, off 622 Mbit/s": below(abs(measured["port_bps"] / 622e6 - 1), 0.01),
    }


def _fig4(report: dict[str, Any]) -> dict[str, Aim]:
    points = report["points"]
    found = {"CPU idle": at_least(min(one["idle_share"] for one in points), LEAST_IDLE_SHARE)}
    for sender in UNPACED:
        some = [one for one in points if one["sender"] == sender]
        wrong = [
            [one["rtt_ms"], one["port_bps"]]
            for one in some
            if bool(one["dropped"]) is not (one["predicted_bytes"] > report["buffer_bytes"])
        ]
        found[f"{sender}: points that lose not where the window overruns the buffer"] = none_of(wrong)
    lost = [one["dropped"] + one["sent_again"] for one in points if one["sender"] == "headway"]
    return found | {"headway: lost or sent again": none_of(sum(lost))}
