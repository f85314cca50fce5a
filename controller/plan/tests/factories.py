"""Small makers of plans for the tests."""

from ipaddress import IPv4Network

from hypothesis import strategies as st

from controller.plan.plan import CircuitPath, Flow, Plan, planned
from controller.plan.policy import DEFAULT_POLICY
from topology.protocol import FlowClass
from topology.wire import Framing

GIGABIT = CircuitPath(10**9, 180_000, Framing())
ARCH = IPv4Network("10.20.20.100/32")


def flow(flow_class: FlowClass, host: str) -> Flow:
    """A flow of ``host`` to the archive."""
    return Flow(f"{flow_class}/{host}", flow_class, host, "arch", ARCH)


DATABASE = flow(FlowClass.PREDICTABLE, "base22")
RAW_IMAGES = flow(FlowClass.BACKGROUND, "base23")
IMAGE = (flow(FlowClass.URGENT, "base20"), flow(FlowClass.URGENT, "base21"))


def plan_of(*flows: Flow, epoch: int = 2, path: CircuitPath = GIGABIT) -> Plan:
    """The plan for these flows under the default policy."""
    return planned(epoch, path, DEFAULT_POLICY, flows)


any_flows = st.sets(
    st.builds(flow, st.sampled_from([c for c in FlowClass if c is not FlowClass.UNPLANNED]), st.sampled_from("abcdef")),
    max_size=8,
)
any_path = st.builds(
    CircuitPath, st.integers(10**7, 10**11), st.integers(100, 10**6), st.sampled_from([Framing(), Framing(9000)])
)
