"""What hosts may be acting on, found where it differs, is what a look at all of them gives."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES, plan_of
from controller.state.acts import NOTHING, acts
from controller.state.reported import Hosts, HostState, Reported

PLANS = (plan_of(DATABASE, RAW_IMAGES, epoch=2), plan_of(DATABASE, RAW_IMAGES, *IMAGE, epoch=4))
NAMES = sorted({e.flow.host for plan in PLANS for e in plan.entries})
LEASE_US = 10
WHAT = st.sampled_from(["grant", "confirm", "lose"])
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(PLANS), WHAT))


def after(host, name, plan, what, now_us):
    """A host after it was granted a plan, has confirmed it, or has gone."""
    if what == "grant":
        return host.granted(plan.epoch, plan.of_host(name), now_us, LEASE_US)
    leases = host.leases.confirmed(plan.epoch) if what == "confirm" else host.leases.lost(now_us, LEASE_US)
    return host._replace(leases=leases)


@given(STEPS, st.lists(st.sampled_from(PLANS), min_size=1, max_size=3))
def test_what_hosts_act_on_is_the_same_whatever_it_is_worked_out_from(steps, meters):
    reported, seen = Reported(Hosts(dict.fromkeys(NAMES, HostState()))), NOTHING
    for now_us, (name, plan, what) in enumerate(steps):
        host = after(reported.hosts[name], name, plan, what, now_us)
        reported, in_force = reported.with_host(name, host), meters[now_us % len(meters)]
        seen, whole = acts(reported, in_force, now_us, seen), acts(reported, in_force, now_us)
        assert (seen.by_host, seen.ends_us) == (whole.by_host, whole.ends_us)
        hops = seen.bps.keys() | whole.bps.keys()
        assert all(sums(seen, hop) == sums(whole, hop) for hop in hops)


def sums(found, hop):
    """What is sent by a link, by class, if anything is."""
    return {c: bps for c, bps in found.bps.get(hop, {}).items() if bps}


def test_a_confirmation_of_what_a_host_may_act_on_already_changes_nothing_else():
    before, plan = PLANS
    more = next(e for e in plan.entries if e.flow.host == "base20")
    host = HostState().granted(2, before.of_host("base20"), 0, LEASE_US).granted(4, (more,), 1, LEASE_US)
    reported = Reported(Hosts({"base20": host}))
    seen = acts(reported, plan, 2)
    confirmed = reported.with_host("base20", host._replace(leases=host.leases.confirmed(4)))
    then = acts(confirmed, plan, 2, seen)
    assert then.by_host is seen.by_host
    assert then.bps is seen.bps
    assert replace(then, hosts=seen.hosts, ends_us=seen.ends_us) == seen
