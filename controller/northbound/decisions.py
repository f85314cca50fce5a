"""How often what was asked for was granted, or refused and why, and how long deciding took: counted as it happens."""

import time
from collections.abc import Callable
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from controller.plan.admission import Refused
from controller.saves import Saved

T = TypeVar("T")
BUCKETS_S = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.1, 1.0)  # the aim is 0.2 ms


class Decisions:
    """Counts decisions and times them. Thread-safe, as prometheus_client is."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Counter(
            "headway_decisions", "What was asked, by the answer.", ["kind", "answer"], registry=registry
        )
        self._seconds = Histogram(
            "headway_decision_seconds", "How long deciding took.", ["kind"], buckets=BUCKETS_S, registry=registry
        )
        self._failures = Counter("headway_store_failures", "Answers that could not be saved.", registry=registry)

    def decided(self, kind: str, decide: Callable[[], Saved[T]]) -> Saved[T]:
        """Return a decision; it is counted as ``granted``, by the reason it was refused for, or as ``invalid``."""
        began_s, answer = time.perf_counter(), "invalid"
        try:
            saved = decide()
            answer = saved.value.reason.value if isinstance(saved.value, Refused) else "granted"
        finally:
            self._seconds.labels(kind).observe(time.perf_counter() - began_s)
            self._count.labels(kind, answer).inc()
        return saved

    def not_saved(self) -> None:
        """Count an answer that could not be given because it was not saved."""
        self._failures.inc()
