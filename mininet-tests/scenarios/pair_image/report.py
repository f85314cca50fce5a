"""From what ``run.py`` saw to how long each image took, and what must be none. Pure."""

from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE, verdict
from mininet_tests.testing.aims import Aim, at_least, at_most, none_of

LATE_SHARE = 0.01  # the image whose leader dies may take so much longer than the slower of the undisturbed ones


def report(run: dict[str, Any]) -> dict[str, Any]:
    """Return how long images took and who noticed, and whether the run is worth anything."""
    idle = verdict(run["cpu_idle_shares"])
    images = [_image(one, run) for one in run["images"]]
    (*undisturbed, killed) = images
    marks = run["images"][-1]["marks"]
    return {
        "rate_bps": run["rate_bps"],
        "bytes": 2 * run["part_bytes"],
        "images": images,
        "later_share": round(killed["seconds"] / max(one["seconds"] for one in undisturbed) - 1, 5),
        "led_after_s": (marks["led_us"] - marks["killed_us"]) / 1e6,
        "under_way_s": (arrived_us(run["images"][-1], run) - marks["led_us"]) / 1e6,
        "sent_again_since": run["images"][-1]["since_death"],
        "leases_over": run["leases_over"],
        "fallbacks": run["fallbacks"],
        "violations": len(run["violations"]),
        "cpu": {"least_idle_share": idle.least_idle_share, "needed_idle_share": LEAST_IDLE_SHARE},
    }


def _image(image: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": image["name"],
        "seconds": (arrived_us(image, run) - image["marks"]["begun_us"]) / 1e6,
        "drops": image["drops"],
        "retransmitted_segments": image["retransmitted_segments"],
    }


def arrived_us(image: dict[str, Any], run: dict[str, Any]) -> int:
    """Return when the last of an image's bytes had arrived, Unix time.

    Raises:
        StopIteration: it never did.
    """
    hosts, marks = run["image_hosts"], image["marks"]
    before = max(((t, counts) for t, counts in run["received"] if t <= marks["begun_us"]), key=lambda one: one[0])[1]
    arrived: int = next(
        t
        for t, counts in run["received"]
        if t > marks["begun_us"] and all(counts[h] - before[h] >= run["part_bytes"] for h in hosts)
    )
    return arrived


def aims(found: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    cpu = found["cpu"]
    return {
        "CPU idle": at_least(cpu["least_idle_share"], cpu["needed_idle_share"]),
        "image while the leader dies, share of its time that it is later": at_most(found["later_share"], LATE_SHARE),
        "killed, until another leads, s": at_most(found["led_after_s"], 1.0),
        "the image goes on after that, s": at_least(found["under_way_s"], 1.0),
        "hosts whose lease ran out": none_of(found["leases_over"]),
        "hosts that fell back because of loss": none_of(found["fallbacks"]),
        "packets dropped": none_of(sum(one["drops"] for one in found["images"])),
        "segments sent again after the leader died": none_of(found["sent_again_since"]),
        "layers above the next": none_of(found["violations"]),
    }
