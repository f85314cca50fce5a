"""A scenario's file: YAML read into values, every problem at once with its place. It reads the network's file too."""

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.checks import check_connects, check_lanes
from controller.errors import ConfigError, HeadwayError, NotAllowed
from controller.plan.keys import flow_id
from controller.plan.purchases import Period
from controller.settings.file import read_file, sections_of
from controller.settings.flows import policy_of, standing_flows
from controller.settings.network import network_said
from controller.site import Site, flow_between
from controller.whatif.awaited import Delays
from controller.whatif.circuits import with_circuits
from controller.whatif.movers import Mover
from controller.whatif.response import ALGORITHMS
from controller.whatif.sections import (
    ItemSection,
    MaintenanceSection,
    ScenarioSections,
    StrangerSection,
)
from controller.whatif.supposed import (
    CircuitDeath,
    RandomDeaths,
    StoreBucket,
    Stranger,
    WhatIf,
    WorkItem,
)
from topology.network import Network
from topology.problems import Problems
from topology.protocol import FlowClass

MOST_VARIANTS = 200


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination of what is varied.

    Attributes:
        said: by place, the value that it has here.
        supposed: the scenario with it.
        within_us: by workload item, what it is to take at most.
    """

    said: dict[str, object]
    supposed: WhatIf
    within_us: dict[str, int]

    @property
    def name(self) -> str:
        """What people call it."""
        return ", ".join(f"{place} {value}" for place, value in self.said.items()) or "as it is"


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """All that a file says.

    Attributes:
        variants: each scenario that is to be run.
        runs: how often, if something in it is drawn.
        seed: of the first run; the others follow.
    """

    variants: tuple[Variant, ...]
    runs: int
    seed: int


def loaded_scenario(path: Path) -> ScenarioFile:
    """Return what a scenario's file says.

    Raises:
        ConfigError: the file cannot be read, or has problems; all of them are in the error.
    """
    text = read_file(path)
    return scenario_of(text.values, str(path), path.absolute().parent, text.repeated)


def scenario_of(values: object, source: str, folder: Path, repeated: tuple[str, ...] = ()) -> ScenarioFile:
    """Return what YAML has said.

    Args:
        values: that.
        source: what it is called in problems.
        folder: where relative names of files in it begin.
        repeated: problems that are known already.

    Raises:
        ConfigError: it has problems; all of them are in the error.
    """
    problems = Problems(found=list(repeated), values=values)
    file, _ = sections_of(values, ScenarioSections, problems.found)
    if file is None or problems.found:
        if file is not None:
            _built(file, folder, problems)
        raise ConfigError(source, tuple(dict.fromkeys(problems.found)))
    variants = list(_varied(values, file.vary, problems.at("vary")))
    found = []
    for said, changed in variants:
        these = Problems(values=values)
        one, _ = sections_of(changed, ScenarioSections, these.found)
        built = None if one is None or these.found else _built(one, folder, these)
        prefix = ", ".join(f"{place} {value}" for place, value in said.items())
        problems.found.extend(f"with {prefix}: {each}" if said else each for each in these.found)
        if one is not None and built is not None:
            within = {item.name: item.within for item in one.workload if item.within is not None}
            found.append(Variant(said, built, within))
    if problems.found:
        raise ConfigError(source, tuple(dict.fromkeys(problems.found)))
    return ScenarioFile(tuple(found), file.runs if _is_drawn(found) else 1, file.seed)


def _is_drawn(variants: list[Variant]) -> bool:
    """Return whether anything is left to chance."""
    return any(variant.supposed.random_deaths for variant in variants)


def _varied(values: Any, vary: Mapping[str, list[Any]], problems: Problems) -> Iterator[tuple[dict[str, object], Any]]:
    """Yield each combination of what is varied, and the file's values with it."""
    count = 1
    for place, options in vary.items():
        count *= len(options)
        if not options:
            problems.at(place).add("need a list of values")
    if count > MOST_VARIANTS:
        problems.add(f"{count} combinations are more than {MOST_VARIANTS}: vary less at once")
    if problems.found:
        return
    for chosen in itertools.product(*vary.values()):
        said = dict(zip(vary, chosen, strict=True))
        changed = copy.deepcopy(values)
        for place, value in said.items():
            steps = place.split(".")
            inside: Any = changed
            names = [item.get("name") for item in changed.get("workload") or () if isinstance(item, Mapping)]
            if steps[0] in names:
                inside, steps = changed["workload"][names.index(steps[0])], steps[1:]
            elif steps[0] not in {field.alias or name for name, field in ScenarioSections.model_fields.items()}:
                known = ", ".join(str(name) for name in names)
                problems.at(place).add(f'there is no section and no workload "{steps[0]}"; there are {known}')
                return
            for step in steps[:-1]:
                inside = inside.setdefault(step, {})
            inside[steps[-1]] = value
        yield said, changed


def _built(file: ScenarioSections, folder: Path, problems: Problems) -> WhatIf | None:
    """Return the scenario of a file whose parts are well-formed; what does not fit together goes to ``problems``."""
    network = network_said(file.network, folder, problems.at("network"))
    policy = policy_of(file.policy, frozenset(file.failover.protect), problems.at("policy"))
    if file.end <= file.start:
        problems.at("until").add("must come after from")
    if network is None or policy is None:
        return None
    network = with_circuits(network, file.circuits, problems.at("circuits"))
    flows = standing_flows(file.flows, network, problems.at("flows"))
    items = tuple(
        item
        for number, section in enumerate(file.workload)
        if (item := _item(section, file, network, problems.at("workload", number))) is not None
    )
    names = [section.name for section in file.workload]
    for number, name in enumerate(names):
        if name in names[:number]:
            problems.at("workload", number, "name").add(f'there is already a "{name}"')
    if not file.workload and not flows:
        problems.at("workload").add("nothing is sent: say what")
    schedules = _maintenance(file.maintenance, network, problems.at("maintenance"))
    _check_circuits((event.circuit for event in file.events), network, problems.at("events"))
    _check_stores(file.stores, network, problems.at("stores"))
    site = Site(
        network,
        policy,
        flows,
        file.lease // 1000,
        schedules=schedules,
        return_after_us=file.failover.return_after,
    )
    return WhatIf(
        site,
        file.start,
        file.end,
        items,
        tuple(CircuitDeath(event.circuit, event.at, event.down_for) for event in file.events),
        tuple(_random_deaths(file, network)),
        {host: StoreBucket(store.drains, store.holds) for host, store in sorted(file.stores.items())},
        tuple(_strangers(file.others, network, problems.at("others"))),
        Delays(file.delays.word, file.delays.hosts, file.delays.meters, file.delays.queues),
    )


def _item(section: ItemSection, file: ScenarioSections, network: Network, problems: Problems) -> WorkItem | None:
    before = len(problems.found)
    senders = (section.sender,) if isinstance(section.sender, str) else section.sender
    sizes = [said for said in (section.size, section.files, section.rate) if said is not None]
    if len(sizes) != 1:
        problems.add("need one of bytes, files and rate")
    if (section.rate is None) is not (section.lasts is None):
        problems.add("a reservation has a rate and for: how long; what is announced has neither")
    if section.rate is not None and len(senders) > 1:
        problems.at("from").add("a reservation is from one host")
    if section.rate is not None and section.lanes > 1:
        problems.at("lanes").add("a reservation is over one path; what is announced may go over several")
    if section.between is not None and not section.every:
        problems.at("between").add("is of what comes again: say every")
    if section.flow_class is FlowClass.UNPLANNED or (
        section.rate is None and section.flow_class is FlowClass.PREDICTABLE
    ):
        problems.at("class").add("is urgent or background of what is announced, predictable too of what is reserved")
    for sender in senders:
        try:
            flow_between(network, flow_id(section.name, sender), section.flow_class, (sender, section.target))
        except HeadwayError as error:
            problems.add(error)
    if section.rate is None and not problems.found[before:]:
        _check_announced(section, senders, network, problems)
    elif section.rate is not None and (section.session or section.deadline_for == "stored"):
        problems.add("session and deadline_for are of what is announced, not of what is reserved")
    if section.deadline_for == "stored" and not _is_known(section.target, file.stores, network):
        why = f"nobody knows what {section.target} stores: say stores: {section.target}, of a host with an agent"
        problems.at("deadline_for").add(why)
    if len(problems.found) > before:
        return None
    count, file_bytes = section.files or (1, 0)
    mover = section.mover
    return WorkItem(
        section.name,
        section.flow_class,
        senders,
        section.target,
        section.size or count * file_bytes,
        file.start if section.at is None else section.at,
        file_bytes or (section.size or 0),
        Mover(mover.streams, mover.block, mover.lock_step, mover.checkpoint, mover.per_file, mover.files_at_once),
        section.opening,
        section.deadline,
        section.rate or 0,
        section.lasts or 0,
        section.every,
        section.between,
        section.lanes,
        section.session,
        section.connects == "receiver",
        section.deadline_for == "stored",
    )


def _check_stores(stores: Iterable[str], network: Network, problems: Problems) -> None:
    """Refuse stores of hosts that there are not, and a second one of a host."""
    names = dict[str, str]()
    for name in stores:
        if name not in network.host_names:
            problems.at(name).add("there is no such host")
        elif (before := names.setdefault(network.machine(name), name)) != name:
            problems.at(name).add(f"is the host of {before}, which has a store")


def _is_known(target: str, stores: Iterable[str], network: Network) -> bool:
    """Return whether a host tells of a store; which host has an agent that could, the network says."""
    if target not in network.host_names:
        return False
    machines = {network.machine(name) for name in stores if name in network.host_names}
    return network.machine(target) in machines and network.host(network.machine(target)).has_agent


def _check_announced(section: ItemSection, senders: tuple[str, ...], network: Network, problems: Problems) -> None:
    if section.mover.lock_step and section.mover.streams < section.lanes:
        problems.at("mover", "streams").add(f"need {section.lanes} or more in lock step: each lane has one of its own")
    try:
        if section.lanes > 1:
            check_lanes(network, senders, section.target)
        check_connects(network, section.target, section.lanes, is_called=section.connects == "receiver")
    except NotAllowed as error:
        problems.add(error)


def _maintenance(
    sections: tuple[MaintenanceSection, ...], network: Network, problems: Problems
) -> dict[str, tuple[Period, ...]]:
    _check_circuits((section.circuit for section in sections), network, problems)
    found: dict[str, list[Period]] = {}
    for number, section in enumerate(sections):
        try:
            period = Period(section.start, section.end, section.rate)
        except ValueError:
            problems.at(number, "until").add("must come after from")
            continue
        if any(period.start_us < one.end_us and one.start_us < period.end_us for one in found.get(section.circuit, ())):
            problems.at(number).add(f"two times of {section.circuit} overlap")
        found.setdefault(section.circuit, []).append(period)
    return {circuit: tuple(sorted(periods, key=lambda p: p.start_us)) for circuit, periods in found.items()}


def _random_deaths(file: ScenarioSections, network: Network) -> Iterator[RandomDeaths]:
    for circuit in network.circuits:
        said = file.circuits.get(circuit.name)
        fails = said.fails if said is not None and said.fails is not None else file.fails
        if fails is not None:
            yield RandomDeaths(circuit.name, fails.mtbf, fails.mttr)


def _strangers(sections: tuple[StrangerSection, ...], network: Network, problems: Problems) -> Iterator[Stranger]:
    for number, said in enumerate(sections):
        if said.algorithm not in ALGORITHMS:
            problems.at(number, "algorithm").add(f"is not known; there are {', '.join(ALGORITHMS)}")
            continue
        try:
            flow_between(network, flow_id(said.name, said.sender), FlowClass.UNPLANNED, (said.sender, said.target))
        except HeadwayError as error:
            problems.at(number).add(error)
            continue
        yield Stranger(said.name, said.sender, said.target, said.size, said.algorithm, said.streams, said.loss)


def _check_circuits(names: Iterator[str], network: Network, problems: Problems) -> None:
    known = [circuit.name for circuit in network.circuits]
    for number, name in enumerate(names):
        if name not in known:
            problems.at(number, "circuit").add(f'there is no circuit "{name}"; there are {", ".join(known)}')
