"""What a switch's database says of its bridges: one question of OVSDB (RFC 7047), nothing is changed."""

import errno
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.security.tls import ServerTls
from controller.southbound.ovsdb.replica import ovs_package
from controller.southbound.ovsdb.secured import SecuredRemote, registered

WITHIN_S = 5.0
OTHERS_KINDS = ("internal", "patch")  # of a bridge itself, and between two bridges of a machine: nothing is at them
_ASKED = {
    "Open_vSwitch": ("external_ids",),
    "Bridge": ("name", "datapath_id", "ports"),
    "Port": ("_uuid", "name", "interfaces", "tag"),
    "Interface": ("_uuid", "name", "type", "ofport", "link_speed", "mtu"),
}


class NotAsked(Exception):
    """A database did not answer, or not as one of Open vSwitch does."""


class AskedByTls(SecuredRemote):
    """A database that is asked by TLS; it must have the certificate of a switch, of whichever."""

    def __init__(self, remote: str, tls: ServerTls) -> None:
        """Read the files; raise OSError if one cannot be read, or does not fit the others."""
        super().__init__(remote, tls, None)
        self.why = ""

    def refused(self, why: str) -> None:
        """Keep why the database was not believed, or did not believe us."""
        self.why = why


@dataclass(frozen=True, slots=True)
class FoundPort:
    """A port of a bridge that something may be at.

    Attributes:
        name: of its interface.
        port_no: its OpenFlow number; 0 while it has none.
        rate_bps: of its interface; 0 if that does not say.
        mtu_bytes: the same.
        interfaces: how many it has; above 1 it is a bond.
    """

    name: str
    port_no: int
    rate_bps: int
    mtu_bytes: int
    interfaces: int = 1


@dataclass(frozen=True, slots=True)
class FoundBridge:
    """A bridge.

    Attributes:
        name: its.
        dpid: its datapath id.
        machine: the name of the machine it is on; empty if that does not say.
        ports: in the order of their numbers.
    """

    name: str
    dpid: int
    machine: str
    ports: tuple[FoundPort, ...]


def bridges(remote: str, tls: ServerTls | None = None, within_s: float = WITHIN_S) -> tuple[FoundBridge, ...]:
    """Return the bridges that a database has, in the order of their names.

    Args:
        remote: its address, as ``tcp:192.0.2.11:6640``, ``ssl:...`` or ``unix:/var/run/openvswitch/db.sock``.
        tls: what it is shown, and who signs what it shows, where it is asked by TLS.
        within_s: how long it may take.

    Raises:
        NotAsked: it does not answer, or not as one of Open vSwitch does; or a file of TLS cannot be used.
    """
    rows = dict(zip(_ASKED, _asked(remote, tls, within_s), strict=True))
    machine = next((_map(row["external_ids"]).get("hostname", "") for row in rows["Open_vSwitch"]), "")
    ports, interfaces = ({_uuids(row["_uuid"])[0]: row for row in rows[table]} for table in ("Port", "Interface"))
    found = []
    for bridge in sorted(rows["Bridge"], key=lambda row: str(row["name"])):
        its_ports = (ports[uuid] for uuid in _uuids(bridge["ports"]) if uuid in ports)
        shown = [port for row in its_ports for port in _port(row, interfaces)]
        dpid = int(str(bridge["datapath_id"]), 16) if isinstance(bridge["datapath_id"], str) else 0
        found.append(
            FoundBridge(bridge["name"], dpid, machine, tuple(sorted(shown, key=lambda p: (p.port_no, p.name))))
        )
    return tuple(found)


def _port(row: Mapping[str, Any], interfaces: Mapping[str, Mapping[str, Any]]) -> Iterable[FoundPort]:
    its = [interfaces[uuid] for uuid in _uuids(row["interfaces"]) if uuid in interfaces]
    if its and its[0]["type"] not in OTHERS_KINDS:
        first = its[0]
        numbers = (_number(first[column]) for column in ("ofport", "link_speed", "mtu"))
        port_no, rate_bps, mtu_bytes = (max(0, number) for number in numbers)
        yield FoundPort(str(first["name"]), port_no, rate_bps, mtu_bytes, len(its))


def _asked(remote: str, tls: ServerTls | None, within_s: float) -> list[list[dict[str, Any]]]:
    """Return the rows of each table that is asked for."""
    ovs = ovs_package()
    if tls is None:
        return _selected(ovs, remote, remote, within_s)
    try:
        secured = AskedByTls(remote, tls)
    except OSError as error:
        raise NotAsked(str(error)) from error
    try:
        return _selected(ovs, remote, f"{registered(ovs, secured)}:{remote.partition(':')[2]}", within_s)
    except NotAsked as error:
        raise (NotAsked(f"{remote}: {secured.why}") if secured.why else error) from error


def _selected(ovs: Any, remote: str, dialled: str, within_s: float) -> list[list[dict[str, Any]]]:
    deadline_s = time.monotonic() + within_s
    error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open(dialled), timeout=round(within_s * 1000))
    if error:
        raise NotAsked(f"{remote}: {_said(error)}: {_cure(error)}")
    connection = ovs.jsonrpc.Connection(stream)
    try:
        selects = [{"op": "select", "table": t, "where": [], "columns": list(columns)} for t, columns in _ASKED.items()]
        request = ovs.jsonrpc.Message.create_request("transact", ["Open_vSwitch", *selects])
        error = connection.send(request)
        while not error:
            connection.run()
            error, answer = connection.recv()
            if answer is not None and answer.id == request.id:
                return _rows(remote, answer)
            if error == ovs.jsonrpc.errno.EAGAIN:
                error = _waited(ovs, connection, deadline_s)
        raise NotAsked(f"{remote}: {_said(error)}")
    finally:
        connection.close()


def _waited(ovs: Any, connection: Any, deadline_s: float) -> int:
    """Wait until there is something to read; return 0, or ETIMEDOUT if it is too late."""
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        return int(ovs.jsonrpc.errno.ETIMEDOUT)
    poller = ovs.poller.Poller()
    connection.wait(poller)
    connection.recv_wait(poller)
    poller.timer_wait(max(1, round(left_s * 1000)))
    poller.block()
    return 0


def _rows(remote: str, answer: Any) -> list[list[dict[str, Any]]]:
    results = answer.result
    if answer.error is not None or not isinstance(results, list) or not all("rows" in one for one in results):
        raise NotAsked(f"{remote}: not a database of Open vSwitch: {answer.error or results}")
    return [one["rows"] for one in results]


def _cure(error: int) -> str:
    if error in {errno.EACCES, errno.EPERM}:
        return "its socket is root's: do it by sudo"
    return "is it there that ovs-vsctl set-manager lets one ask?"


def _said(error: int) -> str:
    return "no answer" if error < 0 else os.strerror(error)


def _uuids(value: Any) -> list[str]:
    """Return the row identities in a value of OVSDB's JSON (RFC 7047 section 5.1)."""
    kind, content = value
    return [str(content)] if kind == "uuid" else [str(uuid) for _, uuid in content]


def _number(value: Any) -> int:
    """Return a number, 0 for the empty set."""
    return value if isinstance(value, int) else 0


def _map(value: Any) -> dict[str, str]:
    return dict(value[1])
