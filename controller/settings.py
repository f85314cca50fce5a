"""The controller's configuration: one YAML file, parsed once into frozen values, every problem reported at once."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from controller.audit.settings import AuditSection, AuditSettings, audit
from controller.errors import ConfigError, HeadwayError
from controller.plan.lines import RETURN_AFTER_US
from controller.plan.plan import Flow
from controller.plan.policy import DEFAULT_POLICY, PPM, ClassPolicy, Policy
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_wire import OscarsSettings
from controller.security.tls import ServerTls
from controller.settings_circuits import CircuitSection, Duration, Rate, Section, bought, schedules, vlan_vids
from controller.settings_tls import TlsSection, trusted, unguarded
from controller.site import Site, flow_between
from controller.store import Store, UrlNotUsable
from topology import units
from topology.named import NAMED
from topology.network import Network, tagged
from topology.protocol import FlowClass
from topology.yaml_text import NotYaml, values_of

Fraction = Annotated[int, BeforeValidator(lambda text: units.fraction_ppm(str(text)))]


DEFAULT_STORE = "sqlite:////var/lib/headway/headway.db"


class _NetworkSection(Section):
    name: str
    rate: Rate = Field(default=10**9, gt=0)
    delay: Duration = Field(default=90_000, gt=0)
    loss: Fraction = Field(default=100, ge=0, lt=10**6)
    mtu_bytes: int = Field(default=1500, ge=576, le=9216)


class _ClassSection(Section):
    guarantee: Fraction
    cap: Fraction


class _FlowSection(Section):
    name: str = Field(min_length=1)
    flow_class: FlowClass = Field(alias="class")
    sender: str = Field(alias="from")
    target: str = Field(alias="to")


class _FailoverSection(Section):
    protect: tuple[FlowClass, ...] = tuple(sorted(DEFAULT_POLICY.protected))
    return_after: Duration = Field(default=RETURN_AFTER_US, ge=0, le=3_600_000_000)


class _ListenSection(Section):
    openflow: str = "127.0.0.1:6653"
    rest: str = "127.0.0.1:8080"
    agents: str = "127.0.0.1:50051"


class Handover(StrEnum):
    """When an announced flow gets its share, and gives it back."""

    DEMAND = "demand"
    ROUND_TRIP = "round-trip"


class _File(Section):
    network: _NetworkSection
    listen: _ListenSection = _ListenSection()
    ovsdb: dict[str, str] = Field(default_factory=dict)
    lease: Duration = Field(default=3_000_000, ge=300_000, le=600_000_000)
    hosts_mark: bool = False
    handover: Handover = Handover.DEMAND
    policy: dict[FlowClass, _ClassSection] = Field(default_factory=dict)
    flows: tuple[_FlowSection, ...] = ()
    store: str = DEFAULT_STORE
    circuits: dict[str, CircuitSection] = Field(default_factory=dict)
    audit: AuditSection = AuditSection()
    failover: _FailoverSection = _FailoverSection()
    tls: TlsSection | None = None
    insecure: bool = False


class _NetworkOnly(BaseModel):
    network: _NetworkSection


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address to listen at."""

    host: str
    port: int

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """A path to listen at, for those on this machine who may open it."""

    path: str

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All that the configuration says.

    Attributes:
        site: network, policy, standing flows and lease.
        openflow: where switches connect.
        rest: where the API is served.
        agents: where agents connect.
        tls: the files by which agents and we know each other; None if nobody is asked.
        ovsdb: by switch, the OVSDB server that has its queues.
        store: URL of the database that promises are kept in.
        oscars: by circuit that is bought at need, the OSCARS that sells it.
        audit: how often drift is looked for, and which rules are left alone.
    """

    site: Site
    openflow: Endpoint
    rest: Endpoint
    agents: Endpoint | UnixSocket
    ovsdb: dict[str, str]
    store: str
    oscars: dict[str, OscarsSettings]
    audit: AuditSettings
    tls: ServerTls | None = None


LEAST_QUEUE_WIRE_BPS = 13_000  # linux-htb in Open vSwitch: 1500 B/s = 12 kbit/s of frames; a little more on the wire
DEFAULT_OVSDB = "unix:/run/openvswitch/db.sock"


def load(path: Path) -> Settings:
    """Return the settings in a file.

    Raises:
        ConfigError: the file cannot be read, or has problems; all of them are in the error.
    """
    return parsed(_read(path), str(path), path.absolute().parent)


def network_in(path: Path) -> Network:
    """Return the network of the settings in a file, whatever else may be wrong with these.

    Raises:
        ConfigError: the file cannot be read, or its network has problems.
    """
    try:
        section = _NetworkOnly.model_validate(_read(path)).network
    except ValidationError as error:
        raise ConfigError(str(path), tuple(_shown(problem) for problem in error.errors())) from error
    problems: list[str] = []
    network = _network(section, problems)
    if network is None:
        raise ConfigError(str(path), tuple(problems))
    return network


def _read(path: Path) -> object:
    """Return what the YAML in a file says.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return values_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), (f"cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), (f"is not UTF-8 text: {error.reason} at byte {error.start}",)) from error
    except NotYaml as error:
        raise ConfigError(str(path), (str(error),)) from error


def parsed(data: object, source: str, folder: Path = Path()) -> Settings:
    """Return the settings in what YAML has read.

    Args:
        data: that.
        source: what it is called in problems.
        folder: where relative paths in it begin.

    Raises:
        ConfigError: with every problem and its path.
    """
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        raise ConfigError(source, tuple(_shown(problem) for problem in error.errors())) from error
    problems: list[str] = []
    settings = _built(file, folder, problems)
    if settings is None or problems:
        raise ConfigError(source, tuple(problems))
    return settings


def _shown(problem: Any) -> str:
    """Return one of pydantic's problems as ``flows[2].class: what is wrong``."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "there is no such key"
    return f"{path or 'the file'}: {message}"


def _built(file: _File, folder: Path, problems: list[str]) -> Settings | None:
    """Return the settings of a file whose parts are well-formed; what does not fit together goes to ``problems``."""
    network = _network(file.network, problems)
    policy = _policy(file.policy, frozenset(file.failover.protect), problems)
    if network is not None and policy is not None:
        problems += _too_small(network, policy)
    openflow = _endpoint("listen.openflow", file.listen.openflow, problems)
    rest = _endpoint("listen.rest", file.listen.rest, problems)
    agents = _agents(file, problems)
    tls = trusted(file.tls, folder, problems)
    if network is None or policy is None or openflow is None or rest is None or agents is None:
        return None
    flows = _flows(file.flows, network, problems)
    switches = {s.name for s in network.switches}
    problems += [f"ovsdb.{name}: there is no such switch" for name in file.ovsdb if name not in switches]
    problems += _unusable_store(file.store)
    network = tagged(network, vlan_vids(file.circuits, problems))
    leased = schedules(file.circuits, network, problems)
    oscars = bought(file.circuits, network, problems)
    lead_us = {name: terms.lead_us for name, one in oscars.items() if (terms := OscarsProvider(one).terms)}
    return Settings(
        site=_handed_over(
            Site(
                network,
                policy,
                flows,
                file.lease // 1000,
                schedules=leased,
                lead_us=lead_us,
                hosts_mark=file.hosts_mark,
                return_after_us=file.failover.return_after,
            ),
            file.handover,
        ),
        openflow=openflow,
        rest=rest,
        agents=agents,
        ovsdb={name: file.ovsdb.get(name, DEFAULT_OVSDB) for name in switches},
        store=file.store,
        oscars=oscars,
        audit=audit(file.audit, problems),
        tls=tls,
    )


def _handed_over(site: Site, handover: Handover) -> Site:
    """Return a site whose shares move when hosts say that they want to send; or when somebody says that they will."""
    if handover is Handover.DEMAND:
        return site
    return replace(site, policy=replace(site.policy, standby_ppm=0), drain_us=site.longest_rtt_us())


def _agents(file: _File, problems: list[str]) -> Endpoint | UnixSocket | None:
    """Return where agents connect; not for everybody without TLS."""
    text = file.listen.agents
    if text.startswith("unix:/"):
        return UnixSocket(text.removeprefix("unix:"))
    endpoint = _endpoint("listen.agents", text, problems)
    if endpoint is not None:
        problems += unguarded(text, tls=file.tls is not None, insecure=file.insecure)
    return endpoint


def _network(section: _NetworkSection, problems: list[str]) -> Network | None:
    if section.name not in NAMED:
        problems.append(f'network.name: there is no network "{section.name}"; there are {", ".join(NAMED)}')
        return None
    return NAMED[section.name](section.rate, section.delay, section.loss, section.mtu_bytes)


def _policy(
    sections: dict[FlowClass, _ClassSection], protected: frozenset[FlowClass], problems: list[str]
) -> Policy | None:
    classes = dict(DEFAULT_POLICY.classes)
    for flow_class, section in sections.items():
        known = classes[flow_class]
        classes[flow_class] = ClassPolicy(section.guarantee, section.cap, known.priority, known.dscp)
    try:
        return Policy(classes, protected=protected)
    except ValueError as error:
        problems.append(f"policy: {error}")
        return None


def _too_small(network: Network, policy: Policy) -> list[str]:
    """Return a problem for each class whose guarantee is less than a queue can be given."""
    return [
        f"policy.{flow_class}.guarantee: {limits.guarantee_ppm / 10_000:g}% of {units.shown_rate(circuit.rate_bps)} is "
        f"less than {units.shown_rate(LEAST_QUEUE_WIRE_BPS)}, the least that a queue of Open vSwitch can be given"
        for circuit in network.circuits
        for flow_class, limits in policy.classes.items()
        if circuit.rate_bps * limits.guarantee_ppm // PPM < LEAST_QUEUE_WIRE_BPS
    ]


def _unusable_store(url: str) -> list[str]:
    try:
        Store(url)
    except UrlNotUsable as error:
        return [f"store: {error}"]
    return []


def _flows(sections: tuple[_FlowSection, ...], network: Network, problems: list[str]) -> tuple[Flow, ...]:
    flows: list[Flow] = []
    for i, section in enumerate(sections):
        try:
            flow = flow_between(network, section.name, section.flow_class, (section.sender, section.target))
        except HeadwayError as error:
            problems.append(f"flows[{i}]: {error}")
            continue
        if flow.name in {f.name for f in flows}:
            problems.append(f'flows[{i}].name: there is already a flow "{flow.name}"')
        if (flow.host, flow.target) in {(f.host, f.target) for f in flows}:
            problems.append(f"flows[{i}]: {flow.host} already sends to {flow.target}")
        flows.append(flow)
    return tuple(flows)


def _endpoint(path: str, text: str, problems: list[str]) -> Endpoint | None:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        problems.append(f'{path}: "{text}" is not an address to listen at, try "127.0.0.1:8080"')
        return None
    return Endpoint(host, int(port))
