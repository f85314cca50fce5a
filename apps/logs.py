"""Logs: one key=value line an event, on standard error, in which no field is long and nothing moves a cursor."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog

from topology.printable import printable, printable_end

log = structlog.get_logger()
SPARING_S = 60.0


def configure() -> None:
    """Set up structlog for this process, and the few lines other libraries write."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Sparing())
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            harmless,
            structlog.processors.LogfmtRenderer(
                key_order=["timestamp", "level", "event"], drop_missing=True, bool_as_flag=False
            ),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    sys.excepthook = _failed
    threading.excepthook = lambda of: _failed(of.exc_type, of.exc_value, of.exc_traceback, of.thread)


def harmless(_logger: Any, _method: str, fields: Any) -> Any:
    """Return the fields of an event as they may stand in a log."""
    return {name: _harmless(name, value) for name, value in fields.items()}


def _harmless(name: str, value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return printable_end(str(value)) if name == "exception" else printable(str(value))


class OneLine(logging.Formatter):
    """Lines of other libraries, each one line, its traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return it."""
        return printable_end(super().format(record)).replace("\n", "\\n")


class Sparing(logging.Filter):
    """Of each place in other libraries one line a minute: a stranger who sends what os-ken cannot read fills no disk.

    The next line of the place says how many were left out.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing said."""
        super().__init__()
        self._now_s = now_s
        self._said: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        place, now_s = (record.pathname, record.lineno), self._now_s()
        said_s, left_out = self._said.get(place, (now_s - SPARING_S, 0))
        if now_s - said_s < SPARING_S:
            self._said[place] = said_s, left_out + 1
            return False
        self._said[place] = now_s, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} (and {left_out} more like it since)", None
        return True


def _failed(kind: Any, error: Any, trace: Any, thread: threading.Thread | None = None) -> None:
    """Say what nobody has caught, in one line."""
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        name = thread.name if thread is not None else "main"
        log.error("process.failed", thread=name, exc_info=(kind, error, trace))
