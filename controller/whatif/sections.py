"""The sections of a scenario's file, and how their quantities are written."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from controller.settings.flows import ClassSection, FailoverSection, FlowSection
from controller.settings.sections import Count, Duration, Instant, Rate, Section, within
from controller.whatif.awaited import Delays
from controller.whatif.supposed import Opening
from topology import file_values, units
from topology.protocol import FlowClass

MOST_RUNS = 10_000
_USUAL = Delays()
_FILES = re.compile(r"\s*([0-9]+)\s*x\s*(.+)")
_DAY = re.compile(r"\s*([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)\s*", re.ASCII)
LineRate = Annotated[int, BeforeValidator(file_values.line_rate_bps)]
LineDelay = Annotated[int, BeforeValidator(file_values.delay_us)]
Size = Annotated[int, BeforeValidator(lambda text: units.size_bytes(str(text)))]


def _files(text: object) -> tuple[int, int]:
    match = _FILES.fullmatch(str(text))
    if match is None or int(match[1]) < 1:
        raise ValueError(f'"{text}" is not a number of files, try "500 x 100 MB"')
    if not (each_bytes := units.size_bytes(match[2])):
        raise ValueError(f'"{text}" have nothing in them, try "500 x 100 MB"')
    return int(match[1]), each_bytes


def _times_of_day(text: object) -> tuple[int, int]:
    match = _DAY.fullmatch(str(text))
    if match is None:
        raise ValueError(f'"{text}" is not a part of the day (UTC), try "22:00-06:00"')
    hours = [int(part) for part in match.groups()]
    minute_us = 60_000_000
    return (hours[0] * 60 + hours[1]) * minute_us, (hours[2] * 60 + hours[3]) * minute_us


class MoverSection(Section):
    """How a program sends."""

    streams: Count = Field(default=1, ge=1, le=1024)
    block: Size = Field(default=0, ge=0)
    lock_step: bool = False
    checkpoint: Size = Field(default=0, ge=0)
    per_file: Duration = Field(default=0, ge=0)
    files_at_once: Count = Field(default=1, ge=1, le=10_000)


class ItemSection(Section):
    """Something that is sent."""

    name: str = Field(min_length=1)
    flow_class: FlowClass = Field(alias="class")
    sender: str | tuple[str, ...] = Field(alias="from")
    target: str = Field(alias="to")
    size: Size | None = Field(default=None, alias="bytes", gt=0)
    files: Annotated[tuple[int, int] | None, BeforeValidator(_files)] = None
    rate: Rate | None = Field(default=None, gt=0)
    lasts: Duration | None = Field(default=None, alias="for", gt=0)
    at: Instant | None = None
    every: Duration = Field(default=0, ge=0)
    between: Annotated[tuple[int, int] | None, BeforeValidator(_times_of_day)] = None
    deadline: Duration | None = Field(default=None, gt=0)
    within: Duration | None = Field(default=None, gt=0)
    opening: Opening = Opening.WARM
    lanes: Count = Field(default=1, ge=1, le=16)
    connects: Literal["sender", "receiver"] = "sender"
    session: Duration = Field(default=0, ge=0)
    deadline_for: Literal["across", "stored"] = "across"
    mover: MoverSection = MoverSection()


class DelaysSection(Section):
    """How long it takes until what is decided is done."""

    word: Duration = Field(default=_USUAL.word_us, ge=0)
    hosts: Duration = Field(default=_USUAL.hosts_us, ge=0)
    meters: Duration = Field(default=_USUAL.meters_us, ge=0)
    queues: Duration = Field(default=_USUAL.queues_us, ge=0)


class StoreHoldsSection(Section):
    """What a receiving host can take."""

    drains: Rate = Field(gt=0)
    holds: Size = Field(gt=0)


class DeathSection(Section):
    """A circuit that dies at a given time."""

    at: Instant
    circuit: str
    down_for: Duration = Field(gt=0)


class MaintenanceSection(Section):
    """A time in which a circuit has less, which the calendar knows."""

    circuit: str
    start: Instant = Field(alias="from")
    end: Instant = Field(alias="until")
    rate: Rate = Field(default=0, ge=0)


class FailsSection(Section):
    """How often a circuit dies by chance, and how long it takes to be repaired, in the mean."""

    mtbf: Duration = Field(gt=0)
    mttr: Duration = Field(gt=0)


class SupposedCircuitSection(Section):
    """A circuit that is other than in the network's file."""

    rate: LineRate | None = None
    delay: LineDelay | None = None
    fails: FailsSection | None = None


class StrangerSection(Section):
    """Somebody who sends beside the plan."""

    name: str = Field(min_length=1)
    sender: str = Field(alias="from")
    target: str = Field(alias="to")
    size: Size = Field(alias="bytes", gt=0)
    algorithm: str
    streams: Count = Field(default=1, ge=1, le=1024)
    loss: float = Field(gt=0, lt=0.01)


class ScenarioSections(Section):
    """The whole file."""

    network: Any
    start: Instant = Field(alias="from")
    end: Instant = Field(alias="until")
    circuits: dict[str, SupposedCircuitSection] = Field(default_factory=dict)
    policy: dict[FlowClass, ClassSection] = Field(default_factory=dict)
    failover: FailoverSection = FailoverSection()
    lease: Annotated[int, within("300 ms", "10 min")] = 3_000_000
    flows: tuple[FlowSection, ...] = ()
    workload: tuple[ItemSection, ...] = ()
    stores: dict[str, StoreHoldsSection] = Field(default_factory=dict)
    delays: DelaysSection = DelaysSection()
    events: tuple[DeathSection, ...] = ()
    maintenance: tuple[MaintenanceSection, ...] = ()
    fails: FailsSection | None = None
    others: tuple[StrangerSection, ...] = ()
    vary: dict[str, list[Any]] = Field(default_factory=dict)
    runs: Count = Field(default=1, ge=1, le=MOST_RUNS)
    seed: Count = Field(default=1, ge=0, lt=2**63)
