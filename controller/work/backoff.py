"""When what has failed is tried again: later and later."""

from collections.abc import Callable, Collection

from controller.plan.booking_lead import POLL_US

LONGEST_WAIT_US = 60_000_000


class Backoff:
    """What waits, by name: after each failure twice as long as before, up to a minute."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._again_us: dict[str, tuple[int, int]] = {}  # when it is tried again, and how long it waits; 0: not failed

    @property
    def failing(self) -> frozenset[str]:
        """Return what had failed when it was tried last."""
        return frozenset(name for name, (_, wait_us) in self._again_us.items() if wait_us)

    def waits(self, name: str) -> bool:
        """Return whether it is not to be tried now."""
        return self._now_us() < self._again_us.get(name, (0, 0))[0]

    def failed(self, name: str) -> None:
        """Have it wait longer than before."""
        wait_us = min(LONGEST_WAIT_US, 2 * self._again_us.get(name, (0, 0))[1] or POLL_US)
        self._again_us[name] = self._now_us() + wait_us, wait_us

    def worked(self, name: str) -> None:
        """Have it wait no more for what had failed."""
        if self._again_us.get(name, (0, 0))[1]:
            self.forget(name)

    def rest(self, name: str, wait_us: int) -> None:
        """Have it wait although nothing has failed."""
        self._again_us[name] = self._now_us() + wait_us, 0

    def forget(self, name: str) -> None:
        """Forget it."""
        self._again_us.pop(name, None)

    def keep(self, names: Collection[str]) -> None:
        """Forget all but these."""
        self._again_us = {name: again for name, again in self._again_us.items() if name in names}
