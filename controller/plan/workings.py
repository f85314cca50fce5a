"""What a plan was made of, so that another one can be made where that differs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.plan.keys import FlowId
from controller.plan.plan import Entry, Flow, LinkPlan, PlanInput
from controller.plan.policy import Policy
from topology.network import Hop, Network


@dataclass(frozen=True, slots=True)
class Workings:
    """What a plan was made of, place by place.

    Attributes:
        network: where.
        policy: what each class may have.
        demand: who wants to send, and what is promised.
        flows: those, by name.
        pairs: by sender and receiver, their flows as others make room for them.
        carriers: by sender and receiver, how the answers to their data go.
        data: by hop, the flows whose data cross it, in the order of their names.
        answered: by hop of a circuit, the flows whose answers cross it, likewise.
        links: the limits of every direction of every circuit.
        parts: by such a link, what each flow can have of it, bit/s of frames.
        of_circuits: by flow, the least that its circuits have for it, bit/s of frames; 0 if it crosses none.
        sums: by hop that is no circuit, the sum of that over the flows whose interface it is.
        held: by hop that is no circuit, and carries less than its flows could have, what each gets, bit/s of frames.
        entries: by flow, its allocation; in the order of their names.
    """

    network: Network
    policy: Policy
    demand: PlanInput
    flows: Mapping[FlowId, Flow]
    pairs: Mapping[tuple[str, str], tuple[Flow, ...]]
    carriers: Mapping[tuple[str, str], Flow]
    data: Mapping[Hop, Mapping[FlowId, Flow]]
    answered: Mapping[Hop, Mapping[FlowId, Flow]]
    links: dict[Hop, LinkPlan]
    parts: Mapping[Hop, Mapping[FlowId, int]]
    of_circuits: Mapping[FlowId, int]
    sums: Mapping[Hop, int]
    held: Mapping[Hop, Mapping[FlowId, int]]
    entries: Mapping[FlowId, Entry]
