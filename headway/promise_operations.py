"""Made from the API's description by contrib/api_client.py: a method for each of the operations on promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.transport import Asked, Transport, made_up, segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.promises import (
        AnnouncementIn,
        AnnouncementOut,
        AnnouncementPage,
        AnnouncementState,
        AvailabilityOut,
        FlowClass,
        RenewalIn,
        ReservationChange,
        ReservationIn,
        ReservationOut,
        ReservationPage,
        ReservationState,
    )


class PromiseOperations(Transport):
    """Operations of the API, by their names in its description: the operations on promises."""

    def hold_reservation(self, body: ReservationIn, *, idempotency_key: str | None = None) -> ReservationOut:
        """Hold bandwidth, and commit it at once if asked to.

        What is held lapses at `hold_until` unless it is committed: after `hold_s`, or sooner if what it needs
        has to be bought. A refusal has the numbers and the nearest offers.
        """
        answer: ReservationOut = self.call(
            Asked(
                "POST",
                "/v1/reservations",
                headers={"Idempotency-Key": made_up(idempotency_key)},
                body=body,
                repeatable=True,
            )
        )
        return answer

    def list_reservations(
        self,
        *,
        owner: Sequence[str] | None = None,
        mine: bool | None = None,
        class_: Sequence[FlowClass] | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        state: Sequence[ReservationState] | None = None,
        after: str | None = None,
        before: str | None = None,
        description: str | None = None,
    ) -> ReservationPage:
        """Return reservations in order of creation, a page at a time.

        A page may have fewer than `limit`, even none, though `next` says that there are more. While the database
        cannot be read they are those that have not ended (`lacks`).
        """
        answer: ReservationPage = self.call(
            Asked(
                "GET",
                "/v1/reservations",
                query={
                    "owner": owner,
                    "mine": mine,
                    "class": class_,
                    "from": from_,
                    "to": to,
                    "limit": limit,
                    "cursor": cursor,
                    "state": state,
                    "after": after,
                    "before": before,
                    "description": description,
                },
                repeatable=True,
            )
        )
        return answer

    def commit_reservation(self, id_: str) -> ReservationOut:
        """Make a hold a promise. One that is a promise already stays so."""
        answer: ReservationOut = self.call(Asked("POST", f"/v1/reservations/{segment(id_)}/commit", repeatable=True))
        return answer

    def renew_reservation(self, id_: str, body: RenewalIn | None = None) -> ReservationOut:
        """Keep a hold for longer, from now; no longer than what it needs can still be bought."""
        answer: ReservationOut = self.call(
            Asked("POST", f"/v1/reservations/{segment(id_)}/renew", body=body, repeatable=True)
        )
        return answer

    def get_reservation(self, id_: str) -> ReservationOut:
        """Return a reservation.

        One that has not ended is sent also to who has its version: whether it is carried changes without that.
        """
        answer: ReservationOut = self.call(Asked("GET", f"/v1/reservations/{segment(id_)}", repeatable=True))
        return answer

    def change_reservation(self, id_: str, body: ReservationChange, *, if_match: str | None = None) -> ReservationOut:
        """Change a reservation; its own share counts as free. Refused, nothing has changed."""
        answer: ReservationOut = self.call(
            Asked("PATCH", f"/v1/reservations/{segment(id_)}", headers={"If-Match": if_match}, body=body)
        )
        return answer

    def release_reservation(self, id_: str, *, if_match: str | None = None) -> ReservationOut:
        """Give a reservation back. One that is given back already stays so."""
        answer: ReservationOut = self.call(
            Asked(
                "DELETE",
                f"/v1/reservations/{segment(id_)}",
                headers={"If-Match": if_match},
                repeatable=if_match is None,
            )
        )
        return answer

    def get_availability(
        self,
        *,
        rate_bps: int | None = None,
        rate: str | None = None,
        from_: str,
        to: str,
        class_: FlowClass | None = None,
        start: str | None = None,
        end: str | None = None,
        duration_s: float | None = None,
        bytes_: int | None = None,
        rate_min: str | None = None,
        rate_max: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        max_rtt_ms: float | None = None,
        limit: int | None = None,
    ) -> AvailabilityOut:
        """Return what is free along each path: over time, at once, when a rate fits first, when bytes can be moved.

        What is free over time comes in pages. All else is about the time from a page's own start, so that of the
        first page is about the whole.
        """
        answer: AvailabilityOut = self.call(
            Asked(
                "GET",
                "/v1/availability",
                query={
                    "rate_bps": rate_bps,
                    "rate": rate,
                    "from": from_,
                    "to": to,
                    "class": class_,
                    "start": start,
                    "end": end,
                    "duration_s": duration_s,
                    "bytes": bytes_,
                    "rate_min": rate_min,
                    "rate_max": rate_max,
                    "include": include,
                    "exclude": exclude,
                    "max_rtt_ms": max_rtt_ms,
                    "limit": limit,
                },
                repeatable=True,
            )
        )
        return answer

    def announce(self, body: AnnouncementIn, *, idempotency_key: str | None = None) -> AnnouncementOut:
        """Announce bytes that are coming; the answer is a promise, or a refusal with the numbers and offers.

        Asked again by the same principal with the same `id` or `Idempotency-Key` and the same body, it is the
        same announcement.
        """
        answer: AnnouncementOut = self.call(
            Asked(
                "POST",
                "/v1/announcements",
                headers={"Idempotency-Key": made_up(idempotency_key)},
                body=body,
                repeatable=True,
            )
        )
        return answer

    def list_announcements(
        self,
        *,
        owner: Sequence[str] | None = None,
        mine: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        state: Sequence[AnnouncementState] | None = None,
    ) -> AnnouncementPage:
        """Return announcements in the order they were made, a page at a time; for thirty days those that have
        ended.

        While the database cannot be read they are those in the plan and those that have ended just now
        (`lacks`).
        """
        answer: AnnouncementPage = self.call(
            Asked(
                "GET",
                "/v1/announcements",
                query={"owner": owner, "mine": mine, "limit": limit, "cursor": cursor, "state": state},
                repeatable=True,
            )
        )
        return answer

    def get_announcement(self, id_: str) -> AnnouncementOut:
        """Return an announcement: the one in the plan, or else the last of this name that has ended."""
        answer: AnnouncementOut = self.call(Asked("GET", f"/v1/announcements/{segment(id_)}", repeatable=True))
        return answer

    def release_announcement(self, id_: str) -> AnnouncementOut:
        """Release an announcement: its bytes have arrived, its share goes back. One that is released already stays
        so.

        What became of it is kept; the last counts of its senders come within a second.
        """
        answer: AnnouncementOut = self.call(Asked("DELETE", f"/v1/announcements/{segment(id_)}"))
        return answer
