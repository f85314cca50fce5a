"""The same transfers in SimGrid 3.32, as a second opinion; run by Debian's Python, which has its bindings.

Prints, for each stripe width, the seconds that a file takes and how long that was computed. The model is CM02 without
cross traffic, window or correction: max-min fair sharing, as ours. The round trip before a block is their latency.
"""

import json
import sys
import time

from simgrid import Actor, Engine, LinkInRoute, Mailbox, NetZone


def sender(box: str, blocks: list[int]) -> None:
    """Send a stream's blocks, one after the other, each confirmed."""
    for size in blocks:
        Mailbox.by_name(box).put("block", size)


def receiver(box: str, count: int) -> None:
    """Take them."""
    for _ in range(count):
        Mailbox.by_name(box).get()


def main() -> None:
    """Run one stripe width, as said in JSON; one process has one engine."""
    asked = json.loads(sys.argv[1])
    options = ["network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0"]
    options += ["network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0"]
    engine = Engine(["pftp", "--log=root.thres:critical", *(f"--cfg={option}" for option in options)])
    zone = NetZone.create_full_zone("ring")
    pairs = []
    for lane in range(asked["lanes"]):
        ends = [zone.create_host(f"{end}{lane}", 1e9) for end in "az"]
        link = zone.create_link(f"lane{lane}", asked["lane_bps"] / 8).set_latency(asked["rtt_us"] / 1e6).seal()
        zone.add_route(ends[0].netpoint, ends[1].netpoint, None, None, [LinkInRoute(link)], True)
        pairs.append(ends)
    zone.seal()
    for number, blocks in enumerate(asked["blocks"]):
        a_end, z_end = pairs[number % asked["lanes"]]
        Actor.create(f"s{number}", a_end, sender, str(number), blocks)
        Actor.create(f"r{number}", z_end, receiver, str(number), len(blocks))
    began = time.process_time()
    engine.run()
    print(json.dumps({"took_s": engine.clock, "cpu_s": time.process_time() - began}))


if __name__ == "__main__":
    main()
