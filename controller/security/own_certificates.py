"""When the controller's own certificate and its authority's end, read again when a file has changed."""

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path

from controller.security.renewed import stamp
from controller.security.tls import ServerTls
from topology.certificates import called, certificates_in, expires


@dataclass(frozen=True, slots=True)
class EndingCertificate:
    """A certificate that the controller stands on.

    Attributes:
        whose: ``controller``, ``authority`` or ``rest``.
        name: whom it names first.
        end_s: when it ends, Unix time.
    """

    whose: str
    name: str
    end_s: float


class OwnCertificates:
    """Those of the ports with TLS; none without it. Of any thread."""

    def __init__(
        self, tls: ServerTls | None, rest: ServerTls | None = None, *, switches: ServerTls | None = None
    ) -> None:
        """Look at none yet.

        Args:
            tls: the files towards agents.
            rest: those of REST.
            switches: those towards switches.
        """
        self._files = {} if tls is None else {tls.certificate: "controller", tls.authority: "authority"}
        self._files |= {} if switches is None else {switches.certificate: "controller"}
        self._files |= {} if rest is None else {rest.certificate: "rest"}
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] | None = None
        self._found: tuple[EndingCertificate, ...] = ()

    def found(self) -> tuple[EndingCertificate, ...]:
        """Return them; those that were there before while a file cannot be read."""
        with self._lock:
            seen = tuple(stamp(path) for path in self._files)
            if seen != self._seen:
                self._seen = seen
                with contextlib.suppress(OSError, ValueError):  # the port that uses them says so
                    self._found = tuple(_read(whose, path) for path, whose in self._files.items())
            return self._found


def _read(whose: str, path: str) -> EndingCertificate:
    """Return the first certificate of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is none.
    """
    certificate = certificates_in(Path(path).read_bytes())[0]
    return EndingCertificate(whose, (*called(certificate), whose)[0], expires(certificate).timestamp())
