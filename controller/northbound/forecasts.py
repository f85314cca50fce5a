"""Forecasts of a circuit's death, one at a time, each worked out in a process of its own."""

import json
import os
import subprocess
import sys
import threading
from typing import Any

from controller.live_site import LiveSite, live_site_json

LONGEST_S = 60


class ForecastBusy(Exception):
    """Another forecast is being worked out."""


class ForecastFailed(Exception):
    """There is none; the text says why, and what to do instead."""


class Forecasts:
    """Works them out. Nobody's lock is held, and the interpreter of the controller has but to wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while one is worked out

    def dies(self, live: LiveSite, circuit: str) -> dict[str, Any]:
        """Return what breaks if a circuit dies now.

        Raises:
            ForecastBusy: another one is being worked out.
            ForecastFailed: it takes too long, or has ended without one.
        """
        if not self._lock.acquire(blocking=False):
            raise ForecastBusy
        try:
            return self._worked_out(live, circuit)
        finally:
            self._lock.release()

    def _worked_out(self, live: LiveSite, circuit: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "controller.whatif", circuit]
        there = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # wherever this one is run from
        try:
            ran = subprocess.run(
                command, check=True, input=live_site_json(live), capture_output=True, timeout=LONGEST_S, env=there
            )
            found: dict[str, Any] = json.loads(ran.stdout)
        except subprocess.TimeoutExpired as error:
            why = f"it takes more than {LONGEST_S} s: ask headway what-if --live, which has the time"
            raise ForecastFailed(why) from error
        except subprocess.CalledProcessError as error:
            last = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["without a word"]
            raise ForecastFailed(f"it has ended with {error.returncode}: {last[0]}") from error
        except (OSError, ValueError) as error:
            raise ForecastFailed(str(error)) from error
        return found
