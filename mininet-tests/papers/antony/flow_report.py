"""What flows come to, figure by figure, and how near that is to what is to be. Pure."""

from collections.abc import Callable
from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.papers.antony.flow_points import again_after_s, mean_mbps, rates_mbps
from mininet_tests.papers.antony.flows import HEADWAY, TimedFlow
from mininet_tests.testing.aims import Aim, above, at_least, at_most, equal, none_of, within

LOST_AFTER_RTTS = 10  # "after 9 RTT a burst of 512 packets leave the PC; at 10 RTT this is doubled to 1024"
AROUND = 0.01  # of the plan
BACK_S = 10.0  # after the event: a loss that is over for so long is forgotten
Report = dict[str, Any]


def reports(seen: list[dict[str, Any]]) -> dict[str, Report]:
    """Return a report for each figure of which there are points, by name."""
    parts = {figure: [one for one in seen if one["name"].startswith(f"{figure}-")] for figure in REPORTS}
    return {
        f"antony_{figure}": {"points": REPORTS[figure](part)} | _facts(part) for figure, part in parts.items() if part
    }


def _facts(part: list[dict[str, Any]]) -> Report:
    flow = next((one["flow"] for one in part if one["flow"]["sender"] == HEADWAY), part[0]["flow"])
    return {"planned_mbps": TimedFlow(**flow).payload_bps / 1e6, "idle_share": min(one["idle_share"] for one in part)}


def _one(seen: dict[str, Any], **more: Any) -> dict[str, Any]:
    losses = {key: seen[key] for key in ("dropped_in_host", "dropped_at_port", "sent_again")}
    return {"sender": seen["flow"]["sender"], "mean_mbps": mean_mbps(seen)} | losses | more


def _fig5(part: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for seen in part:
        trace, rtt_ms = seen["trace"], seen["flow"]["rtt_ms"]
        lost_ms = trace["first_lost_ms"]
        after = None if lost_ms is None else int(lost_ms / rtt_ms)
        found.append(_one(seen, first_lost_after_rtts=after, arrived_mb=seen["arrived_bytes"][-1] / 1e6, **trace))
    return found


def _fig8(part: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_one(seen, queue_packets=seen["flow"]["queue_packets"]) for seen in part]


def _fig9(part: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for seen in part:
        at_s, for_s, _ = seen["flow"]["flood"]
        means = {"before_mbps": mean_mbps(seen, at_s / 2, at_s), "after_mbps": mean_mbps(seen, at_s + for_s)}
        rates = {"rates_mbps": rates_mbps(seen), "every_s": seen["flow"]["every_s"]}
        found.append(_one(seen, case=seen["case"], again_after_s=again_after_s(seen), **means, **rates))
    return found


def _fig11(part: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_one(seen, delay_us=seen.get("delay_us"), socket_mb=seen.get("socket_mb")) for seen in part]


def _fig13(part: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_one(seen, rates_mbps=rates_mbps(seen), every_s=seen["flow"]["every_s"]) for seen in part]


REPORTS: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "fig5": _fig5,
    "fig8": _fig8,
    "fig9": _fig9,
    "fig11": _fig11,
    "fig13": _fig13,
}


def aims(made: dict[str, Report]) -> dict[str, Aim]:
    """Return the aims of those figures that have a report, by name."""
    found = {}
    for name, report in made.items():
        found[f"{name}: CPU idle"] = at_least(report["idle_share"], LEAST_IDLE_SHARE)
        found |= {f"{name}: {aim}": one for aim, one in AIMS[name](report).items()}
    return found


def _fig5_aims(report: Report) -> dict[str, Aim]:
    slow, held = _of(report, "reno")[0], _of(report, HEADWAY)[0]
    return {
        "slow start's first loss, after round trips": equal(slow["first_lost_after_rtts"], LOST_AFTER_RTTS),
        "slow start's losses": above(slow["dropped_at_port"], 0),
        "headway: lost, or sent again": none_of(held["dropped_at_port"] + held["sent_again"]),
        "headway: arrived, of slow start's": above(held["arrived_mb"] / slow["arrived_mb"], 1),
    }


def _fig8_aims(report: Report) -> dict[str, Aim]:
    shortest = min(one["queue_packets"] for one in report["points"])
    unheld = [one for one in report["points"] if one["queue_packets"] == shortest and one["sender"] != HEADWAY]
    held = [one["mean_mbps"] / report["planned_mbps"] for one in _of(report, HEADWAY)]
    return {
        "dropped in the host by the shortest queue, the least of the others": above(
            min(one["dropped_in_host"] for one in unheld), 0
        ),
        "headway: dropped in the host": none_of(sum(one["dropped_in_host"] for one in _of(report, HEADWAY))),
        "headway: least of the most": at_least(min(held) / max(held), 1 - AROUND),
    }


def _fig9_aims(report: Report) -> dict[str, Aim]:
    (held,) = _of(report, HEADWAY)
    others = [one for one in report["points"] if one["sender"] != HEADWAY]
    return {
        "headway: as before, s after the event": at_most(held["again_after_s"], BACK_S),
        "headway: before the event, of the plan": within(held["before_mbps"] / report["planned_mbps"], 1 - AROUND, 1),
        "headway: after it, of the best of the others": above(
            held["after_mbps"] / max(one["after_mbps"] for one in others), 1
        ),
    }


def _fig11_aims(report: Report) -> dict[str, Aim]:
    (held,) = _of(report, HEADWAY)
    others = [one for one in report["points"] if one["sender"] != HEADWAY]
    largest = max(one["socket_mb"] for one in others)
    at_once = next(one["mean_mbps"] for one in others if one["socket_mb"] == largest and not one["delay_us"])
    best = max(one["mean_mbps"] for one in others)
    return {
        "best delay and socket, of the same without delay": above(best / at_once, 1),
        "headway, of the best of all": above(held["mean_mbps"] / best, 1),
    }


def _fig13_aims(report: Report) -> dict[str, Aim]:
    (held,) = _of(report, HEADWAY)
    settled = held["rates_mbps"][1:]  # the first has the round trips of the start in it
    planned = report["planned_mbps"]
    return {
        "headway: least of 2 s, of the plan": at_least(min(settled) / planned, 1 - AROUND),
        "headway: most of 2 s, of the plan": at_most(max(settled) / planned, 1 + AROUND),
        "headway: lost": none_of(held["dropped_at_port"]),
    }


def _of(report: Report, sender: str) -> list[dict[str, Any]]:
    return [one for one in report["points"] if one["sender"] == sender]


AIMS: dict[str, Callable[[Report], dict[str, Aim]]] = {
    "antony_fig5": _fig5_aims,
    "antony_fig8": _fig8_aims,
    "antony_fig9": _fig9_aims,
    "antony_fig11": _fig11_aims,
    "antony_fig13": _fig13_aims,
}
