"""The section ``circuits`` of the configuration: who sells each circuit, and when a leased one has less to give."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ConfigDict, Field

from controller.plan.purchases import Period
from controller.providers.kinds import ProviderKind, Seller, UnusableKind, kinds
from controller.providers.static import StaticProvider
from controller.settings.file import checked_section
from controller.settings.sections import Count, Instant, Rate, Section
from topology import units
from topology.network import Network
from topology.problems import Problems
from topology.relinking import VLAN_VIDS


class _CapacitySection(Section):
    start: Instant = Field(alias="from")
    end: Instant = Field(alias="until")
    rate: Rate = Field(ge=0)


class CircuitSection(Section):
    """One circuit: a leased line with its schedule, or one that is bought at need of a kind of provider."""

    model_config = ConfigDict(extra="allow", frozen=True)

    vlan_vid: Count | None = Field(default=None, ge=VLAN_VIDS.start, lt=VLAN_VIDS.stop)
    schedule: tuple[_CapacitySection, ...] = ()

    @property
    def bought_of(self) -> dict[str, object]:
        """By kind of provider, what is written of it."""
        return dict(self.model_extra or {})


def schedules(
    sections: dict[str, CircuitSection], network: Network | None, problems: Problems
) -> dict[str, tuple[Period, ...]]:
    """Return, by circuit, when it has another capacity than its own rate; what is wrong goes to ``problems``.

    Without a network it is not known which circuits there are.
    """
    rates = {circuit.name: circuit.rate_bps for circuit in (() if network is None else network.circuits)}
    if network is not None:
        for name in sections.keys() - rates.keys():
            problems.at(name).add(f"there is no such circuit; there are {', '.join(rates)}")
    found = {}
    for name, section in sections.items():
        usual_bps = rates.get(name)
        here = problems.at(name, "schedule")
        for entry in section.schedule:
            if usual_bps is not None and entry.rate > usual_bps:
                most = units.shown_rate(usual_bps)
                here.add(f"{units.shown_rate(entry.rate)} is more than the circuit's {most}")
            if entry.end <= entry.start:
                here.add(f"the end, {units.shown_time(entry.end)}, must come after the start")
        if section.bought_of and section.schedule:
            problems.at(name).add("one that is bought has no schedule of its own")
        try:
            periods = [
                Period(entry.start, entry.end, entry.rate) for entry in section.schedule if entry.start < entry.end
            ]
            found[name] = StaticProvider(periods).schedule
        except ValueError as error:
            here.add(error)
    return found


def vlan_vids(sections: dict[str, CircuitSection], sold: Mapping[str, Seller], problems: Problems) -> dict[str, int]:
    """Return, by circuit, the VLAN in which it is handed over; what is wrong goes to ``problems``."""
    found = {name: section.vlan_vid for name, section in sections.items() if section.vlan_vid is not None}
    for name, seller in sold.items():
        for place, vlan_vid in seller.vlan_vids.items():
            if name in found and vlan_vid != found[name]:
                both = f"vlan_vid is {found[name]}, and {seller.kind}.{place} is {vlan_vid}"
                problems.at(name).add(f"{both}; they have to be the same")
    return found


def check_handed_over(network: Network, sold: Mapping[str, Seller], problems: Problems) -> None:
    """Find circuits that are bought in other VLANs than those in which the network's file has them handed over.

    A seller's end without a VLAN may be of any; which of them is which of the network's ends is not known.
    """
    for name, seller in sold.items():
        links = (link for _, _, link in network.circuit_links if link.circuit == name)
        others = {link.vlan_vid for link in links if link.vlan_vid is not None} - {*seller.vlan_vids.values()}
        if len(others) > 2 - len(seller.vlan_vids):
            sold_in = " and ".join(f"{seller.kind}.{place} is {vlan}" for place, vlan in seller.vlan_vids.items())
            said = " and ".join(map(str, sorted(others)))
            problems.at(name).add(
                f"the network's file hands it over in VLAN {said}, and {sold_in}; they must be the same"
            )


def sellers(sections: dict[str, CircuitSection], mtu_bytes: int, folder: Path, problems: Problems) -> dict[str, Seller]:
    """Return, by circuit that is bought at need, who sells it; what is wrong goes to ``problems``.

    Args:
        sections: by circuit.
        mtu_bytes: what each circuit has to carry.
        folder: where relative paths in them begin.
        problems: of them all.
    """
    found = {}
    installed = kinds() if any(section.bought_of for section in sections.values()) else {}
    for name, section in sections.items():
        if len(section.bought_of) > 1:
            problems.at(name).add(f"it is bought of one provider, not of {' and '.join(section.bought_of)}")
            continue
        for kind, written in section.bought_of.items():
            here = problems.at(name, kind)
            known = _known(kind, installed, here)
            said = None if known is None else checked_section(written, known.section, folder, here)
            seller = None if known is None or said is None else known.seller(said, mtu_bytes, here)
            if seller is not None:
                found[name] = seller
    return found


def _known(name: str, installed: Mapping[str, ProviderKind | UnusableKind], here: Problems) -> ProviderKind | None:
    kind = installed.get(name)
    if kind is None:
        here.add(f"there is no such key, and no such provider is installed; there are {', '.join(sorted(installed))}")
        return None
    if isinstance(kind, UnusableKind):
        here.add(kind.why)
        return None
    return kind
