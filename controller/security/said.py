"""What is said of strangers in the log: so much, however much they do."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Again:
    """What went on after it was said.

    Attributes:
        network: whose connections; ``others`` for all those that were too many to be told apart.
        why: what was said.
        times: how often it happened since.
    """

    network: str
    why: str
    times: int


class SaidSeldom:
    """The same of the same network is said once, and a while later how often it came again. Any thread may ask."""

    def __init__(self, again_s: float, most: int = 500) -> None:
        """Begin with nothing said.

        Args:
            again_s: how long it is not said again, seconds.
            most: of how many networks and reasons; what is beyond is said of all others together.
        """
        self._again_s = again_s
        self._most = most
        self._said: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def is_first(self, network: str, why: str, now_s: float) -> bool:
        """Return whether it is to be said; if not, it is counted."""
        with self._lock:
            key = (network, why)
            if key not in self._said and len(self._said) >= self._most:
                key = (OTHERS, "")
            if key not in self._said:
                self._said[key] = (now_s, 0)
                return True
            since_s, times = self._said[key]
            self._said[key] = (since_s, times + 1)
            return False

    def over(self, now_s: float) -> tuple[Again, ...]:
        """Forget what was said long enough ago; return of that what came again meanwhile."""
        found = []
        with self._lock:
            while self._said:
                (network, why), (since_s, times) = next(iter(self._said.items()))
                if now_s - since_s < self._again_s:
                    break
                self._said.popitem(last=False)
                if times:
                    found.append(Again(network, why, times))
        return tuple(found)
