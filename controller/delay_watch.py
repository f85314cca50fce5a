"""Measures the delay of circuits of which the network's file says only a bound, and lets the plan go by it."""

from collections.abc import Iterable

from controller.plan.delays import DelayNews, DelayVerdict, MeasuredDelay
from controller.state.guard import GuardedState
from controller.state.round_trips import circuit_times, moving
from topology.telemetry import Telemetry
from topology.units import shown_delay


def measure_delays(state: GuardedState, host: str, telemetry: Telemetry) -> None:
    """Take in what a host has seen of circuits whose delay is not known; under the lock.

    Of one whose line is down it sees none: its switch leads its data another way before the host is told of that.
    """
    site, known = state.site, state.reported.hosts[host]
    bounds = site.delay_bounds
    if not bounds or state.value.stands_by:
        return
    moves = moving(bounds, site.network, known.moving, known.sent, telemetry.entries)
    state.put_host(host, known._replace(moving=moves))
    delays, news, down = state.reported.delays, list[DelayNews](), state.reported.lines.down(state.elapsed_us())
    times = circuit_times(bounds, site.network, state.desired.plan, moves, telemetry.entries)
    for one in (one for one in times if one.circuit not in down):
        delays, found = delays.seen(one, bounds[one.circuit], state.now())
        news += [] if found is None else [found]
    state.go_by(delays)
    _say(state, news)


def take_saved_delays(state: GuardedState, saved: Iterable[MeasuredDelay]) -> None:
    """Go by what an earlier controller has measured; under the lock."""
    delays, refused = state.reported.delays.restored(saved, state.site.delay_bounds)
    state.go_by(delays)
    _say(state, refused)


def _say(state: GuardedState, news: Iterable[DelayNews]) -> None:
    for one in news:
        fields = {
            "circuit": one.seen.circuit,
            "measured": shown_delay(one.seen.delay_us),
            "hosts": " ".join(one.seen.hosts),
        }
        if one.verdict is DelayVerdict.REFUSED:
            most = shown_delay(one.before_us)
            state.events.publish("circuit.delay_refused", level="warning", **fields, at_most=most)
        elif one.verdict is DelayVerdict.TAKEN:
            state.events.publish("circuit.delay_measured", **fields, before=shown_delay(one.before_us))
