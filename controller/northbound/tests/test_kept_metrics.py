"""What `/metrics` says of promises that were kept, and of those that are not now."""

from fastapi.testclient import TestClient

from controller.northbound.tests.site import api_of
from controller.northbound.tests.test_rest import IMAGE, metrics
from controller.plan.announcement_states import PromiseOutcome
from controller.plan.deliveries import LAST_COUNT_US
from controller.state.value import Unkept
from controller.tests.fakes import ready_site


def test_metrics_count_promises_by_how_they_were_kept_and_those_that_are_not_now():
    site = ready_site()
    client = TestClient(api_of(site))
    client.post("/v1/announcements", json=IMAGE)
    client.delete("/v1/announcements/image")
    site.clock.now_us += LAST_COUNT_US
    site.use_cases.tick()
    with site.state.changed:
        site.state.put(unkept=Unkept(late=2, unkeepable=3))
    found = metrics(client)
    outcomes = {outcome: found("announcements_ended_total", outcome) for outcome in PromiseOutcome}
    assert outcomes == dict.fromkeys(PromiseOutcome, 0) | {PromiseOutcome.UNCOUNTED: 1}
    assert (found("announcements_late"), found("reservations_unkeepable")) == (2, 3)
