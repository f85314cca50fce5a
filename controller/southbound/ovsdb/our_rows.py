"""Our rows of an OVSDB, over the ovs package's replica: found, written, and fenced by the term that wrote them."""

from collections.abc import Collection, Mapping
from typing import Any

from controller.southbound.errors import DatabaseOutranked, ForeignQos, NoSuchPort, RateTooHigh
from controller.southbound.ovsdb.queues import PortQueues
from controller.southbound.ovsdb.rows import (
    MOST_32_BITS_BPS,
    OWNER_KEY,
    QOS_TYPE,
    TERM_KEY,
    keeps_64_bits,
    number,
    port_queues_of,
    queue_config,
)


class OurRows:
    """The rows; whoever calls holds the lock of the replica."""

    def __init__(self, idl: Any, remote: str, term: int | None) -> None:
        """Take a replica.

        Args:
            idl: that.
            remote: the server, for errors.
            term: under which we lead; None for who writes though somebody leads.
        """
        self._idl = idl
        self._term = term
        self.remote = remote

    def lead(self, term: int) -> None:
        """Write under a term from now on."""
        self._term = term

    @property
    def top(self) -> Any:
        """The one row of table Open_vSwitch."""
        return next(iter(self._idl.tables["Open_vSwitch"].rows.values()))

    @property
    def reached_cfg(self) -> int:
        """The configuration on which ovs-vswitchd has acted; -1 while a database made anew has no row that says it."""
        return max((row.cur_cfg for row in self._idl.tables["Open_vSwitch"].rows.values()), default=-1)

    def fence(self, port_names: Collection[str]) -> bool:
        """Let a transaction be refused once a later term has written these ports; return whether it raises their term.

        Our QoS rows carry the term under which they were written last. The transaction raises it to ours, and waits for
        it to be what we have seen (RFC 7047, section 5.2.6); this comes before anything else is written in it.

        Raises:
            DatabaseOutranked: somebody has.
        """
        if self._term is None:
            return False
        raised = False
        for qos in self._idl.tables["QoS"].rows.values():
            ids = qos.external_ids
            if ids.get(OWNER_KEY) not in port_names:
                continue
            found = number(ids, TERM_KEY)
            if found > self._term:
                raise DatabaseOutranked(self.remote, self._term, found)
            qos.verify("external_ids")
            if found < self._term:
                qos.external_ids = {**ids, TERM_KEY: str(self._term)}
                raised = True
        return raised

    def port(self, name: str) -> Any:
        """Return the row of a port.

        Raises:
            NoSuchPort: there is none.
        """
        for row in self._idl.tables["Port"].rows.values():
            if row.name == name:
                return row
        raise NoSuchPort(self.remote, name)

    def our_qos(self, port: Any) -> Any | None:
        """Return the QoS row of a port, or None.

        Raises:
            ForeignQos: it is not ours.
        """
        if not port.qos:
            return None
        qos = port.qos[0]
        if OWNER_KEY not in qos.external_ids:
            raise ForeignQos(port.name, str(qos.uuid), qos.type)
        return qos

    def take_off_others(self, port_names: Collection[str], dpids: Collection[int]) -> bool:
        """Take our queues off what ports of some switches have them beside those named; return whether any had.

        Raises:
            DatabaseOutranked: somebody of a later term has written there.
        """
        bridges = [row for row in self._idl.tables["Bridge"].rows.values() if _dpid(row) in dpids]
        others = [
            port
            for port in (port for bridge in bridges for port in bridge.ports)
            if port.name not in port_names and any(qos.external_ids.get(OWNER_KEY) == port.name for qos in port.qos)
        ]
        self.fence([port.name for port in others])
        for port in others:
            port.verify("qos")
            port.qos = []
            for row in (*self._ours("QoS", port.name), *self._ours("Queue", port.name)):
                row.delete()
        return bool(others)

    def write(self, transaction: Any, port_name: str, wanted: PortQueues) -> bool:
        """Write the difference for one port into the transaction; return whether there is one.

        The package converts a column at each look and each write, and a circuit that changes hands waits for it: so no
        configuration is looked at twice, and nothing is written that is there.

        Raises:
            NoSuchPort: there is none.
            ForeignQos: it carries a QoS that is not ours.
            RateTooHigh: this Open vSwitch would set another rate.
        """
        port = self.port(port_name)
        if wanted.port_max_bps > MOST_32_BITS_BPS and not keeps_64_bits(version := "".join(self.top.ovs_version)):
            raise RateTooHigh(port_name, wanted.port_max_bps, MOST_32_BITS_BPS, version)
        qos = self.our_qos(port)
        present = PortQueues(0, ()) if qos is None else port_queues_of(qos)
        if present == wanted:
            return False
        if qos is None:
            port.verify("qos")  # if somebody gives the port a QoS meanwhile, we want to see that, not to replace it
            left = self._ours("QoS", port_name)  # somebody may have taken it off the port: it is put back as it was
            qos = left[0] if left else self._insert(transaction, "QoS", port_name)
            port.qos = qos
        if present.port_max_bps != wanted.port_max_bps:
            qos.type = QOS_TYPE
            qos.other_config = {"max-rate": str(wanted.port_max_bps)}
        before = dict(qos.queues)
        rows = self._numbered(transaction, port_name, qos, before, [queue.queue_id for queue in wanted.queues])
        known = {queue.queue_id: queue for queue in present.queues}
        for queue in wanted.queues:
            row = rows[queue.queue_id]
            if queue != known.get(queue.queue_id) or row != before[queue.queue_id]:
                row.other_config = queue_config(queue)
        return True

    def _numbered(
        self, transaction: Any, port_name: str, qos: Any, before: Mapping[int, Any], numbers: list[int]
    ) -> dict[int, Any]:
        """Return a QoS's queue rows, one for each number: made, taken up again or deleted as need be.

        A row that is not ours is not written: it is taken out of the QoS, as another may have it too.
        """
        old = {number: row for number, row in before.items() if OWNER_KEY in row.external_ids}
        if sorted(before) == sorted(old) == numbers:
            return old
        left = [row for row in self._ours("Queue", port_name) if row not in old.values()]
        gone = [row for number, row in old.items() if number not in numbers]
        rows = {
            number: old.get(number) or (left.pop() if left else self._insert(transaction, "Queue", port_name))
            for number in numbers
        }
        qos.queues = rows
        for row in gone + left:
            row.delete()
        return rows

    def _ours(self, table: str, port_name: str) -> list[Any]:
        """Return our rows for a port."""
        return [row for row in self._idl.tables[table].rows.values() if row.external_ids.get(OWNER_KEY) == port_name]

    def _insert(self, transaction: Any, table: str, port_name: str) -> Any:
        """Return a new row that is marked as ours, a QoS with the term too."""
        row = transaction.insert(transaction.idl.tables[table])
        row.external_ids = {OWNER_KEY: port_name}
        if table == "QoS":
            if self._term is not None:
                row.external_ids = {OWNER_KEY: port_name, TERM_KEY: str(self._term)}
            row.queues = {}  # the package does not show a new row's columns before they are set
        return row


def _dpid(bridge: Any) -> int | None:
    """Return the datapath id of a bridge; None before it has one."""
    return int(bridge.datapath_id[0], 16) if bridge.datapath_id else None
