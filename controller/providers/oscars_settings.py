"""The section ``oscars`` of a circuit, and OSCARS as a kind of provider."""

from typing import Annotated

from controller.providers.credentials import CredentialsSection, token_of
from controller.providers.kinds import ProviderKind, Seller
from controller.providers.oscars import OscarsProvider, oscars_terms
from controller.providers.oscars_values import OscarsPort, OscarsSettings
from controller.settings.sections import Count, Section, within
from topology.problems import Problems


class _EndSection(Section):
    device: str
    port: str
    vlan: Count


class OscarsSection(CredentialsSection):
    """A circuit that is bought of OSCARS."""

    url: str
    a: _EndSection
    z: _EndSection
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    moved_from: str = ""
    deploy: Annotated[int, within("0 s", "1 h")] = 120_000_000
    settle: Annotated[int, within("10 s", "1 d")] = 300_000_000
    timeout: Annotated[int, within("1 s", "10 min")] = 30_000_000


def _seller(section: OscarsSection, mtu_bytes: int, problems: Problems) -> Seller | None:
    """Return the OSCARS that a circuit is bought of."""
    ends = {}
    for side, end in (("a", section.a), ("z", section.z)):
        try:
            ends[side] = OscarsPort(end.device, end.port, end.vlan)
        except ValueError as error:
            problems.at(side).add(error)
    token = token_of(section, problems)
    if token is None or len(ends) < 2:
        return None
    try:
        settings = OscarsSettings(
            url=section.url,
            a_end=ends["a"],
            z_end=ends["z"],
            mtu_bytes=mtu_bytes,
            token=token,
            include=section.include,
            exclude=section.exclude,
            deploy_us=section.deploy,
            settle_us=section.settle,
            timeout_s=section.timeout / 1e6,
        )
    except ValueError as error:
        problems.add(error)
        return None
    vlan_vids = {f"{side}.vlan": end.vlan_vid for side, end in ends.items()}
    return Seller(
        "oscars",
        oscars_terms(settings),
        vlan_vids,
        lambda now_us: OscarsProvider(settings, now_us),
        section.url.rstrip("/"),
        section.moved_from.rstrip("/"),
    )


OSCARS = ProviderKind(OscarsSection, _seller)
