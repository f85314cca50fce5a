"""The agent's log: a line ``key=value ...`` (logfmt) for each event, on standard error.

As the controller's lines, but without its library: that one loads a hundred modules for colours and tables.
"""

import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from topology.printable import printable, printable_end

LEVELS = ("debug", "info", "warning", "error")
_PLAIN = re.compile(r'[^\s="\\]+')

Sink = Callable[[Mapping[str, Any]], None]


def line(values: Mapping[str, Any]) -> str:
    """Return an event as logfmt; a value with spaces or quotes is quoted."""
    return " ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    text = printable(str(value))
    if not text or _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class AgentLog:
    """Where the agent's parts write; one for the process."""

    def __init__(self) -> None:
        """Write to standard error, from ``info`` on."""
        self.least = "info"
        self._lock = threading.Lock()
        self._sink: Sink = self._printed

    def info(self, event: str, **values: Any) -> None:
        """Write down what happens in the ordinary course."""
        self._event("info", event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Write down what an operator should look at."""
        self._event("warning", event, values)

    def exception(self, event: str, **values: Any) -> None:
        """Write down an error with the trace of the exception that is being handled."""
        self._event("error", event, {**values, "exception": printable_end(traceback.format_exc().rstrip())})

    @contextmanager
    def captured(self, into: list[Any] | None = None) -> Iterator[list[Any]]:
        """Collect what is written meanwhile instead of printing it; each event also says its ``log_level``."""
        events = [] if into is None else into
        before, self._sink = self._sink, events.append
        try:
            yield events
        finally:
            self._sink = before

    def _event(self, level: str, event: str, values: Mapping[str, Any]) -> None:
        if LEVELS.index(level) >= LEVELS.index(self.least):
            self._sink({"event": event, "log_level": level, **values})

    def _printed(self, event: Mapping[str, Any]) -> None:
        rest = {name: value for name, value in event.items() if name not in {"event", "log_level"}}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        text = line({"timestamp": now, "level": event["log_level"], "event": event["event"], **rest})
        with self._lock:
            print(text, file=sys.stderr, flush=True)


log = AgentLog()
