"""What becomes of faults: one line when one begins and one when it is over, and a plan beside it. Under the lock."""

from collections.abc import Iterable
from dataclasses import replace

from controller.plan.faults import PlaceFault
from controller.state.guard import GuardedState
from controller.state.starting import yet_to_call
from topology.network import Switch


def switch_gone(switch: Switch) -> PlaceFault:
    """Return the fault of a switch that is not connected; it says so itself when it is again."""
    why = f"{switch.dpid:016x} is not connected; it goes on by the rules it has"
    return PlaceFault(f"switch {switch.name}", why, frozenset({switch.name}), is_gone=True)


def note_failed(state: GuardedState, failed: Iterable[PlaceFault]) -> None:
    """Take in that some places do not do what they are told, and let the plan go on beside them.

    Nothing of what fails while we end: switches may obey another controller by then.
    """
    found = [] if state.stopping else [_since(state, fault) for fault in failed]
    if not found:
        return
    state.put(installed=state.installed.with_faults(found))
    tell_begun(state)
    _doubt(state)


def tell_begun(state: GuardedState) -> None:
    """Tell of each fault once; of a switch that has yet to call after the start when it has had the time."""
    untold = [fault for fault in state.installed.faults.values() if not fault.is_told and not fault.is_back]
    waited_for = yet_to_call(state.site, state.value, state.elapsed_us()) if untold else frozenset()
    told = [fault for fault in untold if not fault.is_gone or not fault.switches <= waited_for]
    for fault in told:
        state.events.publish("fault.began", level="error", place=fault.place, why=fault.why)
    if told:
        state.put(installed=state.installed.with_faults(replace(fault, is_told=True) for fault in told))


def _since(state: GuardedState, fault: PlaceFault) -> PlaceFault:
    """Return a fault with what was in force across it when it began; one that is known, at all ports of both."""
    installed, network = state.installed, state.site.network
    known, entries = installed.faults.get(fault.place), installed.meters.entries if installed.meters else ()
    held = tuple(e for e in entries if fault.closed.is_crossed(network, e.flow.path))
    if known is None and installed.in_force is None:  # its ports may have any queues: they wait for its meters
        ports = frozenset(hop for hop in state.desired.plan.links if hop.tail in fault.switches)
        since_us = state.elapsed_us()
        return replace(fault, since_us=since_us, ports=fault.ports | ports, is_unsure=True, is_told=False)
    if known is None:
        return replace(fault, since_us=state.elapsed_us(), held=held, is_told=False)
    if known.is_back:
        ports = known.ports if known.is_unsure else fault.ports
        goes_on = replace(fault, since_us=known.since_us, is_unsure=known.is_unsure, is_told=known.is_told)
        return replace(goes_on, ports=ports, held=held)
    wider = replace(known, why=fault.why, is_gone=fault.is_gone, ports=known.ports | fault.ports)
    there = (e for e in entries if wider.closed.is_crossed(network, e.flow.path))
    both = ((known.held_entry(e.flow) if known.closed.is_crossed(network, e.flow.path) else e, e) for e in there)
    least = tuple(min(one, e, key=lambda x: x.frame_bps) for one, e in both if one is not None)
    return replace(wider, held=least)


def note_why(state: GuardedState, failed: PlaceFault) -> None:
    """Take in that a place with a fault has it for another reason by now."""
    known = state.installed.faults.get(failed.place)
    if known is not None and not known.is_back and known.why != failed.why:
        state.put(installed=state.installed.with_faults([replace(known, why=failed.why)]))


def note_back(state: GuardedState, places: Iterable[str]) -> None:
    """Take in that some places answer again: they are brought to what is in force before anything else."""
    faults = (state.installed.faults.get(place) for place in places)
    back = [replace(fault, is_back=True) for fault in faults if fault is not None and not fault.is_back]
    if back:
        state.put(installed=state.installed.with_faults(back))
        _doubt(state)


def note_mended(state: GuardedState) -> None:
    """Take in that all places that were not closed hold what is in force."""
    over = [fault for fault in state.installed.faults.values() if fault.is_back]
    for fault in (fault for fault in over if fault.is_told):
        state.events.publish("fault.over", place=fault.place, lasted_us=state.elapsed_us() - fault.since_us)
    if over:
        state.put(installed=state.installed.without_faults(fault.place for fault in over))
        state.replan()


def _doubt(state: GuardedState) -> None:
    reported = state.reported
    state.put(reported=replace(reported, doubts=reported.doubts + 1))
    state.replan()
    state.changed.notify_all()
