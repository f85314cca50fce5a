"""The controller's configuration: each section given to the part that it is for, every problem reported at once."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from controller.audit.settings import AuditSection, AuditSettings, audit
from controller.database.settings import (
    DatabaseSection,
    DatabaseSettings,
    PairSection,
    PairSettings,
    RestReach,
    database_settings,
    has_password,
    pair_settings,
)
from controller.errors import ConfigError
from controller.plan.booking_lead import booking_lead_us
from controller.plan.sold_by import SoldBy
from controller.providers import settings as providers
from controller.providers.kinds import Seller
from controller.providers.settings import CircuitSection
from controller.security.access_settings import NOBODY, AccessSection, AccessSettings, access_settings
from controller.security.settings import TlsSection, check_guarded, rest_certified, rest_tls, to_switches, trusted
from controller.security.tls import ServerTls
from controller.settings.file import read_file, sections_of
from controller.settings.flows import ClassSection, FailoverSection, FlowSection, policy_of, standing_flows
from controller.settings.listen import (
    ListenAddress,
    ListenSection,
    UnixSocket,
    address_or_socket,
    check_apart,
    is_here,
    proxies_named,
    rest_address,
    rest_names,
    switches_address,
    unix_socket,
)
from controller.settings.network import network_said
from controller.settings.sections import Section, within
from controller.settings.webhooks import WebhookSection, WebhookSettings, webhooks
from controller.site import Site
from controller.southbound.openflow.circuit_ports import too_many_circuits
from controller.southbound.ovsdb.settings import check_guarantees, servers
from topology.network import Network
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.relinking import tagged
from topology.wire import Framing


class _File(Section):
    network: Any = None
    listen: ListenSection = ListenSection()
    ovsdb: dict[str, str] = Field(default_factory=dict)
    lease: Annotated[int, within("300 ms", "10 min")] = 3_000_000
    hosts_mark: bool = False
    hold_to_receivers: bool = True
    policy: dict[FlowClass, ClassSection] = Field(default_factory=dict)
    flows: tuple[FlowSection, ...] = ()
    store: DatabaseSection = Field(default_factory=dict, validate_default=True)
    circuits: dict[str, CircuitSection] = Field(default_factory=dict)
    audit: AuditSection = AuditSection()
    failover: FailoverSection = FailoverSection()
    tls: TlsSection | None = None
    insecure: bool = False
    access: AccessSection | None = None
    webhooks: tuple[WebhookSection, ...] = ()
    pair: PairSection | None = None


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """All that the configuration says.

    Attributes:
        site: network, policy, standing flows and lease.
        openflow: where switches connect.
        rest: where the API is served.
        agents: where agents connect.
        tls: the files by which agents and we know each other; None if nobody is asked.
        switches_tls: those by which switches and we do; None if they speak plain text.
        ovsdb_tls: those by which switches' databases and we do; None if there are none.
        ovsdb: by switch, the OVSDB server that has its queues.
        database: where promises are kept, and for how long.
        sellers: by circuit that is bought at need, who sells it.
        audit: how often drift is looked for, and which rules are left alone.
        rest_tls: the files by which the API is served; None for plain text.
        proxies: that say for whom they ask.
        rest_socket: where the API is served to root and the controller's own user; None for nowhere.
        names: by which the API may be asked for, beside addresses and localhost.
        access: who may do what by it.
        webhooks: who is told of what happens.
        pair: how this controller is one of several; None if it is alone.
        files: the SHA-256 of each file that says so, by its path.
    """

    site: Site
    openflow: ListenAddress
    rest: ListenAddress
    agents: ListenAddress | UnixSocket
    ovsdb: dict[str, str]
    database: DatabaseSettings
    sellers: dict[str, Seller]
    audit: AuditSettings
    tls: ServerTls | None = None
    switches_tls: ServerTls | None = None
    ovsdb_tls: ServerTls | None = None
    rest_tls: ServerTls | None = None
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    rest_socket: UnixSocket | None = None
    names: frozenset[str] = frozenset()
    access: AccessSettings = NOBODY
    webhooks: tuple[WebhookSettings, ...] = ()
    pair: PairSettings | None = None
    files: Mapping[str, str] = field(default_factory=dict)


def load(path: Path) -> ControllerSettings:
    """Return the settings in a file.

    Raises:
        ConfigError: the file cannot be read, or has problems; all of them are in the error.
    """
    text = read_file(path)
    problems = Problems(found=list(text.repeated), values=text.values)
    values = text.values if isinstance(text.values, dict) else {}
    if has_password(values.get("store")) and path.stat().st_mode & 0o007:
        how = f"chgrp headway-controller {path}; chmod 640 {path}"
        problems.at("store").add(f"everybody on this machine can read the database's password: {how}")
    found = _settings(text.values, str(path), path.absolute().parent, problems)
    said = values.get("network")
    files = [path, *([path.absolute().parent / said] if isinstance(said, str) else [])]
    return replace(found, files={str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in files})


def parsed(data: object, source: str, folder: Path = Path()) -> ControllerSettings:
    """Return the settings in what YAML has read.

    Args:
        data: that.
        source: what it is called in problems.
        folder: where relative paths in it begin.

    Raises:
        ConfigError: with every problem and its place.
    """
    return _settings(data, source, folder, Problems(values=data))


def _settings(data: object, source: str, folder: Path, problems: Problems) -> ControllerSettings:
    """Return the settings; what is well-formed is looked at further though other sections are not."""
    file, wrong = sections_of(data, _File, problems.found)
    settings = None
    if file is not None:
        beyond = Problems(values=data)
        if file.network is None and "network" not in wrong:
            beyond.at("network").add("is missing")
        is_known = not wrong & {"tls", "insecure", "access", "listen"}
        settings = _built(file, folder, beyond, asks_who=is_known and not file.insecure)
        problems.found.extend(beyond.found)
    if settings is None or problems.found:
        raise ConfigError(source, tuple(problems.found))
    return settings


def _built(file: _File, folder: Path, problems: Problems, *, asks_who: bool) -> ControllerSettings | None:
    """Return the settings of a file whose parts are well-formed; what does not fit together goes to ``problems``.

    Args:
        file: its parts; those that are not well-formed are not there.
        folder: where relative paths begin.
        problems: those of the file.
        asks_who: whether it is known that whoever others can reach must ask them who they are.
    """
    network = None if file.network is None else network_said(file.network, folder, problems.at("network"))
    policy = policy_of(file.policy, frozenset(file.failover.protect), problems.at("policy"))
    if network is not None and policy is not None:
        check_guarantees(network, policy, problems.at("policy"))
    for too_many in () if network is None else too_many_circuits(network):
        problems.at("network").add(too_many)
    listen = problems.at("listen")
    openflow, by_tls = switches_address(
        file.listen.openflow, listen.at("openflow"), tls=file.tls is not None, insecure=not asks_who
    )
    by_rest = rest_tls(file.listen.tls, folder, listen.at("tls"))
    rest = rest_address(file.listen.rest, listen.at("rest"), tls=by_rest is not None, insecure=not asks_who)
    access = access_settings(
        file.access,
        str(rest),
        folder,
        problems,
        asks_clients=by_rest is not None and bool(by_rest.authority),
        insecure=not asks_who or rest is None,
    )
    names = rest_names(file.listen.names, rest, listen.at("names")) | frozenset(rest_certified(by_rest))
    agents = address_or_socket(file.listen.agents, listen.at("agents"))
    at_path = file.listen.rest_socket
    rest_socket = None if at_path is None else unix_socket(at_path, listen.at("rest_socket"))
    check_apart({"openflow": openflow, "rest": rest, "agents": agents, "rest_socket": rest_socket}, listen)
    if isinstance(agents, ListenAddress) and (asks_who or file.insecure):
        check_guarded(file.listen.agents, problems, tls=file.tls is not None, insecure=file.insecure)
    tls = trusted(file.tls, folder, problems.at("tls"))
    shown = to_switches(file.tls, tls, folder, problems.at("tls", "switches"))
    flows = () if network is None else standing_flows(file.flows, network, problems.at("flows"))
    switches = None if network is None else [switch.name for switch in network.switches]
    ovsdb = servers(file.ovsdb, switches, problems.at("ovsdb"), tls=shown is not None)
    database = database_settings(file.store, problems.at("store"))
    proxies = proxies_named(file.listen.proxies, listen.at("proxies"))
    reach = RestReach(str(rest), is_here(str(rest)), by_rest is not None, bool(proxies))
    pair = pair_settings(file.pair, database, reach, problems.at("pair"))
    audited = audit(file.audit, problems.at("audit"))
    told = webhooks(file.webhooks, folder, problems.at("webhooks"))
    schedules = providers.schedules(file.circuits, network, problems.at("circuits"))
    sold, vids = _bought(file, network, folder, problems.at("circuits"))
    if network is None or policy is None or openflow is None or rest is None or agents is None:
        return None
    site = Site(
        tagged(network, vids),
        policy,
        flows,
        file.lease // 1000,
        schedules=schedules,
        lead_us={circuit: booking_lead_us(seller.terms) for circuit, seller in sold.items()},
        sold_by={circuit: SoldBy(one.kind, one.server, one.moved_from) for circuit, one in sold.items()},
        hosts_mark=file.hosts_mark,
        hold_to_receivers=file.hold_to_receivers,
        return_after_us=file.failover.return_after,
    )
    return ControllerSettings(
        site=site,
        openflow=openflow,
        rest=rest,
        agents=agents,
        ovsdb=ovsdb,
        database=database,
        sellers=sold,
        audit=audited,
        tls=tls,
        switches_tls=(shown or tls) if by_tls else None,
        ovsdb_tls=shown,
        rest_tls=by_rest,
        proxies=proxies,
        rest_socket=rest_socket,
        names=names,
        access=access,
        webhooks=told,
        pair=pair,
    )


def _bought(
    file: _File, network: Network | None, folder: Path, problems: Problems
) -> tuple[dict[str, Seller], dict[str, int]]:
    """Return, by circuit, who sells it, and the VLAN in which it is handed over."""
    framing = Framing() if network is None else network.framing
    sold = providers.sellers(file.circuits, framing.mtu_bytes, folder, problems)
    vids = providers.vlan_vids(file.circuits, sold, problems)
    if network is not None:
        providers.check_handed_over(network, sold, problems)
        for name in {link.circuit for _, _, link in network.circuit_links if link.vlan_vid is not None} & vids.keys():
            problems.at(str(name), "vlan_vid").add("the network says its VLAN already, at each end: take it out here")
    return sold, vids
