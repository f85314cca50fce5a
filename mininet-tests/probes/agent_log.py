"""What an agent's log says of when its kernel had what it was told."""

import re
from datetime import datetime
from pathlib import Path


def applied_s(log: Path) -> list[float]:
    """Return when an agent's kernel took in each plan, Unix time, from its log."""
    said = re.findall(r"timestamp=(\S+) .*event=agent\.applied", log.read_text())
    return [datetime.fromisoformat(at).timestamp() for at in said]
