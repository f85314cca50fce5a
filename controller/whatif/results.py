"""The outcome of a run as a line of JSON, and back: what was run is not run again. Pure."""

from dataclasses import asdict, astuple
from typing import Any

from controller.whatif.outcomes import CircuitUse, RunOutcome, TransferOutcome


def plain(run: RunOutcome) -> dict[str, Any]:
    """Return a run in values that JSON has.

    >>> use = CircuitUse(0, 10, {"a->b": [1, 2]})
    >>> one = RunOutcome(7, 20, (TransferOutcome("image", 0, 1, 9, 8, 100, 0),), use, {"north": (1, 5)}, {"db": 3}, 4)
    >>> run_of(plain(one)) == one
    True
    """
    transfers = [astuple(one) for one in run.transfers]
    return {
        "seed": run.seed,
        "until_us": run.until_us,
        "transfers": transfers,
        "use": asdict(run.use),
        "deaths": run.deaths,
        "standing_bytes": run.standing_bytes,
        "events": run.events,
    }


def run_of(said: dict[str, Any]) -> RunOutcome:
    """Return the run that such values are of.

    Raises:
        KeyError, TypeError, ValueError: they are of none.
    """
    return RunOutcome(
        said["seed"],
        said["until_us"],
        tuple(TransferOutcome(*one) for one in said["transfers"]),
        CircuitUse(**said["use"]),
        {circuit: (times, down_us) for circuit, (times, down_us) in said["deaths"].items()},
        said["standing_bytes"],
        said["events"],
    )
