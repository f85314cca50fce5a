"""What a controller is told of what the agent does not act on. Pure."""

import json

from topology.protocol import Declined

MOST_WHY = 300  # of what pydantic says: a message may have hundreds of mistakes


def old_epoch(epoch: int, highest_epoch: int) -> Declined:
    """Return it of a plan from the past."""
    why = (
        f"epoch {epoch} is older than {highest_epoch}, which this agent has held: from an older controller, "
        "or of one with another database and a clock that is behind; end it; an agent started again forgets"
    )
    return Declined(epoch, highest_epoch, why)


def not_understood(data: bytes, in_force: int, version: str, error: ValueError) -> Declined | None:
    """Return it of a plan that has what this agent does not know; None of what is no plan at all.

    What does not name its epoch, or the past's, is no reason to leave a controller.
    """
    try:
        epoch = json.loads(data)["epoch"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if type(epoch) is not int or not in_force <= epoch < 1 << 63:
        return None
    said = " ".join(str(error).split())
    return Declined(epoch, in_force, f"not understood by an agent of version {version}: {said}"[:MOST_WHY])
