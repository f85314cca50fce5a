"""A scenario's file: YAML read into values, every problem at once with its place. It reads the network's file too."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from controller.errors import ConfigError, HeadwayError
from controller.plan.keys import flow_id
from controller.plan.purchases import Period
from controller.settings.file import read_file, sections_of
from controller.settings.flows import policy_of, standing_flows
from controller.settings.network import network_said
from controller.site import Site, flow_between
from controller.whatif.awaited import Delays
from controller.whatif.circuits import with_circuits
from controller.whatif.items import item_of
from controller.whatif.response import ALGORITHMS
from controller.whatif.sections import (
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
)
from controller.whatif.varied import varied
from topology.network import Network
from topology.problems import Problems
from topology.protocol import FlowClass


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
    read, found = [], []
    for said, changed in varied(values, file.vary, problems.at("vary")):
        these = Problems(values=values)
        read.append((said, sections_of(changed, ScenarioSections, these.found)[0], these))
    widest = _widest([one for _, one, _ in read if one is not None])
    for said, one, these in read:
        built = None if one is None or these.found else _built(one, folder, these)
        if one is not None:
            _check_within(one, widest, these)
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


def _widest(variants: list[ScenarioSections]) -> tuple[int, int]:
    """Return when the first of them begins and the last one ends: what is in none of them is meant otherwise."""
    return min((one.start for one in variants), default=0), max((one.end for one in variants), default=0)


def _check_within(file: ScenarioSections, widest_us: tuple[int, int], problems: Problems) -> None:
    """Refuse what would never happen; what comes again may begin before, and a death may reach over the beginning."""
    from_us, until_us = widest_us
    if until_us <= from_us:
        return
    for number, item in enumerate(file.workload):
        if item.at is not None and not (item.at < until_us and (item.every or item.at >= from_us)):
            problems.at("workload", number, "at").add("is not within from and until")
    for number, event in enumerate(file.events):
        if event.at >= until_us:
            problems.at("events", number, "at").add("is not within from and until")
        elif event.at + event.down_for <= from_us:
            problems.at("events", number, "at").add("is over before from")


def _deaths(file: ScenarioSections) -> Iterator[CircuitDeath]:
    """Yield the deaths that are said, from the scenario's beginning on."""
    for event in file.events:
        at_us, end_us = max(event.at, file.start), event.at + event.down_for
        if at_us < min(end_us, file.end):
            yield CircuitDeath(event.circuit, at_us, end_us - at_us)


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
        if (item := item_of(section, file, network, problems.at("workload", number))) is not None
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
        tuple(_deaths(file)),
        tuple(_random_deaths(file, network)),
        {host: StoreBucket(store.drains, store.holds) for host, store in sorted(file.stores.items())},
        tuple(_strangers(file.others, network, problems.at("others"))),
        Delays(file.delays.word, file.delays.hosts, file.delays.meters, file.delays.queues),
    )


def _check_stores(stores: Iterable[str], network: Network, problems: Problems) -> None:
    """Refuse stores of hosts that there are not, and a second one of a host."""
    names = dict[str, str]()
    for name in stores:
        if name not in network.host_names:
            problems.at(name).add("there is no such host")
        elif (before := names.setdefault(network.machine(name), name)) != name:
            problems.at(name).add(f"is the host of {before}, which has a store")


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
        if said.name in [other.name for other in sections[:number]]:
            problems.at(number, "name").add(f'there is already a "{said.name}"')
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
