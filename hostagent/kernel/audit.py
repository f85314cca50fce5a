"""What the kernel's maps should hold, against what they do. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from hostagent.kernel.layout import SLOT, Layout
from hostagent.kernel.plan import KernelPlan
from topology.protocol import Fault

CONTROL = SLOT.pack(0)


@dataclass(frozen=True, slots=True)
class Contents:
    """What three maps hold, as far as it is the agent that writes them: bytes by key.

    Attributes:
        matches: which sockets have which slot.
        entries: the slots' rates; of the plan's slots only, for no socket comes to another.
        control: the lease.
    """

    matches: Mapping[bytes, bytes]
    entries: Mapping[bytes, bytes]
    control: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Difference:
    """One element that is not as it should be.

    Attributes:
        where: the field of ``Contents``.
        key: its key.
        value: what it should be; None if it should not be there.
        fault: how it differs.
        name: the allocation's, empty if it is none's.
    """

    where: str
    key: bytes
    value: bytes | None
    fault: Fault
    name: str


def wanted_contents(layout: Layout, plan: KernelPlan, grants: Mapping[int, int], control: bytes) -> Contents:
    """Return what the maps should hold for a plan.

    Args:
        layout: of the maps.
        plan: in force.
        grants: of its watched entries, by slot: under which epoch they have their rate.
        control: the lease.
    """
    held = plan.held.values()
    return Contents(
        {layout.match_bytes(match): layout.matched_bytes(match, one.slot) for one in held for match in one.matches},
        {SLOT.pack(one.slot): layout.entry_bytes(one.entry, grants.get(one.slot, 0)) for one in held},
        {CONTROL: control},
    )


def differences(layout: Layout, should: Contents, found: Contents, plan: KernelPlan) -> tuple[Difference, ...]:
    """Return every element that differs. An array's element that holds nothing but zeros is missing."""
    slots = {SLOT.pack(held.slot): name for name, held in plan.held.items()}
    matches = {layout.match_bytes(match): name for name, held in plan.held.items() for match in held.matches}
    differ = []
    for where, names in (("matches", matches), ("entries", slots), ("control", {})):
        expected: Mapping[bytes, bytes] = getattr(should, where)
        there: Mapping[bytes, bytes] = getattr(found, where)
        for key, value in expected.items():
            now = there.get(key)
            if now != value:
                fault = Fault.MISCONFIGURED if now is not None and any(now) else Fault.MISSING
                differ.append(Difference(where, key, value, fault, names.get(key, "")))
        differ += [Difference(where, key, None, Fault.EXCESS, "") for key in there if key not in expected]
    return tuple(differ)
