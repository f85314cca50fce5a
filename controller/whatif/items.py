"""An item of a scenario's workload: what its section says, if that fits together. Pure."""

from collections.abc import Iterable

from controller.checks import check_connects, check_deadline, check_lanes, check_times
from controller.errors import HeadwayError, NotAllowed
from controller.plan.keys import flow_id
from controller.plan.reservations import LEAST_BPS
from controller.site import flow_between
from controller.whatif.movers import Mover
from controller.whatif.sections import ItemSection, ScenarioSections
from controller.whatif.supposed import DAY_US, WorkItem
from topology.network import Network
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.units import shown_rate

_ANNOUNCED = ("opening", "connects", "session", "deadline", "deadline_for")


def item_of(section: ItemSection, file: ScenarioSections, network: Network, problems: Problems) -> WorkItem | None:
    """Return an item of the workload; None, and problems, if something does not fit together."""
    before = len(problems.found)
    senders = (section.sender,) if isinstance(section.sender, str) else section.sender
    _check_form(section, senders, problems)
    if section.rate is not None:
        _check_reserved(section, senders, problems)
    for sender in senders:
        try:
            flow_between(network, flow_id(section.name, sender), section.flow_class, (sender, section.target))
        except HeadwayError as error:
            problems.add(error)
    if section.rate is None and not problems.found[before:]:
        _check_announced(section, senders, network, problems)
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


def _check_form(section: ItemSection, senders: tuple[str, ...], problems: Problems) -> None:
    """Refuse what is neither announced nor reserved, and what nobody could be asked for."""
    sizes = [said for said in (section.size, section.files, section.rate) if said is not None]
    if len(sizes) != 1:
        problems.add("need one of bytes, files and rate")
    if (section.rate is None) is not (section.lasts is None):
        problems.add("a reservation has a rate and for: how long; what is announced has neither")
    if len(set(senders)) < max(1, len(senders)):
        problems.at("from").add("need at least one host, each once")
    if section.between is not None and not section.every:
        problems.at("between").add("is of what comes again: say every")
    if section.between is not None and section.every > DAY_US:
        problems.at("every").add("is a day at most where between is said: it begins anew each day")
    if section.flow_class is FlowClass.UNPLANNED or (
        section.rate is None and section.flow_class is FlowClass.PREDICTABLE
    ):
        problems.at("class").add("is urgent or background of what is announced, predictable too of what is reserved")


def _check_reserved(section: ItemSection, senders: tuple[str, ...], problems: Problems) -> None:
    if section.rate is not None and section.rate < LEAST_BPS:
        problems.at("rate").add(f"need at least {shown_rate(LEAST_BPS)}, got {shown_rate(section.rate)}")
    if len(senders) > 1:
        problems.at("from").add("a reservation is from one host")
    if section.lanes > 1:
        problems.at("lanes").add("a reservation is over one path; what is announced may go over several")
    for name in _ANNOUNCED:
        if getattr(section, name) != ItemSection.model_fields[name].default:
            problems.at(name).add("is of what is announced, not of what is reserved")
    if section.mover.per_file:
        problems.at("mover").add("per_file is of files, and what is reserved has none")
    try:
        check_times(0, section.lasts or 1, 0)
    except NotAllowed as error:
        problems.at("for").add(error.why)


def _check_announced(section: ItemSection, senders: tuple[str, ...], network: Network, problems: Problems) -> None:
    if section.mover.lock_step and section.mover.streams < section.lanes:
        problems.at("mover", "streams").add(f"need {section.lanes} or more in lock step: each lane has one of its own")
    try:
        check_deadline(section.deadline)
    except NotAllowed as error:
        problems.at("deadline").add(error.why)
    try:
        if section.lanes > 1:
            check_lanes(network, senders, section.target)
        check_connects(network, section.target, section.lanes, is_called=section.connects == "receiver")
    except NotAllowed as error:
        problems.add(error)


def _is_known(target: str, stores: Iterable[str], network: Network) -> bool:
    """Return whether a host tells of a store; which host has an agent that could, the network says."""
    if target not in network.host_names:
        return False
    machines = {network.machine(name) for name in stores if name in network.host_names}
    return network.machine(target) in machines and network.host(network.machine(target)).has_agent
