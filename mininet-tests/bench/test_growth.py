"""The bench of growth in small: what it measures is done, its aims can be missed, its figure is drawn."""

from mininet_tests.bench import growth, growth_network
from mininet_tests.bench.growth_figure import drawn

ROWS = {
    row.what: {"counted": row.counted, "cpu_ms": [[1, 1.0], [10, 1.0]], "exponent": 0.0, "aims_ms": []}
    for row in growth.ROWS
}


def report_with(exponent, ms):
    """A report in which announcements have an exponent, and all aims are measured at some milliseconds."""
    rows = {row.what: {**ROWS[row.what], "cpu_ms": [[size, ms] for size in row.sizes]} for row in growth.ROWS}
    return rows | {growth.MANY_CIRCUITS: {**rows[growth.MANY_CIRCUITS], "exponent": exponent}}


def test_each_aim_can_be_missed():
    assert all(aim.ok for aim in growth.aims(report_with(0.2, 0.1), 1_024).values())
    assert not any(aim.ok for aim in growth.aims(report_with(0.21, 99_999), 1_025).values())
    assert not any(aim.ok for aim in growth.aims(report_with(None, None), None).values())


def test_a_dead_circuit_s_flows_go_another_way():
    known = growth_network.national(200)
    circuit = known.demand.flows[0].links[1]
    plan = growth_network.planned(2, known.network, growth_network.DEFAULT_POLICY, known.demand)
    name = known.network.link(*circuit).circuit
    after = growth_network.after_death(known, plan, name)
    assert len(after.entries) == len(plan.entries)
    assert not any(circuit in e.flow.links for e in after.entries)


def test_the_figure_has_what_was_before(tmp_path):
    rows = report_with(0.0, 1.0)
    drawn({"rows": rows, "before": {"rows": rows}}, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000
