"""Connections that send all they can, and whether they do so by the plan."""

from contextlib import ExitStack

from hostagent.tests.rig import MBIT, Bulk, measured_bps

LEASE_MS = 1500
RATE_MARGIN = 0.02  # internal pacing keeps its rate within 0.8%; the rest is the measurement


def started(cleanup: ExitStack, *bulks: Bulk) -> list[Bulk]:
    """Return connections that send now, until the end of the test."""
    for bulk in bulks:
        cleanup.callback(bulk.close)
        bulk.start()
    return list(bulks)


def assert_rate(bulks: list[Bulk], planned_bps: int, over_s: float = 2.0) -> None:
    """Granted by the kernel: the plan, to 2%. Measured: never more; at least half, as a busy machine is late.

    Rates are measured closely where time is virtual: scenarios/longpath.
    """
    rate_bps = measured_bps(bulks, over_s)
    granted_bps = sum(bulk.info.pacing_bytes_per_s for bulk in bulks) * 8
    seen = f"planned {planned_bps / MBIT:.1f} Mbit/s, granted {granted_bps / MBIT:.1f}, measured {rate_bps / MBIT:.1f}"
    assert abs(granted_bps - planned_bps) <= planned_bps * RATE_MARGIN, seen
    assert planned_bps / 2 <= rate_bps <= planned_bps * (1 + RATE_MARGIN), seen


def ours(bulk: Bulk) -> bool:
    """Return whether it is the agent's kernel part that runs it."""
    return bulk.algorithm.startswith("headway")
