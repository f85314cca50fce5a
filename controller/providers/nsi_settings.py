"""The section ``nsi`` of a circuit, and NSI as a kind of provider."""

from typing import Annotated

from pydantic import Field

from controller.providers.credentials import CredentialsSection, token_of
from controller.providers.kinds import ProviderKind, Seller
from controller.providers.nsi import NsiProvider
from controller.providers.nsi_tls import ssl_context
from controller.providers.nsi_values import NsiSettings, TlsFiles
from controller.settings.sections import FilePath, Rate, Section, within
from topology.problems import Problems


class _TlsSection(Section):
    ca: FilePath | None = None
    certificate: FilePath | None = None
    key: FilePath | None = None


class NsiSection(CredentialsSection):
    """A circuit that is bought through an NSI aggregator proxy."""

    url: str
    requester_nsa: str
    provider_nsa: str
    source: str
    dest: str
    ero: tuple[str, ...] = ()
    callback: str = ""
    moved_from: str = ""
    tls: _TlsSection = _TlsSection()
    rate_step: Rate = Field(default=1_000_000, gt=0)
    deploy: Annotated[int, within("1 s", "1 h")] = 300_000_000
    settle: Annotated[int, within("10 s", "1 d")] = 600_000_000
    timeout: Annotated[int, within("1 s", "10 min")] = 30_000_000


def _seller(section: NsiSection, mtu_bytes: int, problems: Problems) -> Seller | None:  # noqa: ARG001 - NSI has no MTU
    """Return the proxy that a circuit is bought through."""
    has_token = section.token_env or section.token_file or section.login
    token = token_of(section, problems) if has_token else None
    if has_token and token is None:
        return None
    files = TlsFiles(
        *(None if file is None else str(file) for file in (section.tls.ca, section.tls.certificate, section.tls.key))
    )
    try:
        ssl_context(files)
    except OSError as error:
        problems.at("tls").add(f"cannot be used: {error}")
        return None
    try:
        settings = NsiSettings(
            url=section.url,
            requester_nsa=section.requester_nsa,
            provider_nsa=section.provider_nsa,
            source_stp=section.source,
            dest_stp=section.dest,
            ero=section.ero,
            callback=section.callback,
            token=token,
            tls=files,
            rate_step_bps=section.rate_step,
            deploy_us=section.deploy,
            settle_us=section.settle,
            timeout_s=section.timeout / 1e6,
        )
    except ValueError as error:
        problems.add(error)
        return None
    return Seller(
        "nsi",
        settings.terms,
        settings.vlan_vids,
        lambda now_us: NsiProvider(settings, now_us),
        section.provider_nsa,  # the aggregator's: a proxy is a way to it
        section.moved_from,
    )


NSI = ProviderKind(NsiSection, _seller)
