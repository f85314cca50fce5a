"""The clock that leases are counted by, here and in the kernel part."""

import time


def lease_now_ns() -> int:
    """Return now, nanoseconds of CLOCK_BOOTTIME (``bpf_ktime_get_boot_ns`` in the kernel part).

    It goes on while the host sleeps, as CLOCK_MONOTONIC does not: by that one a host that wakes would go on with the
    rest of a lease that all others know to be over.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
