"""Rows of OVSDB as values, and back. Pure."""

from collections.abc import Mapping
from typing import Any

from controller.southbound.ovsdb.queues import PortQueues, Queue

QOS_TYPE = "linux-htb"
TERM_KEY = "headway-term"  # beside it in a QoS: the term of the controller that has written it last
MOST_32_BITS_BPS = 8 * (2**32 - 1)  # of an HTB rate, where bytes a second are kept in 32 bits
OWNER_KEY = "headway"  # in external_ids of the rows that are ours; the value is the port's name


def queue_config(queue: Queue) -> dict[str, str]:
    """Return a queue as OVSDB writes it: bit/s and bits, as text; a float would end up as ``1e+09``, read as 1."""
    return {"min-rate": str(queue.min_bps), "max-rate": str(queue.max_bps), "burst": str(queue.burst_bits)}


def port_queues_of(qos: Any) -> PortQueues:
    """Return a QoS row as a value; what is no number, or another type of QoS, reads as 0 and so differs."""
    configs = ((queue_id, row.other_config) for queue_id, row in sorted(qos.queues.items()))
    queues = (
        Queue(queue_id, *(number(config, key) for key in ("min-rate", "max-rate", "burst")))
        for queue_id, config in configs
    )
    return PortQueues(number(qos.other_config, "max-rate") if qos.type == QOS_TYPE else 0, tuple(queues))


def keeps_64_bits(version: str) -> bool:
    """Return whether an Open vSwitch keeps HTB rates in 64 bits, as it does from 3.2 on.

    >>> keeps_64_bits("3.1.0"), keeps_64_bits("3.2.0"), keeps_64_bits("3.10.1-dev"), keeps_64_bits("")
    (False, True, True, False)
    """
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return major.isdecimal() and minor.isdecimal() and (int(major), int(minor)) >= (3, 2)


def number(config: Mapping[str, str], key: str) -> int:
    """Return a number of a row's map; 0 for none."""
    text = config.get(key, "")
    return int(text) if text.isdecimal() else 0
