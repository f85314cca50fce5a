"""What the formulas and the fluid are to come to. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, above, at_least, at_most, equal

PRINTED_TO_MBPS = 0.01
THERE_MBPS = 275.0  # of a disk of 278: the sender has found it
LEAST_SHARE = 0.99  # of the prediction: the paper's own are at 0.991 and above, where the line is no bound


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims, by name."""
    found: dict[str, Aim] = {}
    for row in report["table_3"]:
        name = f"table 3, {row['size_mb']} MB"
        off_mbps = abs(row["predicted_mbps"] - row["printed_mbps"])
        found[f"{name}: eq. (4) off the printed, Mbit/s"] = at_most(round(off_mbps, 6), PRINTED_TO_MBPS)
        if row["size_mb"] >= 2000:
            found[f"{name}: measured of the predicted"] = at_least(row["measured_share"], LEAST_SHARE)
            share = row["figure6_mbps"] / row["predicted_mbps"]
            found[f"{name}: figure 6 in the fluid, of the predicted"] = at_least(share, LEAST_SHARE)
    for size, rules in report["starvation"].items():
        epochs = {name: _epochs_until_there(one["rates_mbps"]) for name, one in rules.items()}
        found[f"{size} from 50 Mbit/s: epochs of figure 6 to the disk's rate"] = at_least(epochs["figure 6"], 10)
        found[f"{size} from 50 Mbit/s: epochs of headway"] = at_most(epochs["headway"], 1)
        later_s = rules["figure 6"]["across_s"] - rules["headway"]["across_s"]
        found[f"{size} from 50 Mbit/s: figure 6 is later by, s"] = above(later_s, 0)
    for epoch, rules in report["stalls"].items():
        found[f"stalls, {epoch}: lowest rate of figure 6, Mbit/s"] = equal(rules["figure 6"]["lowest_mbps"], 0.0)
        found[f"stalls, {epoch}: lowest rate of headway, Mbit/s"] = above(rules["headway"]["lowest_mbps"], 100)
    return found


def _epochs_until_there(rates_mbps: list[float]) -> int:
    """Return after how many epochs the rate was that of the disk; as many as there are if never."""
    return next((n for n, mbps in enumerate(rates_mbps) if mbps >= THERE_MBPS), len(rates_mbps))
