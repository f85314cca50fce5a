"""The agent's configuration: one YAML file, read once into a frozen value; all its problems at once."""

import re
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hostagent.errors import AgentConfigError
from hostagent.kernel.plan import Tuning
from hostagent.stores.settings import IntakeStore
from hostagent.stores.settings import problems as store_problems
from hostagent.trust import ClientTls
from topology import units
from topology.telemetry import MOST_STORES
from topology.yaml_text import NotYaml, values_of

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/?#@]+):([0-9]{1,5})")
_SAME_MACHINE = re.compile(r"unix:/\S+")


def _host_of(text: str, example: str) -> str:
    """Return the host of ``host:port``.

    Raises:
        ValueError: it is not that.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[2]) <= 65535:
        raise ValueError(f'"{text}" is not an address and port, try "{example}"')
    if match[1].startswith("["):
        try:
            IPv6Address(match[1].strip("[]"))
        except ValueError as error:
            raise ValueError(f'"{match[1]}" is not an address of IPv6: {error}') from error
    return match[1]


def _checked_endpoint(text: str) -> str:
    """Return ``host:port`` as it is.

    Raises:
        ValueError: it is not that.
    """
    _host_of(text, "127.0.0.1:9431")
    return text


def _checked_address(text: str) -> str:
    """Return ``host:port`` or ``unix:/path`` as it is.

    Raises:
        ValueError: it is not that.
    """
    if _SAME_MACHINE.fullmatch(text):
        return text
    host = _host_of(text, "192.0.2.1:50051")
    try:
        host.encode("idna")
    except UnicodeError as error:  # no name server can be asked for it
        raise ValueError(f'"{host}" is not the name of a host: a label of it is empty or too long') from error
    return text


_DEFAULT = Tuning()
Share = Annotated[int, BeforeValidator(lambda text: units.fraction_ppm(str(text))), Field(ge=0, le=1_000_000)]
Duration = Annotated[int, BeforeValidator(lambda text: units.duration_us(str(text))), Field(gt=0, le=3_600_000_000)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Fallback:
    """When an allocation's connections are given back because of catastrophic loss, and when they are taken again.

    Attributes:
        loss: share sent again, of the segments delivered or sent again, from which on loss is catastrophic, ppm.
        over: how long it is watched, microseconds.
        clear: share that is ordinary again, ppm.
        hold: how long the connections keep their own congestion control at least, microseconds.
    """

    loss: Share = _DEFAULT.loss_trip_ppm
    over: Duration = _DEFAULT.loss_period_us
    clear: Share = _DEFAULT.loss_clear_ppm
    hold: Duration = _DEFAULT.loss_hold_us

    def __post_init__(self) -> None:
        """Refuse what would never come back, or go back and forth.

        Raises:
            ValueError: ``clear`` is not below ``loss``.
        """
        if self.clear >= self.loss:
            raise ValueError("clear must be below loss, or the connections would go back and forth")


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class AgentSettings:
    """How one agent runs.

    Attributes:
        host: this host's name in the controller's topology.
        controllers: ``host:port``, or ``unix:/path`` on the same machine; all are dialled at once.
        cgroup: the cgroup2 directory whose sockets are the agent's; None takes the first mount in /proc/mounts.
        run_dir: where the lock and what was changed are kept; must not survive a reboot.
        receive_window: whether the agent may widen TCP's buffers and the kernel's limits on them.
        metrics: ``host:port`` where Prometheus finds the metrics; None for nowhere.
        fallback: what catastrophic loss is.
        tls: the files of mutual TLS with the controllers; None only if these are all on this machine.
        insecure: whether controllers on other machines may be believed without TLS.
        stores: where what is received is put, if the controller is to know what that takes.
        rto_min: least retransmission timeout of a held connection, microseconds; the kernel's own is 200 ms.
        tail_copies: whether what is sent again at the end of a transfer goes three times (Linux 6.6 or newer).
        tail_coded: whether this host offers coded tails (Linux 6.6 or newer): parities follow the transfers of an
            allocation that says so, and what one that comes lacks is rebuilt.
    """

    host: Annotated[str, Field(min_length=1)]
    controllers: Annotated[tuple[Annotated[str, AfterValidator(_checked_address)], ...], Field(min_length=1)]
    cgroup: Path | None = None
    run_dir: Path = Path("/run/headway")
    receive_window: bool = True
    metrics: Annotated[str, AfterValidator(_checked_endpoint)] | None = None
    fallback: Fallback = Fallback()
    tls: ClientTls | None = None
    insecure: bool = False
    rto_min: Annotated[Duration, Field(ge=8_000, le=200_000)] = _DEFAULT.rto_min_us
    tail_copies: bool = _DEFAULT.tail_copies
    tail_coded: bool = _DEFAULT.tail_coded
    stores: Annotated[tuple[IntakeStore, ...], Field(max_length=MOST_STORES)] = ()

    @property
    def tuning(self) -> Tuning:
        """What the kernel part is told once."""
        loss = self.fallback
        return Tuning(loss.loss, loss.over, loss.clear, loss.hold, self.rto_min, self.tail_copies, self.tail_coded)


def loaded(path: Path) -> AgentSettings:
    """Return the configuration in a file.

    Raises:
        AgentConfigError: with all the problems.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AgentConfigError((f"cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise AgentConfigError((f"is not UTF-8 text: {error.reason} at byte {error.start}",)) from error
    return parsed_settings(text, path.absolute().parent)


def parsed_settings(text: str, folder: Path = Path()) -> AgentSettings:
    """Return the configuration in a YAML text.

    Args:
        text: the YAML.
        folder: where relative paths in it begin.

    Raises:
        AgentConfigError: with all the problems.
    """
    try:
        tree = values_of(text)
    except NotYaml as error:
        raise AgentConfigError((str(error),)) from error
    if not isinstance(tree, dict):
        raise AgentConfigError(('expected keys and values, try "host: dtn1"',))
    try:
        settings = TypeAdapter(AgentSettings).validate_python(tree | {"tls": _below(folder, tree.get("tls"))})
    except ValidationError as error:
        problems = (f"{_path(e['loc'])}: {_words(e['type'], e['msg'])}" for e in error.errors())
        raise AgentConfigError(tuple(problems)) from error
    found = (*_doubles(settings.controllers), *_untrusted(settings), *store_problems(settings.stores))
    if found:
        raise AgentConfigError(found)
    return settings


def _doubles(controllers: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is wrong with a list of controllers that has one twice: each stream to it would end the other.

    A name, and an address of IPv6, may be in capitals or not; of a path these are others.
    """
    known = [text if text.startswith("unix:") else text.lower() for text in controllers]
    return tuple(
        f"controllers[{i}]: {address} is there already, and all of them are dialled at once"
        for i, address in enumerate(controllers)
        if known[i] in known[:i]
    )


def _below(folder: Path, section: object) -> object:
    """Return the section ``tls`` with paths that begin at a folder, where they do not begin at the root."""
    if not isinstance(section, dict):
        return section
    return {key: str(folder / value) if isinstance(value, str) else value for key, value in section.items()}


def _untrusted(settings: AgentSettings) -> tuple[str, ...]:
    """Return what is wrong with how controllers are trusted."""
    if settings.tls is not None:
        both = ("insecure: says that TLS is not wanted, and there is a tls section: take one of them away",)
        return (both if settings.insecure else ()) + settings.tls.problems(settings.host)
    if settings.insecure:
        return ()
    return tuple(
        f"controllers[{i}]: {address} is on another machine, and without TLS anybody there could pass for it: say "
        f"tls: {{authority: ca.pem, certificate: {settings.host}.pem, key: {settings.host}.key}}, made where the "
        f"controller's certificates are by: headway pki agent DIR {settings.host}; or insecure: true"
        for i, address in enumerate(settings.controllers)
        if not _is_here(address)
    )


def _is_here(address: str) -> bool:
    """Return whether an address can only be this machine's.

    >>> _is_here("unix:/run/c.sock"), _is_here("[::1]:50051"), _is_here("127.0.0.2:1"), _is_here("192.0.2.1:1")
    (True, True, True, False)
    """
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return _SAME_MACHINE.fullmatch(address) is not None or host == "localhost"


def _path(location: tuple[int | str, ...]) -> str:
    """Return a location as people write it.

    >>> _path(("controllers", 0))
    'controllers[0]'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).lstrip(".")


def _words(kind: str, message: str) -> str:
    """Return pydantic's message in the operator's words."""
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return "no such key"
    if kind in ("missing", "missing_argument"):
        return "is missing"
    return message.removeprefix("Value error, ")
