"""Programs on what leaves and what comes: on each interface of this network namespace but the loopback.

They are attached by links of tcx, which the kernel takes away when the agent has ended, however it has:
filters of tc, which older kernels have too, would stay.
"""

import errno
import os
import resource
import socket
from collections.abc import Mapping

from hostagent.errors import BpfError
from hostagent.kernel.loader import BpfObject, TrafficWay
from hostagent.log import log

MARKING = {TrafficWay.EGRESS: "headway_egress"}  # what an IPv6 socket sends to an IPv4 peer
PROGRAMS = {TrafficWay.INGRESS: "headway_ingress", **MARKING}  # and the end of a transfer
NOT_ALLOWED = (errno.EPERM, errno.EACCES)  # whatever the interface
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)  # likewise
RESERVED_FILES = 64  # of those that the agent may have open: for its streams, and for who asks for its status


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
            without: the event to log where the kernel has no tcx, or an interface is left without them.

        Raises:
            BpfError: we may not.
        """
        self._object = loaded
        self._programs = programs
        self._without = without
        self._links: dict[int, list[int]] = {}  # descriptors by the interface's index
        self._refused: dict[int, int] = {}  # the errno that an interface without them was refused with, by its index
        self._has_tcx = True
        self.follow()

    @property
    def can_attach(self) -> bool:
        """Whether the kernel has tcx, and room for them at each interface."""
        return self._has_tcx and not self._refused

    def follow(self) -> None:
        """Attach them to interfaces that have come, or were refused before, and forget those that have gone.

        Raises:
            BpfError: we may not.
        """
        there = {index: name for index, name in socket.if_nameindex() if name != "lo"} if self._has_tcx else {}
        for index in self._links.keys() - there.keys():
            self._detach(index)
        self._refused = {index: refusal for index, refusal in self._refused.items() if index in there}
        for index in sorted(there.keys() - self._links.keys()):
            try:
                self._attach(index)
            except BpfError as error:
                if error.errno == errno.EINVAL and not self._links:
                    self._has_tcx = False
                    log.info(self._without, why="Linux 6.6 or newer is needed for it")
                    return
                if error.errno in NOT_ALLOWED:
                    raise
                self._note_refusal(index, there[index], error)
                if error.errno in TOO_MANY_FILES:
                    return
            else:
                self._refused.pop(index, None)

    def _attach(self, index: int) -> None:
        """Attach all of them to an interface, or none."""
        self._links[index] = []
        try:
            for way, program in self._programs.items():
                self._links[index].append(self._object.attached_to(way, program, index))
        except BpfError:
            self._detach(index)
            raise
        most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if max(self._links[index]) >= most_files - RESERVED_FILES:  # each had the lowest number that was free
            self._detach(index)
            raise BpfError(f"attaching to interface {index}", errno.EMFILE)

    def _note_refusal(self, index: int, name: str, error: BpfError) -> None:
        """Say once why an interface is left without them; it is tried again."""
        if error.errno == errno.ENODEV:  # it has gone meanwhile
            return
        if self._refused.get(index) != error.errno:
            self._refused[index] = error.errno
            log.warning(self._without, interface=name, why=str(error))

    def close(self) -> None:
        """Take them off all interfaces."""
        for index in tuple(self._links):
            self._detach(index)

    def _detach(self, index: int) -> None:
        for link in self._links.pop(index):
            os.close(link)
