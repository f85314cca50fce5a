"""What each flow of a class gets of its meter on a link. Pure."""

from controller.plan.plan import Flow
from controller.plan.shares import max_min
from topology.wire import Framing, Layer, conversion


def divided(meter_bps: int, answers_bps: int, members: list[Flow], framing: Framing) -> list[int]:
    """Return what each of a class's flows gets of its meter on a link, bit/s of frames.

    Answers to flows the other way come before what is not promised, and after what is: what is promised has had its
    answers' part booked as well, so only answers to what was not promised can find too little. Nor do they take more
    than half, however narrow this direction is against the other: data that gets nothing would have no end. Nor what
    flows stand by with: a host that is given nothing cannot say that it has something to send.

    Of a meter of 100 Mbit/s answers need 8. A flow that is promised 50 on the wire (49 in frames) has them, another the
    rest; if the answers needed 80, data would keep half of the meter, and what is promised would come first::

        |<------------ 100 ------------>|
        | promised 49 | rest 42 | ans 8 |

    >>> from dataclasses import replace
    >>> from controller.plan.flows import flow_on
    >>> from controller.plan.keys import FlowId
    >>> from topology.protocol import FlowClass
    >>> from mininet_tests.testing.networks import chile_illinois
    >>> network = chile_illinois()
    >>> def flow_of(host):
    ...     return flow_on(network, FlowId(host), FlowClass.URGENT, network.path(host, "arch"))
    >>> promised, other = replace(flow_of("base20"), floor_bps=50_000_000), flow_of("base21")
    >>> [bps // 10**6 for bps in divided(100_000_000, 8_000_000, [promised, other], Framing())]
    [49, 42]
    >>> [bps // 10**3 for bps in divided(100_000_000, 80_000_000, [promised, other], Framing())]
    [49219, 780]
    """
    frames_bps = conversion(Layer.WIRE, Layer.FRAME, framing)
    floors = [frames_bps(flow.floor_bps) for flow in members]
    standing = [
        frames_bps(min(f.standby_bps, f.standby_bps if f.wanted_bps is None else f.wanted_bps)) for f in members
    ]
    least_bps = sum(map(max, floors, standing))
    data_bps = max(min(meter_bps, least_bps), meter_bps - answers_bps, meter_bps // 2)
    caps = [
        max(floor, data_bps if flow.wanted_bps is None else frames_bps(flow.wanted_bps))
        for flow, floor in zip(members, floors, strict=True)
    ]
    return max_min(data_bps, floors, caps)
