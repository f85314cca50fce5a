"""What is kept of all hosts is what a look at all of them gives."""

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.intake import Intake
from controller.state.reported import Hosts, HostState

NAMES = st.sampled_from(["a", "b", "c"])
STATES = st.fixed_dictionaries(
    {
        "connected": st.booleans(),
        "unknown_until_us": st.sampled_from([0, 5]),
        "wants": st.sampled_from([{}, {"flow": True}]),
        "intakes": st.sampled_from([{}, {"flow": Intake()}, {"flow": Intake(drain_bps=8)}]),
    }
).map(lambda known: HostState(**known))


@given(st.dictionaries(NAMES, STATES), st.lists(st.tuples(NAMES, STATES)))
def test_hosts_that_changed_one_by_one_are_known_as_if_all_were_looked_at(begun, changes):
    hosts, now = Hosts(begun), dict(begun)
    for name, state in changes:
        hosts, now[name] = hosts.put({name: state}), state
    whole = Hosts(now)
    assert dict(hosts) == now
    assert hosts.away == whole.away == {name for name, state in now.items() if not state.connected}
    assert hosts.unknown == whole.unknown == {name for name, state in now.items() if state.unknown_until_us}
    assert hosts.wanting == whole.wanting == {name for name, state in now.items() if state.wants}
    assert hosts.holding == whole.holding == {name for name, state in now.items() if state.holds}


def test_what_was_known_before_a_change_stays():
    before = Hosts({"a": HostState()})
    before.put({"a": HostState(connected=True)})
    assert before.away == {"a"}
