"""The headline: what needs somebody, since when, what it means and what helps. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from controller.plan.invariant import violations
from controller.plan.leading import LeaderView, PairStanding
from controller.plan.lines import LineState
from controller.security.own_certificates import EndingCertificate
from controller.state.health import Trouble, TroubleKind
from controller.state.lateness import Late
from controller.state.receivers import said_of, slow_now
from controller.view import View
from topology.certificates import ending_days
from topology.units import shown_time

BEHIND_US = 5_000_000  # as /healthz: older than that, what who stands by knows is no longer of now
UNSAVED_US = 2_000_000  # for longer than that, the database does not answer
PASSING_US = 2_000_000  # a plan takes a moment to be in force; what is over before needs nobody
PASSING = frozenset({"plan", "standby", "unsure", "leaderless", TroubleKind.RESERVATION, TroubleKind.ANNOUNCEMENT})
SEVERAL = frozenset({TroubleKind.PORT, TroubleKind.ALARM, TroubleKind.FALLBACK})  # at one place, each with its text
PROMISES = frozenset({TroubleKind.RESERVATION, TroubleKind.ANNOUNCEMENT})
ALONE = LeaderView()
NOT_CONNECTED = "its agent is not connected"

# What each kind means, and what helps; {place} is whose it is.
ADVICE: dict[str, tuple[str, str]] = {
    "plan": ("What was planned is not what switches let through.", "headway plan"),
    "database": (
        "Nothing new can be promised or changed; all else goes on.",
        "journalctl -u headway-controller --since -1h",
    ),
    "standby": ("If this controller dies, no other takes over; all goes on meanwhile.", "headway leader"),
    "unsure": (
        "Nothing new can be promised or changed until it does; all else goes on.",
        "journalctl -u headway-controller --since -1h",
    ),
    "leaderless": ("Nothing can be promised or changed, and hosts fall back.", "headway leader"),
    "behind": (
        "Whoever reads here reads that; the leader knows more.",
        "journalctl -u headway-controller --since -1h",
    ),
    "clock": ("Somebody has set the clock; the calendar goes on as time went.", "timedatectl"),
    "invariant": (
        "A layer lets through more than the next holds: a defect, no transfer is lost by it.",
        "headway plan",
    ),
    "agent": ("What this host sends is not planned, and what was promised to it may be late.", "headway hosts"),
    "line": ("Its flows are led round it, as far as there is room; tell who runs it.", "headway circuits"),
    "late": (
        "The plan has its rate; look at the host that sends, and at the one that receives.",
        "headway announcements",
    ),
    "receiver": ("It takes less than it could be sent; others have the rest.", "headway receivers"),
    "certificate": ("When it ends, the agent is turned away.", "headway pki renew pki {place}"),
    "switch-certificate": (
        "When it ends, the switch is let in no more when it calls anew; it forwards on by the rules it has.",
        "headway pki renew pki {place}",
    ),
    "controller": ("When it ends, no agent and no switch trusts the controller.", "headway pki renew pki {place}"),
    "rest": (
        "When it ends, browsers and scripts refuse to ask the controller.",
        "headway pki rest pki {place}",
    ),
    "authority": (
        "When it ends, nobody of the site trusts anybody: renew it while both are good.",
        "headway pki --help",
    ),
    TroubleKind.SWITCH_GONE: ("It forwards on by the rules it has; nothing new reaches it.", "headway switches"),
    TroubleKind.SWITCH_CLAIMED: (
        "Two machines say that they are this switch; the first keeps its place.",
        "headway events",
    ),
    TroubleKind.SWITCH_UNKNOWN: ("It is told nothing until the network's file has it.", "headway switches"),
    TroubleKind.PORT: ("What goes by this port is not carried.", "headway circuits"),
    TroubleKind.CIRCUIT: ("What goes by this circuit is not carried; tell who runs it.", "headway circuits"),
    TroubleKind.ALARM: ("Somebody else has changed what the plan stands on.", "headway drift"),
    TroubleKind.CREDENTIALS: (
        "Nothing can be bought there until that is put right; what is bought carries on.",
        "headway events",
    ),
    TroubleKind.PROVIDER: ("It is tried again each minute; what is bought carries on.", "headway events"),
    TroubleKind.FALLBACK: ("Too much is lost on its way, so the host slows down by itself.", "headway hosts"),
    TroubleKind.RESERVATION: ("Its owner has less than was promised.", "headway reservation {place}"),
    TroubleKind.ANNOUNCEMENT: ("It will be late.", "headway announcements"),
}


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs somebody.

    Attributes:
        kind: what kind of thing; a key of ``ADVICE``.
        place: whose it is.
        text: where and why.
        since_us: when it was seen first, Unix time; 0 before that is known.
        touches: the promises that are not carried because of it.
    """

    kind: str
    place: str
    text: str
    since_us: int = 0
    touches: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """What it means for transfers."""
        return ADVICE[self.kind][0]

    @property
    def command(self) -> str:
        """What helps, or shows more."""
        return ADVICE[self.kind][1].format(place=self.place)


@dataclass(frozen=True, slots=True)
class Around:
    """What nothing in the plan says.

    Attributes:
        ends_s: by host, when its agent's certificate ends, Unix time.
        switch_ends_s: by switch, when the certificate ends that it shows, Unix time.
        own: the controller's own certificate and its authority's.
        overdue: by announcement, why it is late already.
        leader: which controller of a pair leads.
    """

    ends_s: Mapping[str, float]
    switch_ends_s: Mapping[str, float]
    own: tuple[EndingCertificate, ...]
    overdue: Mapping[str, Late]
    leader: LeaderView = ALONE


def concerns(
    view: View, troubles: Iterable[Trouble], unsaved_us: int, around: Around, now_us: int
) -> tuple[Concern, ...]:
    """Return what needs somebody, causes before what they cause.

    Args:
        view: the plan at every layer.
        troubles: what is not well.
        unsaved_us: for how long the oldest answer waits to be saved.
        around: what nothing in the plan says.
        now_us: Unix time.
    """
    if around.leader.standing is PairStanding.STANDBY:  # what it has is not told to anybody: that is the leader's
        return (*_stands_by(around.leader), *_own(around, now_us))
    dead = {name for name, state in view.lines.items() if state is LineState.DOWN}
    each = [t for t in troubles if t.circuit not in dead and not _waits(t.place, t.text, view.yet_to_call)]
    gone = frozenset(t.place for t in each if t.kind is TroubleKind.SWITCH_GONE)
    said = (
        t for t in each if t.kind is not TroubleKind.ALARM or t.place not in gone
    )  # a switch that is gone is not audited
    found = tuple(Concern(t.kind, t.place, t.text) for t in said)
    causes = (
        *_leads(around.leader),
        *_plan(view, unsaved_us, gone | view.yet_to_call),
        *(n for n in found if n.kind not in PROMISES),
        *_lines(found, dead),
        *_around(view, around, now_us),
        *_late(around, {n.place for n in found if n.kind == TroubleKind.ANNOUNCEMENT}),
    )
    distinct = {(n.kind, n.text): n for n in causes}
    alone = []
    for promise in (n for n in found if n.kind in PROMISES):
        why = promise.text.partition(": ")[2]
        cause = next((key for key, n in distinct.items() if n.text.startswith(why) or why.startswith(n.text)), None)
        if cause is None:
            alone.append(promise)
        else:
            named = f"{promise.kind} {promise.place}"
            distinct[cause] = replace(distinct[cause], touches=(*distinct[cause].touches, named))
    return (*distinct.values(), *dict.fromkeys(alone))


def _leads(leader: LeaderView) -> Iterator[Concern]:
    """Yield what a pair lacks, as who leads sees it."""
    if leader.standing is PairStanding.UNSURE:
        yield Concern("unsure", "pair", "the pair: the database does not say that this controller still leads")
    elif leader.standing is PairStanding.LEADER and not leader.others:
        yield Concern("standby", "pair", "the pair: no other controller stands by")


def _stands_by(leader: LeaderView) -> Iterator[Concern]:
    """Yield what a pair lacks, as who stands by sees it."""
    if not leader.holder:
        yield Concern("leaderless", "pair", "the pair: no controller leads")
    if leader.age_us > BEHIND_US:
        yield Concern("behind", "pair", "the pair: what this controller knows is more than 5 s old")


def _waits(place: str, text: str, yet_to_call: frozenset[str]) -> bool:
    """Return whether something is of who has yet to call after the start, or of a promise that waits for that."""
    return place in yet_to_call or any(f"{name}: " in text for name in yet_to_call)


def _plan(view: View, unsaved_us: int, gone: frozenset[str]) -> Iterator[Concern]:
    """Yield why the plan is not what switches let through, or not known to be; what waits for switches is theirs."""
    failed = [one for one in _each_fault(view.error) if one.partition(":")[0].removeprefix("switch ") not in gone]
    if view.error.startswith("the database"):
        yield Concern("database", "database", view.error)
    elif unsaved_us > UNSAVED_US:
        yield Concern("database", "database", "the database does not answer")
    elif any(failed):
        yield Concern("plan", "plan", "; ".join(failed))
    elif view.installed is None and view.yet_to_call:
        pass  # the first plan waits for them
    elif not view.error and (view.installed is None or view.installed.epoch != view.desired.epoch):
        yield Concern("plan", "plan", "the plan is not in force in the switches")
    for one in violations(view.layers):
        yield Concern("invariant", str(one.link), str(one))
    if view.calendar_off_us:
        yield Concern("clock", "clock", f"the clock is {view.calendar_off_us / 1e6:+.1f} s off the calendar's time")


def _each_fault(error: str) -> list[str]:
    """Return the faults of which an error is put together, each with its place; what one says may be in two parts.

    >>> _each_fault("switch ls1: is not connected; it goes on; switch ch1: is full")
    ['switch ls1: is not connected; it goes on', 'switch ch1: is full']
    """
    faults: list[str] = []
    for part in error.split("; "):
        if ": " in part or not faults:
            faults.append(part)
        else:
            faults[-1] += f"; {part}"
    return faults


def _lines(found: Iterable[Concern], dead: Iterable[str]) -> Iterator[Concern]:
    """Yield the circuits that are down and have a way round them; of their ports nothing more need be said."""
    said = {one.place for one in found if one.kind == TroubleKind.CIRCUIT}
    for name in sorted(set(dead) - said):
        yield Concern("line", name, f"{name}: the line is down")


def _around(view: View, around: Around, now_us: int) -> Iterator[Concern]:
    """Yield what breaks no promise at this moment, and will not mend itself."""
    for name, host in view.hosts.items():
        if not host.connected and name not in view.yet_to_call:
            yield Concern("agent", name, f"{name}: {NOT_CONNECTED}")
    for host in view.hosts.values():
        yield from (Concern("receiver", one.host, said_of(one)) for one in slow_now(host))
    shown = (
        ("certificate", "the certificate of its agent", around.ends_s),
        ("switch-certificate", "the switch's certificate", around.switch_ends_s),
    )
    for kind, certificate, ends_s in shown:
        for name, end_s in ends_s.items():
            if (days := ending_days(end_s, now_us / 1e6)) is not None:
                yield Concern(kind, name, f"{name}: {certificate} ends in {max(0, days)} days")
    yield from _own(around, now_us)


def _own(around: Around, now_us: int) -> Iterator[Concern]:
    """Yield the certificates of ours that are about to end."""
    for one in around.own:
        if (days := ending_days(one.end_s, now_us / 1e6)) is not None:
            what = f"the certificate of the {one.whose}, {one.name}, ends in {max(0, days)} days"
            yield Concern(one.whose, one.name, what)


def _late(around: Around, said: Collection[str]) -> Iterator[Concern]:
    """Yield the announcements that are late although the plan carries them."""
    for name, late in around.overdue.items():
        if name not in said:
            yield Concern("late", name, f"announcement {name}: promised for {shown_time(late.promised_us)}; {late.why}")


class Since:
    """Remembers since when each is so."""

    def __init__(self) -> None:
        self._first_us: dict[tuple[str, str, str], int] = {}

    def seen(self, found: Iterable[Concern], now_us: int) -> tuple[Concern, ...]:
        """Return those that need somebody at a moment, with since when; without what is just passing.

        Args:
            found: all that there are now.
            now_us: Unix time.
        """
        each = tuple(found)
        # The texts of all others may change: they have counts and measured rates.
        keys = [(n.kind, n.place, n.text if n.kind in SEVERAL else "") for n in each]
        self._first_us = {key: self._first_us.get(key, now_us) for key in keys}
        dated = (replace(n, since_us=self._first_us[key]) for n, key in zip(each, keys, strict=True))
        return tuple(n for n in dated if n.kind not in PASSING or now_us - n.since_us >= PASSING_US)


def headline(found: tuple[Concern, ...], yet_to_call: int = 0, leader: LeaderView = ALONE) -> str:
    """Return one sentence.

    >>> headline(()), headline((), 2)
    ('All is as planned.', 'The controller has just started: 2 switches and agents have yet to call.')
    >>> headline((), 2, LeaderView(PairStanding.STANDBY, takes=False, holder="ctl-a"))
    'This controller stands by: ctl-a leads.'
    """
    if found:
        return "1 thing needs you." if len(found) == 1 else f"{len(found)} things need you."
    if leader.standing is PairStanding.STANDBY:
        return f"This controller stands by: {leader.holder or 'another'} leads."
    if yet_to_call:
        return f"The controller has just started: {yet_to_call} switches and agents have yet to call."
    return "All is as planned."


def pair_words(leader: LeaderView) -> str:
    """Return who leads and who stands by, beside the headline; empty of a controller that is alone.

    >>> pair_words(LeaderView(PairStanding.LEADER, holder="ctl-a", others=("ctl-b",)))
    'ctl-a leads, and is asked here; ctl-b stands by.'
    """
    if leader.standing is None:
        return ""
    who = leader.holder or "nobody"
    if leader.standing is PairStanding.STANDBY:
        return f"{who} leads; this is one that stands by, and changes nothing."
    return f"{who} leads, and is asked here; {' and '.join(leader.others) or 'nobody'} stands by."
