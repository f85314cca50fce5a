"""Webhooks: what happens is told to somebody's HTTP server, signed, and again until it is taken.

The message is that of Standard Webhooks: ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``. Events are
read from the memory of them, a few times a second, so whoever publishes one waits for nobody.
"""

import asyncio
import base64
import hmac
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

import httpx

from controller.events import Events, Happened
from controller.northbound.json_bytes import json_bytes
from controller.security.authorities import trusted
from controller.security.whole_answers import reason
from controller.settings.webhooks import WebhookSettings, secret_of
from topology import __version__
from topology.units import shown_time

LOOK_S = 0.5
PATIENCE_S = 5.0  # for an answer
AGAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # after so many failures in a row
LAST_S = 2.0  # so long the end of the process waits for what has happened until then to be told
GIVE_UP_S = 3600.0  # an event that is older is of no use to anybody
OURS = "webhook."  # what happens to webhooks is not told by them, but that one was given up
GIVEN_UP = "webhook.given_up"


class Delivery(StrEnum):
    """What became of one message."""

    TAKEN = "taken"
    FAILED = "failed"
    GIVEN_UP = "given_up"


class Webhook:
    """Tells one server; has a thread of its own, so that one that is slow keeps nobody waiting.

    Attributes:
        where: the server's name; the rest of the address may be a secret.
        outcomes: messages since the start, by what became of them; one that is sent again counts as failed each time.
    """

    def __init__(self, events: Events, settings: WebhookSettings, now_s: Callable[[], float] = time.time) -> None:
        self._events = events
        self._settings = settings
        self._now_s = now_s
        self._told = events.before
        self._failures = 0
        self._failing_since_s: float | None = None
        self._missed: Happened | None = None  # the latest that was given up, while nothing is taken
        self.where = host_of(settings.url)
        self.outcomes: Counter[Delivery] = Counter()

    def lead(self, _term: int) -> None:
        """Tell only of what happens from now on: what one that stood by has seen until then, who led has told."""
        self._told = self._events.last

    def failing_s(self) -> float:
        """Return for how long nothing has been taken; 0 if the last was."""
        return 0.0 if self._failing_since_s is None else time.monotonic() - self._failing_since_s

    def run(self, ended: Callable[[float], bool]) -> None:
        """Tell until the end, from the first event that is ours to tell; then, once, of what is left then.

        Args:
            ended: waits for so many seconds, and says whether the process ends.
        """
        while not ended(LOOK_S):
            heard = self._events.since(self._told)
            if heard.lost:
                self._events.publish("webhook.lost", level="error", where=self.where)
            for one in heard.events:
                if self._is_wanted(one) and not self._delivered(one, ended):
                    return
                self._told = one.number
            self._told = max(self._told, heard.last)
            if self._missed is not None and not self._is_told(self._missed) and ended(self._pause_s):
                return
        self._tell_last()

    def _tell_last(self) -> None:
        """Tell of what nobody has been told of yet, each once, until one is not taken, or it takes too long."""
        over_s = time.monotonic() + LAST_S
        for one in filter(self._is_wanted, self._events.since(self._told).events):
            left_s = over_s - time.monotonic()
            if left_s < 0 or self._refused(one, left_s):
                return
            self.outcomes[Delivery.TAKEN] += 1

    def _is_wanted(self, one: Happened) -> bool:
        if one.name.startswith(OURS):
            return False
        return any(fnmatchcase(one.name, pattern) for pattern in self._settings.events)

    def _delivered(self, one: Happened, ended: Callable[[float], bool]) -> bool:
        """Tell of one event until it is taken, or too old; return whether the process goes on."""
        while time.monotonic() - one.monotonic_s <= GIVE_UP_S:
            if self._is_told(one):
                return True
            if ended(self._pause_s):
                return False
        self._give_up(one)
        return True

    def _give_up(self, one: Happened) -> None:
        """Tell no more of an event; that it was given up is told when nothing else is left to tell."""
        self._events.publish(GIVEN_UP, level="error", where=self.where, event_name=one.name)
        self.outcomes[Delivery.GIVEN_UP] += 1
        self._missed = replace(one, name=GIVEN_UP, fields={"event_name": one.name})

    def _is_told(self, one: Happened) -> bool:
        """Tell of one event once; return whether it was taken."""
        if why := self._refused(one, PATIENCE_S):
            self.outcomes[Delivery.FAILED] += 1
            if not self._failures:
                self._failing_since_s = time.monotonic()
                self._events.publish("webhook.failing", level="error", where=self.where, why=why)
            self._failures += 1
            return False
        if self._failures:
            self._events.publish("webhook.over", where=self.where, failures=self._failures)
        self._failures = 0
        self._failing_since_s = None
        self._missed = None
        self.outcomes[Delivery.TAKEN] += 1
        return True

    @property
    def _pause_s(self) -> float:
        """After a failure."""
        return AGAIN_S[min(self._failures, len(AGAIN_S)) - 1]

    def _refused(self, one: Happened, within_s: float) -> str:
        said = {"type": one.name, "timestamp": shown_time(one.at_us), "data": dict(one.fields)}
        message_id = f"headway-{one.number}{'-given-up' if one.name == GIVEN_UP else ''}"
        return why_not_taken(self._settings, message_id, said, int(self._now_s()), within_s)


def why_not_taken(
    settings: WebhookSettings, message_id: str, said: Mapping[str, Any], at_s: int, within_s: float
) -> str:
    """Tell of one event once; return why it was not taken, nothing if it was.

    Args:
        settings: who is told.
        message_id: names the message; the same each time that it is sent.
        said: the event.
        at_s: now, Unix time.
        within_s: how long it may take until the answer begins, in all.
    """
    body = json_bytes(said, fallback=str)
    try:
        headers = signed(message_id, at_s, body, secret_of(settings.secret))
        with asyncio.Runner() as runner:
            status = runner.run(_status(settings.url, body, headers, within_s))
    except TimeoutError:
        return f"no answer within {within_s:.3g} s"
    except Exception as error:  # noqa: BLE001 - whatever it is, of theirs or ours: nobody who carries promises ends of it
        return f"{type(error).__name__}: {reason(error)}"
    return "" if httpx.codes.is_success(status) else f"it answered {status}"


async def _status(url: str, body: bytes, headers: Mapping[str, str], within_s: float) -> int:
    """Return the status of an answer; its body, which may have no end, is not read.

    A time limit of httpx is for each part of an answer anew, so who answers by drops would have none.
    """
    async with (
        asyncio.timeout(within_s),
        httpx.AsyncClient(verify=trusted(), timeout=None, follow_redirects=False) as client,  # noqa: S113 (see above)
        client.stream("POST", url, content=body, headers=headers) as answer,
    ):
        return answer.status_code


def host_of(url: str) -> str:
    """Return what may be said of an address: the rest of it may be a secret."""
    return urlsplit(url).hostname or ""


def signed(message_id: str, at_s: int, body: bytes, secret: bytes) -> dict[str, str]:
    """Return the headers of a message.

    Args:
        message_id: names the message; the same each time that it is sent.
        at_s: when it is sent, Unix time.
        body: what it says.
        secret: known to both sides.
    """
    content = f"{message_id}.{at_s}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret, content, "sha256")).decode()
    return {
        "content-type": "application/json",
        "user-agent": f"Headway/{__version__}",
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{signature}",
    }
