"""What of a bridge is Headway's, as Open vSwitch's own tools show it, and how they take it out."""

import errno
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.southbound.openflow.state import COOKIE_MASK, COOKIE_OURS, GROUP_IDS, METER_IDS, is_ours
from controller.southbound.ovsdb.rows import OWNER_KEY

OURS = f"cookie={COOKIE_OURS:#x}/{COOKIE_MASK:#x}"
OFCTL = ("ovs-ofctl", "--timeout=20", "-O", "OpenFlow13")
VSCTL = ("ovs-vsctl", "--timeout=20")

Run = Callable[..., str]


class NotCleaned(Exception):
    """A tool failed; it says why."""


@dataclass(frozen=True, slots=True)
class OurParts:
    """What of a bridge is ours.

    Attributes:
        rules: as the switch shows them.
        meters: their numbers.
        groups: their numbers.
        kept: numbers of ours that rules of others use, each with its kind: they stay, or those rules would go too.
        ports: names of the ports that have a QoS of ours.
        qos: the identities of our rows.
        queues: the same.
        controllers: targets of the controllers that are connected.
    """

    rules: tuple[str, ...]
    meters: tuple[int, ...]
    groups: tuple[int, ...]
    kept: tuple[str, ...]
    ports: tuple[str, ...]
    qos: tuple[str, ...]
    queues: tuple[str, ...]
    controllers: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        """Whether nothing of it is ours."""
        return not (self.rules or self.meters or self.groups or self.qos or self.queues)


def tool(*command: str) -> str:
    """Return what a tool of Open vSwitch prints.

    Raises:
        NotCleaned: it is not there, or failed.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotCleaned(f"{command[0]}: {error.strerror}: this is done on the switch's machine") from error
    if done.returncode:
        why = done.stderr.strip().partition("\n")[0] or f"{command[0]} ended with {done.returncode}"
        cure = ": its socket is root's: do it by sudo" if os.strerror(errno.EACCES) in done.stderr else ""
        raise NotCleaned(why + cure)
    return done.stdout


def our_parts(bridge: str, run: Run = tool) -> OurParts:
    """Return what of a bridge is ours.

    Raises:
        NotCleaned: a tool failed.
    """
    names = set(run(*VSCTL, "list-ports", bridge).split())
    tables = {table: _rows(run, table, columns) for table, columns in _COLUMNS.items()}
    qos, queues, ports = _queue_rows(names, tables)
    all_rules = _entries(run(*OFCTL, "--no-stats", "dump-flows", bridge))
    rules = tuple(rule for rule in all_rules if is_ours(int(rule.partition("cookie=")[2].partition(",")[0], 16)))
    meters = _numbers(r"\bmeter=(\d+)", run(*OFCTL, "dump-meters", bridge), METER_IDS)
    groups = _numbers(r"\bgroup_id=(\d+)", run(*OFCTL, "dump-groups", bridge), GROUP_IDS)
    used = "\n".join(rule for rule in all_rules if rule not in rules)
    kept_meters = _numbers(r"\bmeter:(\d+)", used, METER_IDS)
    kept_groups = _numbers(r"\bgroup:(\d+)", used, GROUP_IDS)
    controllers = set(_uuids(_cell(tables["Bridge"], "name", bridge, "controller")))
    return OurParts(
        rules,
        tuple(each for each in meters if each not in kept_meters),
        tuple(each for each in groups if each not in kept_groups),
        (*(f"meter {each}" for each in kept_meters), *(f"group {each}" for each in kept_groups)),
        ports,
        qos,
        queues,
        tuple(
            row["target"]
            for row in tables["Controller"]
            if row["is_connected"] is True and _uuids(row["_uuid"])[0] in controllers
        ),
    )


def taken_out(bridge: str, parts: OurParts, run: Run = tool) -> None:
    """Take what is ours out of a bridge; rules first, for a meter that goes takes its rules with it.

    Raises:
        NotCleaned: a tool failed; what was taken out before stays out, and it may be done again.
    """
    if parts.rules:
        run(*OFCTL, "del-flows", bridge, OURS)
    for group in parts.groups:
        run(*OFCTL, "del-groups", bridge, f"group_id={group}")
    for meter in parts.meters:
        run(*OFCTL, "del-meters", bridge, f"meter={meter}")
    steps = [["clear", "port", port, "qos"] for port in parts.ports]
    steps += [["destroy", "qos", row] for row in parts.qos] + [["destroy", "queue", row] for row in parts.queues]
    if steps:
        run(*VSCTL, *(word for step in steps for word in ("--", *step)))


_COLUMNS = {
    "Bridge": "name,controller",
    "Controller": "_uuid,target,is_connected",
    "Port": "name,qos",
    "QoS": "_uuid,external_ids,queues",
    "Queue": "_uuid,external_ids",
}
Row = Mapping[str, Any]


def _queue_rows(
    names: set[str], tables: Mapping[str, list[Row]]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return our QoS and queue rows of a bridge's ports and of ports that are no more, and the ports that have one.

    What somebody else has taken into use, a port of another bridge or a QoS that is not ours, stays.
    """
    everywhere = {row["name"] for row in tables["Port"]}
    ours = {
        table: {_uuids(row["_uuid"])[0] for row in tables[table] if _is_here(row, names, everywhere)}
        for table in ("QoS", "Queue")
    }
    at = {row["name"]: _uuids(row["qos"]) for row in tables["Port"]}
    qos = ours["QoS"] - {row for name, rows in at.items() if name not in names for row in rows}
    used = {row for each in tables["QoS"] if _uuids(each["_uuid"])[0] not in qos for row in _uuids(each["queues"])}
    ports = (name for name in names if qos & set(at.get(name, ())))
    return tuple(sorted(qos)), tuple(sorted(ours["Queue"] - used)), tuple(sorted(ports))


def _is_here(row: Row, names: set[str], everywhere: set[str]) -> bool:
    """Return whether a row is ours, for a port of this bridge or for one that is no more."""
    port = dict(row["external_ids"][1]).get(OWNER_KEY)
    return port is not None and (port in names or port not in everywhere)


def _rows(run: Run, table: str, columns: str) -> list[Row]:
    shown = json.loads(run(*VSCTL, "--format=json", f"--columns={columns}", "list", table))
    return [dict(zip(shown["headings"], row, strict=True)) for row in shown["data"]]


def _cell(rows: list[Row], column: str, value: str, wanted: str) -> Any:
    return next(row[wanted] for row in rows if row[column] == value)


def _uuids(value: Any) -> list[str]:
    """Return the identities in a value as OVSDB writes it (RFC 7047 section 5.1).

    >>> _uuids(["map", [[0, ["uuid", "a"]], [1, ["uuid", "b"]]]]), _uuids(["uuid", "c"]), _uuids(["set", []])
    (['a', 'b'], ['c'], [])
    """
    kind, content = value
    if kind == "uuid":
        return [content]
    return [_uuids(one[1] if kind == "map" else one)[0] for one in content]


def _entries(shown: str) -> tuple[str, ...]:
    """Return the rules that a switch shows; it does not show a cookie that is 0."""
    lines = (line.strip() for line in shown.splitlines() if "actions=" in line)
    return tuple(sorted(line if line.startswith("cookie=") else f"cookie=0x0, {line}" for line in lines))


def _numbers(pattern: str, shown: str, ours: range) -> tuple[int, ...]:
    return tuple(sorted({number for each in re.findall(pattern, shown) if (number := int(each)) in ours}))
