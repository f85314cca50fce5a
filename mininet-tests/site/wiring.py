"""Mininet's network, made with few starts of programs.

Mininet starts a program for each interface, each address and each pair of neighbours, and two for each cable that
goes. In the lab that was most of what a site's start cost, and all of its end. Here ``ip``, ``tc`` and ``sysctl`` are
given lists.
"""

import ctypes
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import groupby, takewhile
from pathlib import Path
from typing import TypeVar

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Host, Node

from mininet_tests.site.command import run

T = TypeVar("T")


class BareInterface(Intf):  # type: ignore[misc]  # Mininet has no types
    """An end of a cable. It is set when the cable is there."""

    def config(self, **_: object) -> dict[str, object]:
        """Do nothing yet."""
        return {}


class VethPair(Link):  # type: ignore[misc]  # Mininet has no types
    """A pair of interfaces (veth) that is made by ``plug`` and taken away by ``unplug``, with all others."""

    @classmethod
    def makeIntfPair(cls, *_: object, **__: object) -> None:  # noqa: N802 as Mininet calls it
        """Do nothing yet."""

    def stop(self) -> None:
        """Do nothing: ``unplug`` has."""


class BareHost(Host):  # type: ignore[misc]  # Mininet has no types
    """A host to which nothing is done that is not said by ``typed``."""

    def config(self, **_: object) -> dict[str, object]:
        """Do nothing yet."""
        return {}


def plug(net: Mininet) -> None:
    """Make all cables; those of their ends that are no machine's are up."""
    ends = [(cable.intf1, cable.intf2) for cable in net.links]
    made = [
        f"link add name {one} address {one.mac} netns {one.node.pid} type veth peer name {other} address {other.mac} "
        f"netns {other.node.pid}".split()
        for one, other in ends
    ]
    up = [["link", "set", end.name, "up"] for pair in ends for end in pair if not end.node.inNamespace]
    typed(None, (("ip", *words) for words in (*made, *up)))


def unplug(net: Mininet) -> None:
    """Take all cables away, by one end of each, and end the network."""
    # Bridges first: Open vSwitch would ask for each interface that it misses, and the kernel would look for a driver.
    run("ovs-vsctl", *(word for switch in net.switches for word in ("--", "--if-exists", "del-br", switch.name)))
    here = [
        next((end for end in (cable.intf1, cable.intf2) if not end.node.inNamespace), cable.intf1)
        for cable in net.links
    ]
    listed = "".join(f"link delete {end}\n" for end in here)
    with suppress(RuntimeError):  # one that a scenario has taken away already is no fault
        run("ip", "-force", "-batch", "-", text=listed)
    net.stop()


def typed(node: Node | None, commands: Iterable[tuple[str, ...]]) -> None:
    """Do what commands say, in a node's network namespace or, without one, in ours.

    Those of ``ip`` and of ``tc`` that follow each other with the same options are read by one process; to another
    program they are arguments.

    Raises:
        RuntimeError: one failed; the text has what it said.
    """
    for program, some in groupby(commands, key=_program):
        rest = [command[len(program) :] for command in some]
        if program[0] in {"ip", "tc"}:
            run_in(node, *program, "-batch", "-", text="".join(f"{' '.join(words)}\n" for words in rest))
        else:
            run_in(node, *program, *(word for words in rest for word in words))


def _program(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command's program with the options before its first argument, such as ``ip -6``."""
    return command[0], *takewhile(lambda word: word.startswith("-"), command[1:])


def run_in(node: Node | None, *command: str, text: str | None = None) -> str:
    """Return what a command, which reads ``text``, prints in a node's network namespace, or without one in ours.

    Raises:
        RuntimeError: it failed; with what it said.
    """
    if node is None or not node.inNamespace:
        return run(*command, text=text)
    return in_namespace(node.pid, partial(run, *command, text=text))


def in_namespace(pid: int, make: Callable[[], T]) -> T:
    """Return what ``make`` returns in the network namespace of a process; what it opens or starts stays there.

    Raises:
        OSError: the namespace cannot be entered.
        Exception: whatever ``make`` raises.
    """

    def made() -> T:
        enter(pid, "net")
        return make()

    with ThreadPoolExecutor(1) as pool:  # setns moves one thread only
        return pool.submit(made).result()


def enter(pid: int, *kinds: str) -> None:
    """Take namespaces of a process, each ``net`` or ``mnt``, for this thread.

    Raises:
        OSError: one cannot be entered.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in kinds:
        with Path(f"/proc/{pid}/ns/{kind}").open() as namespace:
            if libc.setns(namespace.fileno(), 0):  # os.setns is of Python 3.12
                raise OSError(ctypes.get_errno(), f"cannot enter the namespace {kind} of process {pid}")
