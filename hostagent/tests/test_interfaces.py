"""Which interfaces have the programs, against a kernel that refuses some of them."""

import errno
import os
import resource
import socket

import pytest

from hostagent.errors import BpfError
from hostagent.kernel.interfaces import RESERVED_FILES, Interfaces
from hostagent.log import log

NAMES = {1: "lo", 2: "eth0", 3: "eth1"}


class RefusingObject:
    """A loaded object whose programs the kernel refuses at some interfaces, by index and errno."""

    def __init__(self, refused):
        self.refused = refused
        self.tried = []

    def attached_to(self, way, program, interface, *, first=False):
        self.tried.append((interface, program))
        if interface in self.refused:
            raise BpfError(f"attaching {program} to interface {interface}", self.refused[interface])
        return os.open(os.devnull, os.O_RDONLY)


@pytest.fixture(autouse=True)
def _two_interfaces(monkeypatch):
    monkeypatch.setattr(socket, "if_nameindex", lambda: list(NAMES.items()))


def attached(refused):
    loaded = RefusingObject(refused)
    return loaded, Interfaces(loaded)


def test_an_interface_that_refuses_is_left_alone_said_once_and_tried_again():
    with log.captured() as logs:
        loaded, interfaces = attached({2: errno.ERANGE})
        assert not interfaces.can_attach, "nothing is promised that one of them does not do"
        interfaces.follow()
        loaded.refused = {}
        interfaces.follow()
        assert interfaces.can_attach
    interfaces.close()
    (said,) = logs
    assert (said["event"], said["log_level"], said["interface"]) == ("agent.tail_not_copied", "warning", "eth0")
    assert "Numerical result out of range" in said["why"]
    assert [tried for tried in loaded.tried if tried[0] == 2] == [(2, "headway_ingress")] * 3 + [(2, "headway_egress")]
    assert len([tried for tried in loaded.tried if tried[0] == 3]) == 2, "what is attached is not attached again"


def test_an_interface_that_refuses_while_the_agent_runs_ends_nothing(monkeypatch):
    loaded, interfaces = attached({})
    loaded.refused = {4: errno.ENOMEM}
    monkeypatch.setattr(socket, "if_nameindex", lambda: [*NAMES.items(), (4, "veth4")])
    with log.captured() as logs:
        interfaces.follow()
    interfaces.close()
    assert [one["interface"] for one in logs] == ["veth4"]


def test_interfaces_that_there_are_no_open_files_for_leave_the_agent_those_that_it_needs(monkeypatch, cleanup):
    there = [(index, f"veth{index}") for index in range(2, 102)]
    monkeypatch.setattr(socket, "if_nameindex", lambda: there)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    cleanup.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    first_free = os.open(os.devnull, os.O_RDONLY)
    os.close(first_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + RESERVED_FILES + 20, hard))
    with log.captured() as logs:
        loaded, interfaces = attached({})
        cleanup.callback(interfaces.close)
        interfaces.follow()
    for _ in range(RESERVED_FILES // 2):
        cleanup.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    assert (2, "headway_egress") in loaded.tried
    assert not interfaces.can_attach
    (said,) = logs
    assert "Too many open files" in said["why"]


def test_a_kernel_without_tcx_is_asked_once():
    with log.captured() as logs:
        loaded, interfaces = attached({2: errno.EINVAL, 3: errno.EINVAL})
        interfaces.follow()
    assert not interfaces.can_attach
    assert [one["why"] for one in logs] == ["Linux 6.6 or newer is needed for it"]
    assert len(loaded.tried) == 1


def test_an_interface_that_has_gone_meanwhile_is_not_spoken_of():
    with log.captured() as logs:
        _, interfaces = attached({2: errno.ENODEV})
    interfaces.close()
    assert interfaces.can_attach
    assert not logs


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.EACCES])
def test_who_may_not_attach_hears_so(refusal):
    with pytest.raises(BpfError) as refused:
        attached({2: refusal})
    assert refused.value.errno == refusal
