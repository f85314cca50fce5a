"""Programs on what leaves and what comes: on each interface of this network namespace but the loopback.

They are attached by links of tcx, which the kernel takes away when the agent has ended, however it has.
"""

import errno
import os
import socket
from collections.abc import Mapping

from hostagent.errors import BpfError
from hostagent.kernel.loader import BpfObject, TrafficWay
from hostagent.log import log

MARKING = {TrafficWay.EGRESS: "headway_egress"}  # what an IPv6 socket sends to an IPv4 peer
PROGRAMS = {TrafficWay.INGRESS: "headway_ingress", **MARKING}  # and the end of a transfer


class Interfaces:
    """The interfaces that have the programs. Where the kernel has no tcx (before Linux 6.6) none has."""

    def __init__(
        self,
        loaded: BpfObject,
        programs: Mapping[TrafficWay, str] = PROGRAMS,
        without: str = "agent.tail_not_copied",
    ) -> None:
        """Attach them to all interfaces there are.

        Args:
            loaded: the object that has the programs.
            programs: their names.
            without: the event to log where the kernel has no tcx.

        Raises:
            BpfError: the kernel refused.
        """
        self._object = loaded
        self._programs = programs
        self._without = without
        self._links: dict[int, list[int]] = {}  # descriptors by the interface's index
        self._has_tcx = True
        self.follow()

    @property
    def can_attach(self) -> bool:
        """Whether the kernel has tcx."""
        return self._has_tcx

    def follow(self) -> None:
        """Attach them to interfaces that have come, and forget those that have gone.

        Raises:
            BpfError: the kernel refused.
        """
        there = {index for index, name in socket.if_nameindex() if name != "lo"} if self._has_tcx else set()
        for index in self._links.keys() - there:
            self._detach(index)
        for index in sorted(there - self._links.keys()):
            self._links[index] = []
            try:
                for way, program in self._programs.items():
                    self._links[index].append(self._object.attached_to(way, program, index))
            except BpfError as error:
                self._detach(index)
                if error.errno == errno.ENODEV:  # it has gone meanwhile
                    continue
                if error.errno != errno.EINVAL or self._links:
                    raise
                self._has_tcx = False
                log.info(self._without, why="Linux 6.6 or newer is needed for it")
                return

    def close(self) -> None:
        """Take them off all interfaces."""
        for index in tuple(self._links):
            self._detach(index)

    def _detach(self, index: int) -> None:
        for link in self._links.pop(index):
            os.close(link)
