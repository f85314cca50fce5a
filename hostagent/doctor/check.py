"""Whether a host can carry a rate over a round trip: what that takes, what there is, and the cure. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hostagent.doctor import buffers, several_paths
from hostagent.doctor.buffers import Numbers, Wanted
from hostagent.doctor.receive_window import command, full
from hostagent.doctor.row import FitnessVerdict, Row, verdict
from hostagent.doctor.survey import Interface, Survey
from hostagent.kernel import probe
from hostagent.kernel.loader import LIBRARY
from topology.units import shown_rate, shown_size
from topology.wire import Layer

LEAST_TIMER_NS = 1000  # pacing sets a timer for each burst; without high resolution it would wait whole ticks
LONGEST_COALESCING_US = 1000
SHAPING = ("htb", "tbf", "hfsc", "cake", "netem")
FIRST_ONLY = "seen and set only in the host's first network namespace"


def rows(survey: Survey, wanted: Wanted) -> tuple[Row, ...]:
    """Return everything that matters for a rate and a round trip on this host."""
    found = (
        *_prerequisites(survey),
        *_buffers(survey, wanted),
        *_memory(survey, wanted),
        *_behaviour(survey),
        *several_paths.rows(survey),
        *_interface(survey, wanted),
        *_surroundings(survey),
    )
    return tuple(replace(row, fix="") if row.verdict is FitnessVerdict.OK else row for row in found)


def settings_for(survey: Survey, wanted: Wanted) -> dict[str, Numbers]:
    """Return the sysctls that can be set from here, by short name, as they must be; none less than it is.

    The second number of tcp_rmem stays: it is every socket's first buffer, and the agent raises it while a plan asks.
    """
    now = survey.settings
    receive, send = now["tcp_rmem"].of, now["tcp_wmem"].of
    must = {
        "tcp_rmem": Numbers((receive[0], receive[1], max(receive[2], wanted.receive_buffer_bytes))),
        "tcp_wmem": Numbers((send[0], send[1], max(send[2], wanted.send_buffer_bytes))),
    }
    if "tcp_mem" in now:  # the first namespace; the others may not set these either
        must["tcp_mem"] = buffers.pages_for(now["tcp_mem"], wanted.worst_bytes, survey.memory_bytes)
        must["rmem_max"] = buffers.at_least(now["rmem_max"], wanted.window_bytes)
        must["wmem_max"] = buffers.at_least(now["wmem_max"], wanted.send_buffer_bytes // 2)
    return must | _switch_settings(now)


def sysctl_file(survey: Survey, wanted: Wanted) -> str:
    """Return the settings as a file for sysctl.d."""
    lines = [
        f"# for {shown_rate(wanted.rate_bps)} on the wire, {wanted.rtt_us / 1000:g} ms: headway agent check --sysctl"
    ]
    lines += [f"{full(name)} = {to}" for name, to in settings_for(survey, wanted).items()]
    return "\n".join(lines) + "\n"


def _prerequisites(survey: Survey) -> Iterator[Row]:
    lacks = {lack.need: lack for lack in probe.lacking(survey.facts)}
    needed = {
        "kernel": ("Linux 6.0 or newer", survey.facts.kernel),
        "BTF": (str(probe.BTF), "present"),
        "capabilities": ("CAP_BPF CAP_NET_ADMIN CAP_PERFMON", "all three"),
        "libbpf": (LIBRARY, "found"),
        "cgroup2": ("a directory to attach to", "found"),
        "clocks": ("the host's, in no time namespace with offsets", "the host's"),
    }
    for need, (wanted, now) in needed.items():
        lack = lacks.get(need)
        if lack is None:
            yield Row(need, now, wanted, FitnessVerdict.OK)
        else:
            yield Row(need, lack.what, wanted, FitnessVerdict.FAIL, lack.where, lack.remedy)
    fine = verdict(survey.timer_ns <= LEAST_TIMER_NS)
    fix = "boot a kernel with CONFIG_HIGH_RES_TIMERS=y, without highres=off"
    now, least = f"{survey.timer_ns} ns", f"{LEAST_TIMER_NS} ns or finer"
    yield Row("timers", now, least, fine, "TCP paces by a timer for each burst", fix)


def _buffers(survey: Survey, wanted: Wanted) -> Iterator[Row]:
    now, must = survey.settings, settings_for(survey, wanted)
    receive, send = now["tcp_rmem"], now["tcp_wmem"]
    needed, first, largest = (
        shown_size(wanted.receive_buffer_bytes),
        shown_size(receive.of[1]),
        shown_size(receive.of[2]),
    )
    trips = buffers.opening_round_trips(receive.of[1], wanted.bdp_bytes)
    why = f"a new connection's window opens in {trips} round trips, {trips * wanted.rtt_us / 1000:g} ms"
    opened = command("tcp_rmem", buffers.receive_buffer(receive, wanted.window_bytes))
    fix = f"the agent sets it while a plan asks (`receive_window: true`); or for every socket: {opened}"
    yield Row("tcp_rmem[1]", first, needed, verdict(not trips, FitnessVerdict.WARN), why, fix)
    why = "twice the widest window, which is three times rate x round trip, to cover recovery"
    if len(survey.lanes) > 1:
        why += "; MPTCP needs a third of it: what came by one lane waits there for another's"
    wide = verdict(receive.of[2] >= wanted.receive_buffer_bytes)
    yield Row("tcp_rmem[2]", largest, needed, wide, why, command("tcp_rmem", must["tcp_rmem"]))
    yield _scale(survey, wanted)
    yield _open(survey, wanted)
    why, wide = "a sender keeps a window until it is confirmed", verdict(send.of[2] >= wanted.send_buffer_bytes)
    needed, largest = shown_size(wanted.send_buffer_bytes), shown_size(send.of[2])
    yield Row("tcp_wmem[2]", largest, needed, wide, why, command("tcp_wmem", must["tcp_wmem"]))
    yield from _limits(survey, wanted)


def _scale(survey: Survey, wanted: Wanted) -> Row:
    seen = [now.of[-1] for name, now in survey.settings.items() if name in {"tcp_rmem", "rmem_max"}]
    offered = buffers.scale(max(seen))
    largest_bytes = buffers.largest_window_bytes(offered)
    most_bytes = buffers.largest_window_bytes(buffers.LARGEST_SCALE)
    return Row(
        what="window scale",
        now=f"{offered} (to {shown_size(largest_bytes)})",
        needed=f"window of {shown_size(wanted.window_bytes)}",
        verdict=verdict(largest_bytes >= min(wanted.window_bytes, most_bytes)),
        why="fixed at a connection's SYN: one that was open before a change keeps its own until it is opened anew",
        fix=f"{command('tcp_rmem', settings_for(survey, wanted)['tcp_rmem'])}, then reopen pooled connections",
    )


def _open(survey: Survey, wanted: Wanted) -> Row:
    narrow = [one for one in survey.connections if buffers.largest_window_bytes(one.scale) < wanted.window_bytes]
    peers = sorted({str(one.peer) for one in narrow})
    seen = ", ".join(peers[:3]) + (" ..." if peers[3:] else "")
    return Row(
        what="open connections",
        now=f"{len(narrow)} of {len(survey.connections)} narrower" + (f": {seen}" if seen else ""),
        needed="those of the path wide",
        verdict=verdict(not narrow, FitnessVerdict.WARN),
        why="opened with a smaller window scale; only a new SYN changes it. No matter if they are not of this path",
        fix=f"restart what keeps them: ss -tnp dst {peers[0]}" if peers else "",
    )


def _limits(survey: Survey, wanted: Wanted) -> Iterator[Row]:
    must = settings_for(survey, wanted)
    for name, option, needed_bytes in (
        ("rmem_max", "SO_RCVBUF", wanted.window_bytes),
        ("wmem_max", "SO_SNDBUF", wanted.send_buffer_bytes // 2),
    ):
        if name not in survey.settings:  # kernels before 6.12 show them in the first namespace only
            continue
        now_bytes = survey.settings[name].of[0]
        wide = verdict(now_bytes >= needed_bytes, FitnessVerdict.WARN)
        why = f"matters only to applications that set {option}"
        fix = command(name, must[name]) if name in must else FIRST_ONLY
        yield Row(name, shown_size(now_bytes), shown_size(needed_bytes), wide, why, fix)


def _memory(survey: Survey, wanted: Wanted) -> Iterator[Row]:
    yield _all_connections(survey, wanted)
    room_bytes = min(survey.memory_bytes // 2, survey.available_bytes)
    short = FitnessVerdict.FAIL if wanted.flowing_bytes > room_bytes else FitnessVerdict.WARN
    send, receive = shown_size(wanted.send_buffer_bytes), shown_size(wanted.receive_buffer_bytes)
    yield Row(
        what="memory",
        now=f"{shown_size(survey.available_bytes)} available",
        needed=f"{shown_size(wanted.flowing_bytes)}, at most {shown_size(wanted.worst_bytes)}",
        verdict=verdict(wanted.worst_bytes <= room_bytes, short),
        why=f"{send} to send; {receive} for each of {wanted.connections} receiving connections if all of them pause",
        fix="fewer receiving connections, or more memory; half of it should stay free",
    )
    least = -(-wanted.bdp_bytes // buffers.LARGEST_WINDOW_BYTES)
    enough = verdict(wanted.connections >= least)
    fix = f"send over {least} connections at once"
    yield Row("connections", str(wanted.connections), f"{least} or more", enough, "TCP's window ends at 1 GiB", fix)


def _all_connections(survey: Survey, wanted: Wanted) -> Row:
    now, needed = survey.settings.get("tcp_mem"), settings_for(survey, wanted).get("tcp_mem")
    why = f"all connections, pages of {buffers.PAGE_BYTES} B; above the second number windows shrink: the path stalls"
    if now is None or needed is None:
        pages = buffers.pages_for(Numbers((0, 0, 0)), wanted.worst_bytes, survey.memory_bytes)
        return Row(
            "tcp_mem",
            "not visible here",
            str(pages),
            FitnessVerdict.WARN,
            FIRST_ONLY,
            f"there: {command('tcp_mem', pages)}",
        )
    return Row("tcp_mem", str(now), str(needed), verdict(now == needed), why, command("tcp_mem", needed))


@dataclass(frozen=True, slots=True)
class _Switch:
    """What a setting must be: one of ``good``, the first if it is to be set, any if there are none."""

    good: tuple[int, ...] | range
    otherwise: FitnessVerdict
    why: str


_FAIL, _WARN = FitnessVerdict.FAIL, FitnessVerdict.WARN
_SWITCHES = {
    "tcp_window_scaling": _Switch((1,), _FAIL, "without it a window ends at 64 KiB"),
    "tcp_timestamps": _Switch((1, 2), _FAIL, "tells sequence numbers that wrap within seconds from old ones"),
    "tcp_sack": _Switch((1,), _FAIL, "without it one loss is repeated in each round trip"),
    "tcp_moderate_rcvbuf": _Switch((1,), _WARN, "without it a receive window does not grow"),
    "tcp_no_metrics_save": _Switch((1,), _WARN, "otherwise a bad transfer slows later ones that are not held"),
    "tcp_early_retrans": _Switch((3, 4), _WARN, "tail loss probes: a lost last segment costs no timeout"),
    "tcp_recovery": _Switch((1, 3, 5, 7), _WARN, "RACK finds lost repetitions without a timeout"),
    "tcp_retries2": _Switch((15, *range(8, 256)), _WARN, "a connection outlives an outage (RFC 1122: 100 s)"),
    "tcp_mtu_probing": _Switch((0, 1), _WARN, "2 tries larger segments all the time, beside the plan's window"),
    "mptcp.enabled": _Switch((1,), _WARN, "else a program that asks for Multipath TCP gets TCP, and is not told"),
    "mptcp.stale_loss_cnt": _Switch((1,), _WARN, "so many holes of half a second before MPTCP leaves a dead path"),
    "sctp.pf_enable": _Switch((1,), _WARN, "a path's death costs SCTP a second; without (RFC 4960) 63 s"),
    "sctp.pf_retrans": _Switch((0,), _WARN, "so many timeouts more, of 2, 4 ... s, before SCTP takes its other path"),
    "sctp.rto_min": _Switch(
        range(1000, 0, -1),
        _WARN,
        "ms; SCTP's first timeout: what a path's death costs at the least, if RTTs are shorter",
    ),
    "sctp.rto_max": _Switch(range(60_000, 0, -1), _WARN, "ms; where SCTP's timeouts, each twice as long, end to grow"),
    "sctp.path_max_retrans": _Switch(
        range(5, -1, -1), _WARN, "a path is dead after one timeout more; 2, rto_min 200 and rto_max 1000: seen 0.32 s"
    ),
    "tcp_slow_start_after_idle": _Switch((), FitnessVerdict.OK, "no matter for held connections; 0 helps the others"),
}


def _switch_settings(now: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return the switches as they must be; a good one stays as it is."""
    seen = {name: switch for name, switch in _SWITCHES.items() if switch.good and name in now}
    return {name: now[name] if now[name].of[0] in one.good else Numbers((one.good[0],)) for name, one in seen.items()}


def _behaviour(survey: Survey) -> Iterator[Row]:
    must = _switch_settings(survey.settings)
    for name, switch in _SWITCHES.items():
        now = survey.settings.get(name)
        if now is None:  # older kernels have fewer
            continue
        needed = must.get(name, now)
        wanted = str(needed) if switch.good else "any"
        yield Row(name, str(now), wanted, verdict(now == needed, switch.otherwise), switch.why, command(name, needed))


def _interface(survey: Survey, wanted: Wanted) -> Iterator[Row]:
    link = survey.interface
    if link is None:
        yield Row(
            "interface", "no route", "a route to the other end", FitnessVerdict.WARN, "nothing is known of the way out"
        )
        return
    mtu, rate, speed_bps = wanted.framing.mtu_bytes, shown_rate(wanted.rate_bps), link.speed_bps
    wide = verdict(link.mtu_bytes >= mtu)
    fix = f"ip link set {link.name} mtu {mtu}"
    yield Row(f"{link.name} MTU", str(link.mtu_bytes), f"{mtu} or more", wide, "windows are counted with it", fix)
    shown = "does not say" if speed_bps is None else shown_rate(speed_bps)
    fast = verdict(speed_bps is None or speed_bps >= wanted.rate_bps)
    yield Row(f"{link.name} speed", shown, rate, fast, "", "a faster interface, or a lower rate")
    free = verdict(link.qdisc not in SHAPING, FitnessVerdict.WARN)
    why = f"{'fq paces' if link.qdisc == 'fq' else 'TCP paces itself'}; with fq or without, both are right"
    fix = f"see that it lets {rate} pass: tc -s qdisc show dev {link.name}"
    yield Row(f"{link.name} qdisc", link.qdisc, "none that shapes", free, why, fix)
    why = f"largest burst; for a switch with small buffers: ip link set {link.name} gso_max_size 16384"
    yield Row(f"{link.name} gso_max_size", str(link.gso_max_bytes), "any", FitnessVerdict.OK, why)
    yield from _hardware(link, wanted)


def _hardware(link: Interface, wanted: Wanted) -> Iterator[Row]:
    name, found = link.name, link.hardware
    if (rings := found.rings) is not None:
        held_ms = rings.receive * wanted.framing.segment_bytes(Layer.WIRE) * 8e3 / wanted.rate_bps
        yield Row(
            what=f"{name} rings",
            now=f"receive {rings.receive} of {rings.receive_most}, send {rings.send} of {rings.send_most}",
            needed=f"receive {rings.receive_most}",
            verdict=verdict(rings.receive >= rings.receive_most, FitnessVerdict.WARN),
            why=f"what arrives waits there while the processor is elsewhere: {held_ms:.2g} ms at the rate",
            fix=f"ethtool -G {name} rx {rings.receive_most}",
        )
    if (coalescing := found.coalescing) is not None:
        yield Row(
            what=f"{name} coalescing",
            now=f"{coalescing.receive_us} us" + (", adaptive" if coalescing.adaptive else ""),
            needed=f"{LONGEST_COALESCING_US} us at most",
            verdict=verdict(coalescing.receive_us <= LONGEST_COALESCING_US, FitnessVerdict.WARN),
            why="what arrives is seen that much later and in bursts; the ring must hold it",
            fix=f"ethtool -C {name} rx-usecs 50",
        )
    if (pause := found.pause) is not None:
        now = f"{'obeyed' if pause.obeyed else 'not obeyed'}, {'sent' if pause.sent else 'not sent'}"
        why = "obeyed, a switch that is full stops all classes of this host at once; hosts that are held do not fill it"
        yield Row(f"{name} PAUSE", now, "any", FitnessVerdict.OK, why, f"ethtool -A {name} rx off tx off")
    yield from _drops(link)


def _drops(link: Interface) -> Iterator[Row]:
    seen, name = link.hardware.drops, link.name
    lost = seen.queued + seen.sent + seen.received
    why = f"lost in this host since it was started; the sending queue holds {seen.queue_packets} packets (txqueuelen)"
    fix = f"tc -s qdisc show dev {name}; ip link set {name} txqueuelen {max(1000, 2 * seen.queue_packets)}"
    if not seen.queued:
        fix = f"ip -s -s link show {name}; ethtool -S {name}"
    yield Row(
        what=f"{name} drops",
        now=f"queue {seen.queued}, sent {seen.sent}, received {seen.received}",
        needed="0",
        verdict=verdict(not lost, FitnessVerdict.WARN),
        why=why,
        fix=fix,
    )


def _surroundings(survey: Survey) -> Iterator[Row]:
    others = survey.others
    seen = ", ".join(f"{other.program} (pid {other.pid})" for other in others[:3]) + (" ..." if others[3:] else "")
    yield Row(
        what="other namespaces",
        now=f"{len(others)}: {seen}" if others else "none seen",
        needed="an agent in each that sends",
        verdict=verdict(not others, FitnessVerdict.WARN),
        why="an agent holds the connections of its own network namespace only",
        fix=f"nsenter --net=/proc/{others[0].pid}/ns/net headway agent --config FILE" if others else "",
    )
    yield Row(
        what="container",
        now=survey.container or "no",
        needed="no, or on purpose",
        verdict=verdict(not survey.container, FitnessVerdict.WARN),
        why="in one the agent holds that container's connections only, and cannot raise the kernel's limits",
        fix="run the agent on the host, or see what a container must be given: docs/agent.md",
    )
    runs = "runs" if survey.agent_runs else "does not run"
    yield Row("agent", runs, "any", FitnessVerdict.OK, "in this network namespace; see: headway agent status")
