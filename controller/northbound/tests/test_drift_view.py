"""``/v1/drift`` and the metrics of audits."""

from fastapi.testclient import TestClient

from controller.audit.drift import Compared, Deviation, DriftKind, Outcome, Shape
from controller.northbound.rest.drift import MOST_SHOWN
from controller.northbound.tests.site import api_of
from controller.tests.fakes import ready_site

LOST = tuple(
    Deviation(DriftKind.FLOW, Shape.MISSING, f"rule {i}", outcome=Outcome.REPAIRED) for i in range(MOST_SHOWN + 5)
)
DARK = Deviation(DriftKind.FLOW, Shape.SHADOWED, "ours", "theirs", Outcome.LEFT, "delete it")


def test_the_latest_audit_and_the_latest_drift_of_each_place_are_shown_and_counted():
    site = ready_site()
    client = TestClient(api_of(site))
    empty = client.get("/v1/drift").json()
    assert [(p["place"], p["latest"], p["audits"]) for p in empty["places"]] == [
        ("ls1", None, 0),
        ("ch1", None, 0),
        ("hosts", None, 0),
    ]
    site.switches.found["ls1"] = [Compared({DriftKind.FLOW: 9}, LOST), Compared({DriftKind.FLOW: 214}, (DARK,))]
    for _ in range(2):
        site.clock.now_us += 10_000_000
        for _ in range(3):
            site.audits.next()
    place = client.get("/v1/drift").json()["places"][0]
    assert (place["latest"]["proper"], place["latest"]["alarms"]) == (
        {"flow": 214},
        ["flow shadowed: theirs: delete it"],
    )
    assert (len(place["drifted"]["deviations"]), place["drifted"]["more"]) == (MOST_SHOWN, 5)
    metrics = client.get("/metrics").text
    for line in (
        f'headway_drift_found_total{{kind="flow",place="ls1",shape="missing"}} {MOST_SHOWN + 5}.0',
        f'headway_drift_repaired_total{{kind="flow",place="ls1",shape="missing"}} {MOST_SHOWN + 5}.0',
        'headway_drift_found_total{kind="flow",place="ls1",shape="shadowed"} 1.0',
        'headway_drift_alarms{place="ls1"} 1.0',
        'headway_audits_total{place="hosts"} 2.0',
    ):
        assert line in metrics
