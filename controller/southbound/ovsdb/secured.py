"""OVSDB by TLS: whom a server must show itself to be, with files that are read again when they change.

The ovs package has one set of files for a whole process, and believes whomever its authority has signed, so an agent
could play a switch's database. Each remote has a class of stream of its own here, under a method of its own.
"""

import errno
import ssl
import time
import uuid
from typing import Any

import structlog

from controller.security.tls import Credentials, ServerTls, ShownEnd, shown_dpid, shown_end, shown_serial
from topology.certificates import Kind
from topology.handshake import why_failed, why_untrusted
from topology.protocol import SAID_AGAIN_S

_log = structlog.get_logger()


class SecuredRemote:
    """An OVSDB server that is dialled by TLS. Of one thread at a time.

    Attributes:
        shown: of the server that we talk to, which switch's its certificate is and when that ends; None while we talk
            to none. Any thread may read it.
    """

    def __init__(self, remote: str, tls: ServerTls, dpids: frozenset[int] | None) -> None:
        """Read the files.

        Args:
            remote: ``ssl:ADDRESS:PORT``.
            tls: what we show, and who signs what we are shown.
            dpids: of the switches whose queues are there; the server must have the certificate of one of them. None: of
                any switch.

        Raises:
            OSError: a file cannot be read, or does not fit the others.
        """
        self._remote = remote
        self._dpids = dpids
        self._credentials = Credentials(tls, ssl.TLSVersion.TLSv1_2, is_client=True)
        self._serial = 0
        self.shown: tuple[int, ShownEnd] | None = None
        self._said: dict[str, float] = {}

    @property
    def context(self) -> ssl.SSLContext:
        """The client's side of TLS, as the files are now."""
        return self._credentials.context

    def must_end(self) -> bool:
        """Take files that have changed into use; return whether the server that we talk to is revoked by now."""
        try:
            if not self._credentials.refreshed():
                return False
        except OSError as error:
            _log.error("tls.unusable", port="ovsdb", remote=self._remote, error=str(error))
            return False
        _log.info("tls.read", port="ovsdb", remote=self._remote)
        return self._serial in self._credentials.revoked

    def why_not(self, shown: Any) -> str:
        """Return why a server is not believed, from its certificate; empty if it is."""
        self._serial = shown_serial(shown)
        dpid = shown_dpid(shown)
        if dpid is None:
            return "its certificate is not that of a switch; make it by: headway pki switch"
        if self._dpids is None or dpid in self._dpids:
            self.shown = dpid, shown_end(shown, time.monotonic())
            return ""
        return f"its certificate is that of the switch {dpid:016x}, whose queues are not there"

    def refused(self, why: str) -> None:
        """Say why a server was not believed, or did not believe us; the same once a minute."""
        now_s = time.monotonic()
        self._said = {key: at_s for key, at_s in self._said.items() if now_s - at_s < SAID_AGAIN_S}
        if self._said.setdefault(why, now_s) == now_s:
            _log.warning("ovsdb.untrusted", remote=self._remote, why=why)


def registered(ovs: Any, secured: SecuredRemote) -> str:
    """Return the method under which the ovs package dials as a secured remote wants; it is known to it from now on."""

    class SecuredStream(ovs.stream.SSLStream):  # type: ignore[misc]
        """The package's stream, which asks who answers."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self._wrong: int | None = None  # of errno, 0 if all is well; None until the handshake is done

        @staticmethod
        def _open(suffix: str, dscp: int) -> tuple[int, Any]:
            address = ovs.socket_util.inet_parse_active(suffix, 0, raises=False)
            family, plain = ovs.socket_util.inet_create_socket_active(ovs.socket_util.socket.SOCK_STREAM, address)
            if plain is None:
                return family, None
            wrapped = secured.context.wrap_socket(plain, do_handshake_on_connect=False)
            error = ovs.socket_util.inet_connect_active(wrapped, address, family, dscp)
            if error:
                wrapped.close()
            return (error, None) if error else (0, wrapped)

        def connect(self) -> int:
            error: int = ovs.stream.Stream.connect(self)
            if error or self._wrong is not None:
                return error or self._wrong or 0
            try:
                self.socket.do_handshake()
                shown = self.socket.getpeercert()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return errno.EAGAIN
            except OSError as failed:
                self._wrong = errno.EPROTO
                secured.refused(_why(failed))
                return self._wrong
            why = secured.why_not(shown)
            if why:
                secured.refused(why)
            self._wrong = errno.EPROTO if why else 0
            return self._wrong

        def close(self) -> None:
            secured.shown = None
            super().close()

        def recv(self, n: int) -> tuple[int, Any]:
            try:
                return tuple(ovs.stream.Stream._recv(self, n))
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return errno.EAGAIN, ""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return 0, ""  # it hung up
            except ssl.SSLError as failed:  # by TLS 1.3 a server says only now that it does not believe us
                secured.refused(_why(failed))
                return errno.EPROTO, ""
            except OSError as failed:
                return failed.errno or errno.EIO, ""

    method = f"ssl-{uuid.uuid4().hex}"
    ovs.stream.Stream.register_method(method, SecuredStream)
    return method


def _why(failed: OSError) -> str:
    if isinstance(failed, ssl.SSLCertVerificationError):
        return why_untrusted(Kind.SWITCH, failed.verify_code, failed.verify_message)
    if isinstance(failed, ssl.SSLError):
        return why_failed(Kind.SWITCH, failed.reason or "")
    return f"it hung up: {failed.strerror or failed}"
