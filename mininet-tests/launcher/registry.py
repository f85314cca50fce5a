"""Every experiment and bench there is, as data. Pure."""

from mininet_tests.launcher.experiment import Experiment, Group, Place

EXPERIMENTS = (
    Experiment(
        "figure2",
        Group.SCENARIO,
        "an image is announced, sent and released beside a database: Freemon 2013, figure 2 (make demo)",
        "scenarios.figure2.demo",
        Place.ITSELF,
        4,
    ),
    Experiment(
        "emulate",
        Group.SCENARIO,
        "any network of a file, and who sends what on it (make demo ARGS='--network FILE')",
        "scenarios.emulate.demo",
        Place.ITSELF,
        5,
    ),
    Experiment(
        "deploy",
        Group.SCENARIO,
        "the Debian packages under systemd: install, upgrade, kill, hang, boot again, remove, purge",
        "scenarios.deploy.run",
        Place.ITSELF,
        6,
    ),
    Experiment(
        "page",
        Group.SCENARIO,
        "an operator and an astronomer at the page: a real browser at a real controller, without a route outside",
        "scenarios.page.run",
        Place.ISOLATED,
        1,
    ),
    Experiment(
        "far",
        Group.SCENARIO,
        "the controller is up to 200 ms away from switches and agents: they attach, hold their leases, and follow",
        "scenarios.far.run",
        Place.ISOLATED,
        5,
    ),
    Experiment(
        "pair",
        Group.SCENARIO,
        "of a pair of controllers the one that leads, its machine or the database is lost, again and again",
        "scenarios.pair.run",
        Place.ISOLATED,
        6,
        figure="scenarios.pair.figure",
        publishes=True,
    ),
    Experiment(
        "pair-upgrade",
        Group.SCENARIO,
        "a pair of controllers from the Debian packages, under systemd, is upgraded in turn while a script reserves",
        "scenarios.pair_upgrade.run",
        Place.ITSELF,
        5,
    ),
    Experiment(
        "pair-image",
        Group.SCENARIO,
        "an image is under way while the controller that leads is killed: its time beside an undisturbed one's",
        "scenarios.pair_image.run",
        Place.LAB,
        5,
        dilation=4,
        figure="scenarios.pair_image.figure",
    ),
    Experiment(
        "failover",
        Group.SCENARIO,
        "one of two circuits dies under traffic and comes back",
        "scenarios.failover.run",
        Place.LAB,
        6,
        dilation=3,
        figure="scenarios.failover.figure",
    ),
    Experiment(
        "lanes",
        Group.SCENARIO,
        "programs as they are over two circuits at once, and one of the circuits dies midway; --case, --rate, resumed",
        "scenarios.lanes.sets",
        Place.ITSELF,
        50,
        publishes=True,
        shown_by="papers.freemon.page_again",
    ),
    Experiment(
        "handover",
        Group.SCENARIO,
        "how long the circuit is idle when an image comes and goes, on a warm and on a new connection",
        "scenarios.handover.run",
        Place.LAB,
        4,
        dilation=6,
        figure="scenarios.handover.figure",
    ),
    Experiment(
        "slow-reader",
        Group.SCENARIO,
        "an image whose receiver reads slowly, held to what that takes, and not: what others get",
        "scenarios.slow_reader.run",
        Place.LAB,
        6,
        dilation=2,
        figure="scenarios.slow_reader.figure",
    ),
    Experiment(
        "layers",
        Group.SCENARIO,
        "what each layer lets through against the rate it was set to",
        "scenarios.layers.run",
        Place.LAB,
        20,
        dilation=3,
        arguments=("--seconds", "8"),
    ),
    Experiment(
        "floods",
        Group.SCENARIO,
        "hosts that misbehave, from both ends of the circuit",
        "scenarios.floods.run",
        Place.LAB,
        15,
        dilation=2,
    ),
    Experiment(
        "faults",
        Group.SCENARIO,
        "what breaks around the plan while traffic runs, case by case",
        "scenarios.faults.run",
        Place.LAB,
        20,
        dilation=2,
    ),
    Experiment(
        "soak",
        Group.SCENARIO,
        "200 random announcements, reservations and faults",
        "scenarios.soak.run",
        Place.LAB,
        60,
        dilation=2,
    ),
    Experiment(
        "drift",
        Group.SCENARIO,
        "what is changed by hand in switches is found and repaired while traffic runs",
        "scenarios.drift.run",
        Place.LAB,
        5,
        dilation=2,
    ),
    Experiment(
        "ring",
        Group.SCENARIO,
        "a ring of sites: a flow over two circuits, a reservation the other way round",
        "scenarios.ring.run",
        Place.LAB,
        4,
    ),
    Experiment(
        "longpath",
        Group.SCENARIO,
        "the agent on a long line: connections, plans, routes and losses change",
        "scenarios.longpath.run",
        Place.LAB,
        10,
    ),
    Experiment(
        "fuzz",
        Group.SCENARIO,
        "every parser a stranger reaches, a million inputs in all: none hangs, grows, or raises what is not declared",
        "scenarios.fuzz.run",
        Place.HERE,
        12,
    ),
    Experiment(
        "freemon",
        Group.PAPER,
        "Freemon 2013 and its rivals in numbers (make paper, make paper-quick); --quick, --only REGEX, --list",
        "papers.freemon.run",
        Place.ITSELF,
        900,
        publishes=True,
    ),
    Experiment(
        "tail",
        Group.PAPER,
        "the end of transfers when packets are lost, with parities and without; --only REGEX, --published, resumed",
        "papers.freemon.tail",
        Place.ITSELF,
        600,
        publishes=True,
    ),
    Experiment(
        "antony",
        Group.PAPER,
        "bursts in small buffers at starts, and flows: Antony 2003, Freemon 2013; fig2 to fig13, freemon, --quick",
        "papers.antony.run",
        Place.ITSELF,
        120,
    ),
    Experiment(
        "receiver",
        Group.PAPER,
        "files to a disk slower than the line, held to it or not, beside rivals: PA-UDP's tables; resumed",
        "papers.eckart.tables",
        Place.ITSELF,
        60,
        publishes=True,
    ),
    Experiment(
        "receiver-turns",
        Group.PAPER,
        "several files to one disk, a disk that slows or is noisy, an agent that is killed, datagrams beside a file",
        "papers.eckart.tables",
        Place.ITSELF,
        15,
        arguments=("--only", "^(several|slows|killed|noisy|overrun)"),
    ),
    Experiment(
        "eckart",
        Group.PAPER,
        "a receiver's disk sets the rate: PA-UDP's table 3 and figures 2 and 6, computed",
        "papers.eckart.run",
        Place.HERE,
        1,
    ),
    Experiment(
        "reservations",
        Group.BENCH,
        "how fast reservations are decided and kept, on both databases",
        "bench.reservations",
        Place.HERE,
        3,
    ),
    Experiment(
        "wide",
        Group.BENCH,
        "what clients that ask for the widest windows cost one that works",
        "bench.wide",
        Place.HERE,
        2,
    ),
    Experiment(
        "retention",
        Group.BENCH,
        "what a million reservations that have ended cost a start and a list, on both databases",
        "bench.retention",
        Place.HERE,
        5,
    ),
    Experiment(
        "providers",
        Group.BENCH,
        "what is bought under random operations, faults and deaths, of stand-ins with the originals' quirks",
        "bench.providers",
        Place.HERE,
        10,
    ),
    Experiment(
        "hostile",
        Group.BENCH,
        "what strangers do to the controller's ports beside a client that works: latency, memory, answers",
        "bench.hostile",
        Place.HERE,
        9,
        publishes=True,
    ),
    Experiment("command", Group.BENCH, "what a call of the command costs in CPU time", "bench.command", Place.HERE, 1),
    Experiment(
        "growth",
        Group.BENCH,
        "what the controller's work costs as a site grows, and by which power of the size",
        "bench.growth",
        Place.HERE,
        1,
    ),
    Experiment(
        "attach",
        Group.BENCH,
        "how soon all agents are attached to a controller, after its start and after they have lost it",
        "bench.attach",
        Place.HERE,
        3,
    ),
    Experiment("whole-path", Group.BENCH, "a change, from REST to 200 agents", "bench.whole_path", Place.ISOLATED, 5),
    Experiment(
        "changed-plan",
        Group.BENCH,
        "how long Open vSwitch takes to accept a changed plan, by the number of senders",
        "bench.changed_plan",
        Place.HERE,
        1,
    ),
    Experiment(
        "pftp",
        Group.PAPER,
        "a striped mover over four lanes, 1 to 16 streams, beside its model: Wertz et al., figure 11",
        "papers.wertz.figure11",
        Place.LAB,
        6,
        dilation=4,
        figure="papers.wertz.figure11_drawn",
        shown_by="papers.freemon.page_again",
    ),
    Experiment(
        "what-if",
        Group.PAPER,
        "forecasts beside the lab's figures, figure 11 and SimGrid; a week of 10,000 transfers; years of images",
        "papers.wertz.run",
        Place.HERE,
        12,
    ),
    Experiment(
        "agent",
        Group.BENCH,
        "what the host agent costs, beside cubic and bbr, and how fast a plan reaches it",
        "bench.agent",
        Place.ITSELF,
        8,
    ),
    Experiment(
        "demand",
        Group.BENCH,
        "how soon the controller hears that a flow wants its rate, and that its flight has ended",
        "bench.demand",
        Place.ISOLATED,
        1,
    ),
)

PARTS = frozenset({
    "bench.agent_ack", "bench.agent_cpu", "bench.agent_push", "bench.bare_commits",
    "bench.bare_http", "bench.growth_before", "bench.growth_change", "bench.growth_figure",
    "bench.growth_network", "bench.hostile_report", "bench.providers_child", "bench.smuggled",
    "bench.strangers",
})  # fmt: skip
"""Modules that are run by another one."""
TESTS_ONLY = frozenset({"scenarios.database", "scenarios.switches"})
"""Rooms in which there is nothing but tests and what they use."""


def by_name() -> dict[str, Experiment]:
    """Return every experiment by its name."""
    return {one.name: one for one in EXPERIMENTS}


def listed() -> str:
    """Return a line for each experiment, grouped."""
    width = max(len(one.name) for one in EXPERIMENTS)
    lines: list[str] = []
    for group in Group:
        lines += ["", group.value] if lines else [group.value]
        for one in EXPERIMENTS:
            if one.group is group:
                lines.append(f"  {one.name:{width}}  {one.line}")
                lines.append(f"  {'':{width}}  {where(one, one.dilation)}, about {minutes(one.minutes)}")
    return "\n".join(lines)


def where(one: Experiment, dilation: int | None) -> str:
    """Return where an experiment runs, as people read it; in the lab with which dilation."""
    return f"lab, dilation {dilation}" if one.place is Place.LAB else one.place.value


def minutes(count: float) -> str:
    """Return how long something takes, as people say it.

    >>> minutes(5), minutes(120), minutes(900)
    ('5 min', '2 h', '15 h')
    """
    return f"{count:g} min" if count < 100 else f"{count / 60:g} h"
