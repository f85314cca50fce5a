"""The certificates of a stream while it is open: ours is shown once it was renewed, and a revoked one is not believed.

Each day it is said that ours ends soon.
"""

import time
from pathlib import Path

from hostagent.agent.stream import ControllerStream
from hostagent.errors import AttachmentRefused
from hostagent.log import log
from hostagent.settings import AgentSettings
from topology.certificates import ENDING_AGAIN_S, ending_days

LOOK_S = 60.0
REVOKED = "the controller's certificate was revoked"
RENEWED = "our certificate was renewed: the next stream shows it"


class ShownCertificate:
    """What is shown in one stream, from when that is attached; by the thread that reads.

    A stream stays open for months, and a certificate is shown at its beginning alone.
    """

    def __init__(self, stream: ControllerStream, settings: AgentSettings) -> None:
        self._stream = stream
        self._host = settings.host
        self._tls = settings.tls if "host" in stream.ends_s else None
        self._authority = _read(self._tls.authority) if self._tls else b""
        self._unfit: tuple[str, ...] = ()
        now_s = time.monotonic()
        self._look_s, self._say_s = now_s + LOOK_S, now_s + ENDING_AGAIN_S  # when next
        for whose in stream.ends_s:
            self._say_ending(whose)

    def look(self) -> None:
        """End the stream if the controller's certificate is revoked, or we have another to show; once a minute.

        Not for other authorities: which the controller has by now is not known here, and a stream that is open holds.
        """
        now_s = time.monotonic()
        if self._tls is None or now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_S
        if now_s >= self._say_s:
            self._say_s = now_s + ENDING_AGAIN_S
            self._say_ending("host")  # of the controller's it is not known here whether it was renewed
        if self._tls.has_revoked(self._stream.serial):
            self._stream.cancel(REVOKED)
            return
        try:
            renewed = self._tls.ends_s() != self._stream.ends_s["host"]
        except AttachmentRefused:
            renewed = True
        unfit = self._tls.problems(self._host) if renewed else ()
        if unfit and unfit != self._unfit:
            log.warning("agent.certificate_unfit", controller=self._stream.controller, why="; ".join(unfit))
        self._unfit = unfit
        if renewed and not unfit and _read(self._tls.authority) == self._authority:
            self._stream.cancel(RENEWED)

    def _say_ending(self, whose: str) -> None:
        if (days_left := ending_days(self._stream.ends_s[whose], time.time())) is not None:
            log.warning(
                "agent.certificate_ending", whose=whose, controller=self._stream.controller, days_left=days_left
            )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
