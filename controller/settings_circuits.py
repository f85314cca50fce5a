"""The section ``circuits`` of the configuration: who sells each circuit, and when a leased one has less to give."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from controller.plan.purchases import Period
from controller.providers.errors import SecretUnusable
from controller.providers.oscars_wire import Endpoint, OscarsSettings
from controller.providers.secrets import secret_from
from controller.providers.static import StaticProvider
from topology import units
from topology.network import VLAN_VIDS, Network

Instant = Annotated[int, BeforeValidator(lambda text: units.instant_us(_text(text)))]
Rate = Annotated[int, BeforeValidator(lambda text: units.rate_bps(str(text)))]
Duration = Annotated[int, BeforeValidator(lambda text: units.duration_us(str(text)))]


def _text(value: Any) -> str:
    """Return what YAML has read as a time as the text it was; YAML takes times without quotes for its own."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class Section(BaseModel):
    """Unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _CapacitySection(Section):
    start: Instant = Field(alias="from")
    end: Instant = Field(alias="until")
    rate: Rate = Field(ge=0)


class _EndSection(Section):
    device: str
    port: str
    vlan: int


class _OscarsSection(Section):
    url: str
    a: _EndSection
    z: _EndSection
    token_env: str | None = None
    token_file: Path | None = None
    deploy: Duration = Field(default=120_000_000, ge=0, le=3_600_000_000)
    timeout: Duration = Field(default=30_000_000, ge=1_000_000, le=600_000_000)


class CircuitSection(Section):
    """One circuit: a leased line with its schedule, or one that is bought at need."""

    vlan_vid: int | None = Field(default=None, ge=VLAN_VIDS.start, lt=VLAN_VIDS.stop)
    schedule: tuple[_CapacitySection, ...] = ()
    oscars: _OscarsSection | None = None


def schedules(
    sections: dict[str, CircuitSection], network: Network, problems: list[str]
) -> dict[str, tuple[Period, ...]]:
    """Return, by circuit, when it has another capacity than its own rate; what is wrong goes to ``problems``."""
    known = {circuit.name for circuit in network.circuits}
    problems += [
        f"circuits.{name}: there is no such circuit; there are {', '.join(known)}" for name in sections.keys() - known
    ]
    found = {}
    for name, section in sections.items():
        usual_bps = next((circuit.rate_bps for circuit in network.circuits if circuit.name == name), 0)
        problems += [
            f"circuits.{name}.schedule: {units.shown_rate(entry.rate)} is more than the circuit's "
            f"{units.shown_rate(usual_bps)}"
            for entry in section.schedule
            if entry.rate > usual_bps
        ]
        if section.oscars is not None and section.schedule:
            problems.append(f"circuits.{name}: one that is bought has no schedule of its own")
        try:
            periods = [Period(entry.start, entry.end, entry.rate) for entry in section.schedule]
            found[name] = StaticProvider(periods).schedule
        except ValueError as error:
            problems.append(f"circuits.{name}.schedule: {error}")
    return found


def vlan_vids(sections: dict[str, CircuitSection], problems: list[str]) -> dict[str, int]:
    """Return, by circuit, the VLAN in which it is handed over; what is wrong goes to ``problems``."""
    found = {name: section.vlan_vid for name, section in sections.items() if section.vlan_vid is not None}
    problems += [
        f"circuits.{name}: vlan_vid is {found[name]}, and oscars.{side}.vlan is {end.vlan}; they have to be the same"
        for name, section in _sold(sections)
        for side, end in (("a", section.a), ("z", section.z))
        if name in found and end.vlan != found[name]
    ]
    return found


def bought(sections: dict[str, CircuitSection], network: Network, problems: list[str]) -> dict[str, OscarsSettings]:
    """Return, by circuit, the OSCARS it is bought from; what is wrong goes to ``problems``."""
    found = {}
    for name, section in _sold(sections):
        ends = {}
        for side, end in (("a", section.a), ("z", section.z)):
            try:
                ends[side] = Endpoint(end.device, end.port, end.vlan)
            except ValueError as error:
                problems.append(f"circuits.{name}.oscars.{side}: {error}")
        try:
            token = secret_from(section.token_env, section.token_file)
        except SecretUnusable as error:
            problems.append(f"circuits.{name}.oscars: token_env or token_file: {error}")
            continue
        if len(ends) < 2:
            continue
        try:
            found[name] = OscarsSettings(
                url=section.url,
                a_end=ends["a"],
                z_end=ends["z"],
                mtu_bytes=network.framing.mtu_bytes,
                token=token,
                deploy_us=section.deploy,
                timeout_s=section.timeout / 1e6,
            )
        except ValueError as error:
            problems.append(f"circuits.{name}.oscars: {error}")
    return found


def _sold(sections: dict[str, CircuitSection]) -> Iterator[tuple[str, _OscarsSection]]:
    for name, section in sections.items():
        if section.oscars is not None:
            yield name, section.oscars
