"""Who sends what in the LSST benchmark of Freemon 2013: hosts of ``chile_illinois``, and the standing flows."""

from typing import Any

RECEIVER, DATABASE, BACKGROUND = "arch", "base22", "base23"
IMAGE_HOSTS = ("base20", "base21")
SENDERS = (*IMAGE_HOSTS, DATABASE, BACKGROUND)
FLOWS: list[dict[str, Any]] = [
    {"name": "efd-replication", "class": "predictable", "from": DATABASE, "to": RECEIVER},
    {"name": "raw-images", "class": "background", "from": BACKGROUND, "to": RECEIVER},
]
