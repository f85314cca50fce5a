"""The tables of a switch, and what a rule is that sends packets on to the next. Pure."""

from controller.southbound.openflow.addressing import Fields
from controller.southbound.openflow.state import Bits, Rule, cookie, match

ARRIVE_TABLE, SOURCE_TABLE, TARGET_TABLE, FLOW_TABLE, SENDER_TABLE, LEAVE_TABLE = range(6)
COOKIE = cookie(1)


def goes_on(
    table_id: int,
    priority: int,
    fields: Fields,
    bits: Bits | None = None,
    *,
    pop_vlan: bool = False,
    meter_id: int | None = None,
) -> Rule:
    """Return the rule by which matching packets go on to the next table, with what it is told of them."""
    return Rule(
        table_id,
        priority,
        match(fields),
        COOKIE,
        meter_id=meter_id,
        pop_vlan=pop_vlan,
        metadata=bits,
        goto_table=table_id + 1,
    )


def ends(table_id: int, priority: int, fields: Fields) -> Rule:
    """Return the rule by which matching packets end."""
    return Rule(table_id, priority, match(fields), COOKIE)
