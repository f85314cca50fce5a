"""The kinds of providers that are installed: each an entry point, Headway's own and those of other packages alike.

A package offers a kind by an entry point in the group ``headway.providers``: its name is the key in a circuit's section
of the configuration, its value a :class:`ProviderKind`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from controller.plan.purchases import Terms
from controller.providers.provider import Provider
from controller.settings.sections import Section
from topology.problems import Problems

GROUP = "headway.providers"


@dataclass(frozen=True, slots=True)
class Seller:
    """Who sells one circuit, as configured.

    Attributes:
        kind: the name of the kind of provider.
        terms: what may be bought.
        vlan_vids: by place in the section, the VLAN in which the circuit is handed over there; 0 for untagged.
        connected: returns the provider, which goes by the clock that it is given: the site's calendar, Unix time in
            microseconds. Called once, when the controller starts; one of a pair asks nothing of it before it leads.
        server: what tells who sells it from others of its kind, as a URL, and no secret; empty if there is one alone.
        moved_from: what ``server`` was before, if that is the same one by another name.
    """

    kind: str
    terms: Terms
    vlan_vids: Mapping[str, int]
    connected: Callable[[Callable[[], int]], Provider] = field(repr=False)
    server: str = ""
    moved_from: str = ""


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """One kind of provider.

    Attributes:
        section: what is written of a circuit that is bought of it.
        seller: returns who sells the circuit, from its section and the MTU in bytes that it has to carry; or None, and
            what is wrong goes to the problems.
    """

    section: type[Section]
    seller: Callable[[Any, int, Problems], Seller | None]


@dataclass(frozen=True, slots=True)
class UnusableKind:
    """A kind that is installed, and cannot be used."""

    why: str


def kinds() -> dict[str, ProviderKind | UnusableKind]:
    """Return by name every kind of provider that is installed."""
    return {found.name: _loaded(found.load, found.value) for found in entry_points(group=GROUP)}


def _loaded(load: Callable[[], object], value: str) -> ProviderKind | UnusableKind:
    """Return what an entry point has; a package that cannot be imported is no fault of ours."""
    try:
        kind = load()
    except Exception as error:  # noqa: BLE001 - whatever somebody else's module does when it is imported
        return UnusableKind(f"{value} cannot be loaded: {type(error).__name__}: {error}")
    return kind if isinstance(kind, ProviderKind) else UnusableKind(f"{value} is no kind of provider")
