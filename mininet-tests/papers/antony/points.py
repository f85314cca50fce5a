"""What is measured about bursts, point by point, and what the formulas say of each. Pure.

Rates and buffers are counted in Ethernet frames, at the interfaces as at the port, so that only their ratios matter.
"""

from itertools import pairwise
from typing import Any

from controller.plan.bursts import MBIT, Source, departure_bytes, needed_bytes, resumed_bytes
from mininet_tests.papers.antony.formulas import forbidden_bps, lost_packets, passing_packets
from mininet_tests.papers.antony.tcp import Start
from mininet_tests.site.long_line_site import FRAMING
from topology.wire import Layer

FRAME_BYTES = FRAMING.segment_bytes(Layer.FRAME)
GIGABIT = 1000 * MBIT
WINDOW_BYTES, FREEMON_RTT_MS = 22_500_000, 180  # Freemon 2013 section V.A
PRINTED_MB = {2: 11, 10: 20, 30: 23}  # "with 23MB of buffer being the worst case in any configuration"
PACKETS, PACKET_BYTES, FIG2_NIC_BPS, FIG2_PORT_BPS = 5_000, 1_000, 900 * MBIT, 622 * MBIT  # Antony 2003 figure 2
BUFFER_BYTES = 500_000  # "approximately 0.5 MB"
RTTS_MS = (10, 30, 60, 100, 150)
QUICK_RTT_MS = 100
WINDOWS = {"whole window": 1, "slow start": 3, "headway": 2}  # slow start has sent two before its last round
HEADWAY = ("headway", "headway, warm")


def points(experiments: tuple[str, ...], *, quick: bool) -> list[dict[str, Any]]:
    """Return the points of some experiments; ``quick`` for few of them, each with fewer tries."""
    made = {"freemon": freemon_points, "fig2": fig2_points, "fig4": fig4_points}
    return [point for name in experiments for point in made[name](quick=quick)]


def freemon_points(*, quick: bool) -> list[dict[str, Any]]:
    """Return the points at which the smallest buffer is looked for, from a part of what the formula says on."""
    found = []
    for senders in (2, 10) if quick else PRINTED_MB:
        for sender in ("whole window", "headway") if quick else ("whole window", *HEADWAY):
            start = {"sender": sender, "senders": senders, "nic_bps": GIGABIT, "port_bps": GIGABIT}
            start |= {"rtt_ms": FREEMON_RTT_MS, "windows": 1}
            name = f"freemon-{sender.replace(', ', '-').replace(' ', '-')}-{senders}"
            predicted_bytes = freemon_bytes(sender, senders)
            point: dict[str, Any] = {"name": name, "start": start, "predicted_bytes": predicted_bytes}
            if quick and sender != "whole window":
                point["buffer_bytes"] = predicted_bytes
            elif quick:
                point["search"] = _search(predicted_bytes, (97, 103), 4)
            elif sender == "whole window":
                point["search"] = _search(predicted_bytes, (90, 104), 1)
            else:
                point["search"] = _search(predicted_bytes, (10, 110), 5)
            found.append(point)
    return found


def _search(predicted_bytes: int, percent: tuple[int, int], resolution_percent: int) -> dict[str, int]:
    least, most, resolution = (predicted_bytes * part // 100 for part in (*percent, resolution_percent))
    return {"least": least, "most": most, "resolution": resolution}


def freemon_bytes(sender: str, senders: int) -> int:
    """Return what the formula says that a start needs: a window at once, or what of paced senders leaves at once."""
    if sender == "whole window":
        return needed_bytes([Source(GIGABIT, WINDOW_BYTES // senders)] * senders, GIGABIT)
    payload_bps = Start(sender, senders, GIGABIT, GIGABIT, FREEMON_RTT_MS).payload_bps
    burst_bytes = (resumed_bytes if sender == "headway, warm" else departure_bytes)(payload_bps, FRAMING)
    return needed_bytes([Source(GIGABIT, burst_bytes, GIGABIT // senders)] * senders, GIGABIT)


def fig2_points(*, quick: bool) -> list[dict[str, Any]]:  # noqa: ARG001 (like the others)
    """Return the one point of figure 2."""
    rates = {"nic_bps": FIG2_NIC_BPS, "port_bps": FIG2_PORT_BPS}
    sizes = {"packets": PACKETS, "frame_bytes": PACKET_BYTES, "buffer_bytes": BUFFER_BYTES}
    arguments = (PACKET_BYTES, *rates.values(), BUFFER_BYTES)
    predicted = {"lost": lost_packets(PACKETS, *arguments), "passing": passing_packets(*arguments)}
    return [{"name": "fig2", "predicted": predicted} | rates | sizes]


def fig4_points(*, quick: bool) -> list[dict[str, Any]]:
    """Return speeds just below and above the lower root, far inside, and on both sides of the upper root."""
    found = []
    for rtt_ms in (QUICK_RTT_MS,) if quick else RTTS_MS:
        for port_bps in speeds_bps(rtt_ms):
            for sender, windows in WINDOWS.items():
                start = {"sender": sender, "senders": 1, "nic_bps": GIGABIT, "port_bps": port_bps}
                start |= {"rtt_ms": rtt_ms, "windows": windows}
                name = f"fig4-{sender.replace(' ', '-')}-{rtt_ms}ms-{port_bps // MBIT}M"
                predicted_bytes = fig4_bytes(sender, rtt_ms, port_bps)
                found.append(
                    {"name": name, "start": start, "buffer_bytes": BUFFER_BYTES, "predicted_bytes": predicted_bytes}
                )
    return found


def speeds_bps(rtt_ms: int) -> list[int]:
    """Return the speeds that are tried at a round trip, whole Mbit/s."""
    roots_bps = forbidden_bps(GIGABIT, rtt_ms * 1000, BUFFER_BYTES)
    if roots_bps is None:
        return [200 * MBIT, 500 * MBIT, 800 * MBIT]
    low, high = roots_bps
    return [
        bps // MBIT * MBIT for bps in (low * 9 // 10, low * 11 // 10, 3 * low, high * 97 // 100, (high + GIGABIT) // 2)
    ]


def fig4_bytes(sender: str, rtt_ms: int, port_bps: int) -> int:
    """Return what a window of rate x round trip needs: at once; in the last round of slow start; or paced.

    In slow start each confirmed segment brings two, and segments are confirmed as fast as the port sends: the last
    window comes at twice the port's rate, if the interface is as fast.
    """
    window_bytes = port_bps * rtt_ms // 8_000
    nic_bps = min(GIGABIT, 2 * port_bps) if sender == "slow start" else GIGABIT
    if sender != "headway":
        return needed_bytes([Source(nic_bps, window_bytes)], port_bps)
    payload_bps = Start(sender, 1, GIGABIT, port_bps, rtt_ms).payload_bps
    return needed_bytes([Source(GIGABIT, departure_bytes(payload_bps, FRAMING), port_bps)], port_bps)


def fig2_measured(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what figure 2 is about: the first loss, how many of those after it, and the rates on both sides."""
    came_ns = [at_ns for at_ns in seen["at_receiver_ns"] if at_ns is not None]
    lost = [number for number, at_ns in enumerate(seen["at_receiver_ns"]) if at_ns is None]
    packet_bits = 8 * seen["frame_bytes"]
    gaps = [after - before for before, after in pairwise(lost)]
    return {
        "lost": len(lost),
        "passing": lost[0] if lost else None,
        "share_lost_after_first": len(lost) / (seen["packets"] - lost[0]) if lost else 0,
        "most_lost_in_a_row": _longest_run(gaps),
        "nic_bps": (seen["packets"] - 1) * packet_bits * 1e9 / (seen["at_port_ns"][-1] - seen["at_port_ns"][0]),
        "port_bps": (len(came_ns) - 1) * packet_bits * 1e9 / (came_ns[-1] - came_ns[0]),
    }


def _longest_run(gaps: list[int]) -> int:
    """Return how many numbers follow one another at most, from the differences between them.

    >>> _longest_run([1, 1, 5, 1])
    3
    """
    longest = run = 1
    for gap in gaps:
        run = run + 1 if gap == 1 else 1
        longest = max(longest, run)
    return longest
