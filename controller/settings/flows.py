"""The sections ``policy``, ``failover`` and ``flows``: what each class may have, and who always sends."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from controller.errors import HeadwayError
from controller.plan.keys import FlowId
from controller.plan.lines import RETURN_AFTER_US
from controller.plan.plan import Flow
from controller.plan.policy import DEFAULT_POLICY, ClassPolicy, Policy
from controller.settings.sections import Fraction, Section, within
from controller.site import flow_between
from topology.network import Network
from topology.problems import Problems
from topology.protocol import FlowClass, Tail


class ClassSection(Section):
    """A class's limits."""

    guarantee: Fraction
    cap: Fraction
    tail: Tail = Tail.PLAIN


class FlowSection(Section):
    """A flow that is always in the plan."""

    name: str = Field(min_length=1)
    flow_class: FlowClass = Field(alias="class")
    sender: str = Field(alias="from")
    target: str = Field(alias="to")
    tail: Tail = Tail.PLAIN


class FailoverSection(Section):
    """Which classes are protected, and when a line is believed again."""

    protect: tuple[FlowClass, ...] = tuple(sorted(DEFAULT_POLICY.protected))
    return_after: Annotated[int, within("0 s", "1 h")] = RETURN_AFTER_US


def policy_of(
    sections: dict[FlowClass, ClassSection], protected: frozenset[FlowClass], problems: Problems
) -> Policy | None:
    """Return what each class may have; None, and a problem, if that does not fit together."""
    classes = dict(DEFAULT_POLICY.classes)
    for flow_class, section in sections.items():
        known = classes[flow_class]
        classes[flow_class] = ClassPolicy(section.guarantee, section.cap, known.priority, known.dscp, section.tail)
    try:
        return Policy(classes, protected=protected)
    except ValueError as error:
        problems.add(error)
        return None


def standing_flows(sections: tuple[FlowSection, ...], network: Network, problems: Problems) -> tuple[Flow, ...]:
    """Return the flows that are always in the plan; what is wrong with one goes to the problems."""
    flows: list[Flow] = []
    for i, section in enumerate(sections):
        if not section.name.isprintable():
            problems.at(i, "name").add(f"{section.name!r} is not a name: one line of what can be seen")
        try:
            flow = flow_between(network, FlowId(section.name), section.flow_class, (section.sender, section.target))
        except HeadwayError as error:
            problems.at(i).add(error)
            continue
        if flow.name in {f.name for f in flows}:
            problems.at(i, "name").add(f'there is already a flow "{flow.name}"')
        if (flow.host, flow.target) in {(f.host, f.target) for f in flows}:
            problems.at(i).add(f"{flow.host} already sends to {flow.target}")
        flows.append(replace(flow, tail=section.tail))
    return tuple(flows)
