"""Made from the API's description by contrib/api_client.py: a method for each of the other operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.promise_operations import PromiseOperations
from headway.transport import Asked, made_up, segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headway.forecasts import DeathOut, ScenarioOut
    from headway.network_views import BurstOut, ReceiversOut, TopologyOut
    from headway.promises import FlowClass
    from headway.records import (
        HistoryPage,
        LeaderOut,
        MaintenanceIn,
        MaintenanceOut,
        PlannedOut,
        RememberedPage,
        WhoamiOut,
    )
    from headway.stream import ServerSentEvent
    from headway.views import CircuitOut, DriftOut, HealthOut, HostStateOut, NeedsOut, StepOut, SwitchOut, ViewOut


class Operations(PromiseOperations):
    """Operations of the API, by their names in its description: the other operations."""

    def get_calendar(
        self,
        *,
        owner: Sequence[str] | None = None,
        mine: bool | None = None,
        class_: Sequence[FlowClass] | None = None,
        from_: str | None = None,
        to: str | None = None,
    ) -> str:
        """Return reservations as iCalendar (RFC 5545), for a calendar program to subscribe to.

        At most 1,000 that have not ended, those that begin first. One that is held and not committed is
        tentative. A program that cannot send a bearer token gives it as the password of HTTP's basic
        authentication.
        """
        answer: str = self.call(
            Asked(
                "GET",
                "/v1/calendar.ics",
                query={"owner": owner, "mine": mine, "class": class_, "from": from_, "to": to},
                repeatable=True,
            )
        )
        return answer

    def list_history(self, *, limit: int | None = None, cursor: str | None = None) -> HistoryPage:
        """Return what has ended, a page at a time, in the order in which that was saved.

        Nothing comes before a cursor later: who goes on from the last one has all, once. Only an announcement
        whose last bytes were counted after its end comes once more.
        """
        answer: HistoryPage = self.call(
            Asked("GET", "/v1/history", query={"limit": limit, "cursor": cursor}, repeatable=True)
        )
        return answer

    def list_changes(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        id_: str | None = None,
        who: str | None = None,
        since: str | None = None,
    ) -> RememberedPage:
        """Return who has changed what, when and from where, a page at a time, in the order in which that was saved.

        Each was written in the transaction that has changed it. Nothing comes before a cursor later, unless a
        backup was restored: the numbers go on from its last one, and who has read beyond that begins anew there.
        """
        answer: RememberedPage = self.call(
            Asked(
                "GET",
                "/v1/changes",
                query={"limit": limit, "cursor": cursor, "id": id_, "who": who, "since": since},
                repeatable=True,
            )
        )
        return answer

    def get_health(self) -> HealthOut:
        """Return whether the wanted plan is in force in the switches and all that is promised is carried.

        Of a controller that stands by: whether another one leads, and whether it knows of all that was promised
        until some seconds ago.
        """
        answer: HealthOut = self.call(Asked("GET", "/healthz", repeatable=True, also=(503,)))
        return answer

    def get_plan(self) -> ViewOut:
        """Return the plan: wanted, installed, and what each layer lets through now."""
        answer: ViewOut = self.call(Asked("GET", "/v1/plan", repeatable=True))
        return answer

    def list_circuits(self) -> list[CircuitOut]:
        """Return every circuit, how its line is, and the plan that is ready for the case that it dies."""
        answer: list[CircuitOut] = self.call(Asked("GET", "/v1/circuits", repeatable=True))
        return answer

    def list_transitions(self) -> list[StepOut]:
        """Return the latest steps from plan to plan, oldest first."""
        answer: list[StepOut] = self.call(Asked("GET", "/v1/transitions", repeatable=True))
        return answer

    def get_topology(self) -> TopologyOut:
        """Return the network, with the delays that were measured."""
        answer: TopologyOut = self.call(Asked("GET", "/v1/topology", repeatable=True))
        return answer

    def list_bursts(self) -> list[BurstOut]:
        """Return, for each port, what a start of all its senders needs of its buffer, and what they do."""
        answer: list[BurstOut] = self.call(Asked("GET", "/v1/bursts", repeatable=True))
        return answer

    def list_receivers(self) -> ReceiversOut:
        """Return what receivers take, which flows they hold, and who has what these do not use."""
        answer: ReceiversOut = self.call(Asked("GET", "/v1/receivers", repeatable=True))
        return answer

    def list_hosts(self) -> list[HostStateOut]:
        """Return every host's agent and its counters."""
        answer: list[HostStateOut] = self.call(Asked("GET", "/v1/hosts", repeatable=True))
        return answer

    def list_switches(self) -> list[SwitchOut]:
        """Return every switch, and whether it is connected."""
        answer: list[SwitchOut] = self.call(Asked("GET", "/v1/switches", repeatable=True))
        return answer

    def get_drift(self) -> DriftOut:
        """Return the latest audit of every switch and of the hosts: what was found, and what was done about it."""
        answer: DriftOut = self.call(Asked("GET", "/v1/drift", repeatable=True))
        return answer

    def get_whoami(self) -> WhoamiOut:
        """Return who asks, by what name, role and groups, and what is left of each quota that this one may use."""
        answer: WhoamiOut = self.call(Asked("GET", "/v1/whoami", repeatable=True))
        return answer

    def list_maintenance(self) -> list[MaintenanceOut]:
        """Return the maintenance that is planned here and not over; that of the configuration is not among it."""
        answer: list[MaintenanceOut] = self.call(Asked("GET", "/v1/maintenance", repeatable=True))
        return answer

    def plan_maintenance(self, body: MaintenanceIn, *, idempotency_key: str | None = None) -> PlannedOut:
        """Plan a maintenance; nothing goes by the circuit meanwhile, and nothing is promised for it.

        If it would break reservations it is refused with what they are and what would be granted instead, unless
        `force` is said: those that have time left when it is over are interrupted until then, others fail.
        `only_look` says that and plans nothing. Asked again with the same `Idempotency-Key` and the same body,
        it is the same maintenance.
        """
        answer: PlannedOut = self.call(
            Asked(
                "POST",
                "/v1/maintenance",
                headers={"Idempotency-Key": made_up(idempotency_key)},
                body=body,
                repeatable=True,
            )
        )
        return answer

    def cancel_maintenance(self, id_: str) -> MaintenanceOut:
        """Take a maintenance back; what of it is over stays over. One that is taken back already stays so."""
        answer: MaintenanceOut = self.call(Asked("DELETE", f"/v1/maintenance/{segment(id_)}", repeatable=True))
        return answer

    def get_scenario(self) -> ScenarioOut:
        """Return the site as it is now, for `headway what-if --live` to go on from."""
        answer: ScenarioOut = self.call(Asked("GET", "/v1/scenario", repeatable=True))
        return answer

    def what_if(self, circuit: str) -> DeathOut:
        """Return which promises break if a circuit dies now, worked out beside the controller, one at a time."""
        answer: DeathOut = self.call(Asked("GET", f"/v1/what-if/{segment(circuit)}", repeatable=True, takes_s=75))
        return answer

    def get_leader(self) -> LeaderOut:
        """Return which controller leads, how this one stands, and how old what it knows may be."""
        answer: LeaderOut = self.call(Asked("GET", "/v1/leader", repeatable=True))
        return answer

    def move_leader(self) -> LeaderOut:
        """Let a controller that stands by lead instead of this one, which begins anew and stands by.

        It is refused unless one stands by that has looked at the leader's row in the last second.
        """
        answer: LeaderOut = self.call(Asked("POST", "/v1/leader/move"))
        return answer

    def get_needs(self) -> NeedsOut:
        """Return what needs somebody: the headline of the page, what it means and what helps."""
        answer: NeedsOut = self.call(Asked("GET", "/v1/needs", repeatable=True))
        return answer

    def follow_events(self, *, last_event_id: str | None = None) -> Iterator[ServerSentEvent]:
        """Tell what happens, as it happens. An event `lost` says that some between are not remembered any more.

        Many may listen at once, but not any number, and fewer of one address (429).
        """
        return self.followed("/v1/events", last_event_id)

    def get_metrics(self) -> str:
        """Return metrics in the text format of Prometheus."""
        answer: str = self.call(Asked("GET", "/metrics", repeatable=True))
        return answer
