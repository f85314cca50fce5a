"""The ovs package's replica of an OVSDB: made of the little of the schema that we read and write."""

import select
from typing import Any

from controller.absent import absent
from controller.southbound.ovsdb.secured import SecuredRemote, registered

# The package waits twice as long after each vain attempt, up to 8 s: longer than a change may take.
_RECONNECT_MS = 1_000


def ovs_package() -> Any:
    """Return the ovs package, loaded and mended; what of it connects to databases is in it."""
    with absent("eventlet"):  # it is looked for, to ask whether it is in use; its 250 modules take 0.2 s
        import ovs.db.idl
        import ovs.jsonrpc
        import ovs.poller
        import ovs.stream
    # The package polls with select(), which fails from file descriptor 1024 on; it says itself how to mend it.
    ovs.poller.SelectPoll = select.poll
    return ovs


def replica(remote: str, secured: SecuredRemote | None) -> Any:
    """Return the ovs package's replica of the database, which connects when it is run."""
    ovs = ovs_package()
    if secured is not None:
        remote = f"{registered(ovs, secured)}:{remote.partition(':')[2]}"
    schema = ovs.db.idl.SchemaHelper(schema_json=_schema())
    schema.register_all()
    idl = ovs.db.idl.Idl(remote, schema, leader_only=False)
    idl._session.reconnect.set_backoff(_RECONNECT_MS, _RECONNECT_MS)
    return idl


def _schema() -> dict[str, Any]:
    """Return the part of the Open_vSwitch schema that we read and write (ovs-vswitchd.conf.db(5)).

    Written out here, because the file comes with Open vSwitch, which need not be on the controller's machine.
    """
    text_map = {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}
    queue_map = {
        "type": {"key": "integer", "value": {"type": "uuid", "refTable": "Queue"}, "min": 0, "max": "unlimited"}
    }
    text_or_none = {"type": {"key": {"type": "string"}, "min": 0, "max": 1}}
    qos_or_none = {"type": {"key": {"type": "uuid", "refTable": "QoS"}, "min": 0, "max": 1}}
    ports = {"type": {"key": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": "unlimited"}}
    columns: dict[str, dict[str, Any]] = {
        "Open_vSwitch": {"next_cfg": {"type": "integer"}, "cur_cfg": {"type": "integer"}, "ovs_version": text_or_none},
        "Bridge": {"datapath_id": text_or_none, "ports": ports},
        "Port": {"name": {"type": "string"}, "qos": qos_or_none},
        "QoS": {"type": {"type": "string"}, "other_config": text_map, "external_ids": text_map, "queues": queue_map},
        "Queue": {"other_config": text_map, "external_ids": text_map},
    }
    tables = {name: {"columns": each, "isRoot": name not in ("Bridge", "Port")} for name, each in columns.items()}
    return {"name": "Open_vSwitch", "version": "8.0.0", "tables": tables}
