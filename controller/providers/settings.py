"""The section ``circuits`` of the configuration: who sells each circuit, and when a leased one has less to give."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field

from controller.plan.purchases import Period
from controller.providers.errors import SecretUnusable
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_wire import OscarsPort, OscarsSettings
from controller.providers.secrets import secret_from
from controller.providers.static import StaticProvider
from controller.settings.sections import Duration, Instant, Rate, Section
from topology import units
from topology.network import Network
from topology.problems import Problems
from topology.relinking import VLAN_VIDS


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
    sections: dict[str, CircuitSection], network: Network, problems: Problems
) -> dict[str, tuple[Period, ...]]:
    """Return, by circuit, when it has another capacity than its own rate; what is wrong goes to ``problems``."""
    known = {circuit.name for circuit in network.circuits}
    for name in sections.keys() - known:
        problems.at(name).add(f"there is no such circuit; there are {', '.join(known)}")
    found = {}
    for name, section in sections.items():
        usual_bps = next((circuit.rate_bps for circuit in network.circuits if circuit.name == name), 0)
        here = problems.at(name, "schedule")
        for entry in section.schedule:
            if entry.rate > usual_bps:
                most = units.shown_rate(usual_bps)
                here.add(f"{units.shown_rate(entry.rate)} is more than the circuit's {most}")
        if section.oscars is not None and section.schedule:
            problems.at(name).add("one that is bought has no schedule of its own")
        try:
            periods = [Period(entry.start, entry.end, entry.rate) for entry in section.schedule]
            found[name] = StaticProvider(periods).schedule
        except ValueError as error:
            here.add(error)
    return found


def vlan_vids(sections: dict[str, CircuitSection], problems: Problems) -> dict[str, int]:
    """Return, by circuit, the VLAN in which it is handed over; what is wrong goes to ``problems``."""
    found = {name: section.vlan_vid for name, section in sections.items() if section.vlan_vid is not None}
    for name, section in _sold(sections):
        for side, end in (("a", section.a), ("z", section.z)):
            if name in found and end.vlan != found[name]:
                both = f"vlan_vid is {found[name]}, and oscars.{side}.vlan is {end.vlan}"
                problems.at(name).add(f"{both}; they have to be the same")
    return found


def bought(sections: dict[str, CircuitSection], network: Network, problems: Problems) -> dict[str, OscarsSettings]:
    """Return, by circuit, the OSCARS it is bought from; what is wrong goes to ``problems``."""
    found = {}
    for name, section in _sold(sections):
        here = problems.at(name, "oscars")
        ends = {}
        for side, end in (("a", section.a), ("z", section.z)):
            try:
                ends[side] = OscarsPort(end.device, end.port, end.vlan)
            except ValueError as error:
                here.at(side).add(error)
        try:
            token = secret_from(section.token_env, section.token_file)
        except SecretUnusable as error:
            here.add(f"token_env or token_file: {error}")
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
            here.add(error)
    return found


def lead_us(oscars: Mapping[str, OscarsSettings]) -> dict[str, int]:
    """Return, by circuit that is bought, how long before its use that must be."""
    return {name: terms.lead_us for name, one in oscars.items() if (terms := OscarsProvider(one).terms)}


def _sold(sections: dict[str, CircuitSection]) -> Iterator[tuple[str, _OscarsSection]]:
    for name, section in sections.items():
        if section.oscars is not None:
            yield name, section.oscars
