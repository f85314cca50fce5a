"""What a host needs for protocols that use several paths by themselves, and what a path's death costs. Pure."""

from collections.abc import Iterator, Mapping

from hostagent.doctor.buffers import Numbers
from hostagent.doctor.receive_window import command
from hostagent.doctor.row import FitnessVerdict, Row, verdict
from hostagent.doctor.survey import Survey

USUAL_RTO_MIN_MS = 1000  # RTO.Min, RFC 9260 section 16
UNUSED = "nothing to do if no program here uses it"
# Linux's own, where an older kernel does not show one: net/sctp/protocol.c, sctp_defaults_init.
_SCTP = {"pf_enable": 1, "pf_retrans": 0, "rto_min": 1000, "rto_max": 60_000, "path_max_retrans": 5}


def rows(survey: Survey) -> Iterator[Row]:
    """Yield what Multipath TCP lacks on a host with several interfaces, and what SCTP does when a path dies."""
    if len(survey.lanes) > 1:
        yield from _mptcp(survey)
    if "sctp.rto_min" in survey.settings:
        yield _sctp_death(survey.settings)
    elif len(survey.lanes) > 1:
        yield _sctp_unseen(survey)


def _mptcp(survey: Survey) -> Iterator[Row]:
    if "mptcp.enabled" not in survey.settings:
        fix = f"boot a kernel with CONFIG_MPTCP=y, as Debian's; {UNUSED}"
        yield Row("MPTCP", "this kernel has none", "any", FitnessVerdict.WARN, "programs that ask for it get TCP", fix)
        return
    paths = survey.mptcp
    if paths is None:
        why = "without endpoints a connection has one subflow"
        fix = "as root: ip mptcp endpoint; ip mptcp limits"
        yield Row("MPTCP endpoints", "not visible here", "one a lane", FitnessVerdict.WARN, why, fix)
        return
    first = survey.interface.name if survey.interface else ""
    others = [lane for lane in survey.lanes if lane.name != first]
    families = {address.version for lane in survey.lanes if lane.name == first for address in lane.addresses}
    wanted = [(lane, version) for lane in others for version in sorted(families or {4, 6})]
    lacking = [
        (lane, own)
        for lane, version in wanted
        if (own := [address for address in lane.addresses if address.version == version])
        and not set(own) & set(paths.endpoints)
    ]
    add = "; ".join(f"ip mptcp endpoint add {own[0]} dev {lane.name} subflow" for lane, own in lacking)
    yield Row(
        what="MPTCP endpoints",
        now=", ".join(str(address) for address in paths.endpoints) or "none",
        needed=f"one of {', '.join(lane.name for lane in others)} each"
        if len(others) > 1
        else f"one of {others[0].name}",
        verdict=verdict(not lacking, FitnessVerdict.WARN),
        why="has a second subflow of connections of its IP version; signal, not subflow, where others connect",
        fix=f"{add}; {UNUSED}",
    )
    most = len(survey.lanes) - 1
    yield Row(
        what="MPTCP limits",
        now=f"subflows {paths.subflows}, add_addr_accepted {paths.accepted}",
        needed=f"subflows {most}",
        verdict=verdict(paths.subflows >= most, FitnessVerdict.WARN),
        why="subflows beside a connection's first; add_addr_accepted counts where the other end has the lanes",
        fix=f"ip mptcp limits set subflow {most} add_addr_accepted {max(most, paths.accepted)}; {UNUSED}",
    )


def _sctp_death(settings: Mapping[str, Numbers]) -> Row:
    now = {name: settings[f"sctp.{name}"].of[0] if f"sctp.{name}" in settings else its for name, its in _SCTP.items()}
    timeouts_ms = sctp_timeouts_ms(**now)
    cure = {"pf_enable": (now["pf_enable"] == 0, 1), "pf_retrans": (now["pf_retrans"] > 0, 0)}
    cure["rto_min"] = (now["rto_min"] > USUAL_RTO_MIN_MS, USUAL_RTO_MIN_MS)
    terms = " + ".join(f"{each / 1000:g}" for each in timeouts_ms[:8]) + (" ..." if timeouts_ms[8:] else "")
    return Row(
        what="SCTP, a path's death",
        now=f"{sum(timeouts_ms) / 1000:g} s without a byte",
        needed=f"{USUAL_RTO_MIN_MS / 1000:g} s",
        verdict=verdict(sum(timeouts_ms) <= USUAL_RTO_MIN_MS, FitnessVerdict.WARN),
        why=f"timeouts until it takes its other path, at the least: {terms} s",
        fix="; ".join(command(f"sctp.{name}", Numbers((to,))) for name, (is_wrong, to) in cure.items() if is_wrong),
    )


def sctp_timeouts_ms(
    *, pf_enable: int, pf_retrans: int, rto_min: int, rto_max: int, path_max_retrans: int
) -> tuple[int, ...]:
    """Return the timeouts that pass until SCTP takes another path than a dead one, where round trips are short.

    A path is given up after ``path_max_retrans`` + 1 timeouts in a row, each twice as long as the one before to
    ``rto_max`` (RFC 9260 sections 6.3.3 and 8.2), or left after ``pf_retrans`` + 1 (RFC 7829 section 3).

    >>> sctp_timeouts_ms(pf_enable=1, pf_retrans=0, rto_min=1000, rto_max=60000, path_max_retrans=5)
    (1000,)
    >>> sum(sctp_timeouts_ms(pf_enable=0, pf_retrans=0, rto_min=1000, rto_max=60000, path_max_retrans=5))
    63000
    """
    count = 1 + (min(pf_retrans, path_max_retrans) if pf_enable else path_max_retrans)
    return tuple(min(rto_min << min(turn, 32), rto_max) for turn in range(count))


def _sctp_unseen(survey: Survey) -> Row:
    why = "its settings are seen, and can be set, only where its module is loaded"
    if survey.has_sctp_module:
        fix = f"modprobe sctp, then headway agent check again; {UNUSED}"
        return Row("SCTP", "module not loaded", "loaded", FitnessVerdict.WARN, why, fix)
    if survey.has_sctp_module is None:
        fix = f"modprobe sctp on the machine itself, then headway agent check again; {UNUSED}"
        return Row("SCTP", "modules not visible here", "loaded", FitnessVerdict.WARN, why, fix)
    packages = "kernel-modules-extra (RHEL) or linux-modules-extra-$(uname -r) (Ubuntu)"
    fix = f"install {packages}, else boot a kernel with CONFIG_IP_SCTP=m, as Debian's; {UNUSED}"
    return Row("SCTP", "this kernel has no module sctp", "loaded", FitnessVerdict.WARN, why, fix)
