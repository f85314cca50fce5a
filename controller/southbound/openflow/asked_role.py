"""Whether a switch says that we are its one master, asked anew."""

import threading
from typing import Any

from controller.southbound.openflow import wire


class AskedRole:
    """One question at a time; its answer comes in another thread. A switch that knows no roles says nothing for us."""

    def __init__(self, datapath: Any) -> None:
        self._datapath = datapath
        self._xid: int | None = None
        self._is_master = False
        self._said = threading.Event()

    def ask(self) -> None:
        """Send the question; what was said before counts no more."""
        self._said.clear()
        request = wire.role_question(self._datapath)
        self._xid = self._datapath.set_xid(request)
        self._datapath.send_msg(request)

    def takes(self, msg: Any) -> bool:
        """Take in an answer; return whether it is to our last question."""
        if msg.xid != self._xid:
            return False
        self._is_master = not wire.is_error(msg) and wire.is_master(msg)
        self._said.set()
        return True

    def is_master(self, timeout_s: float) -> bool:
        """Return whether the switch has said so; who does not answer in time has not."""
        return self._said.wait(timeout_s) and self._is_master
