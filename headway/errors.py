"""What a call can end with beside an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.promises import OfferOut


class ApiError(Exception):
    """A call had no good answer."""


class NotAUrl(ApiError, ValueError):
    """What is said to be a controller's address is none."""


class NoSuchName(ApiError, ValueError):
    """What is asked for by its name cannot have that one: it is empty, as a variable that is not set, or no text."""


class NotAToken(ApiError, ValueError):
    """What is to be shown as a token cannot be sent."""


class NoAnswer(ApiError):
    """No answer came: nobody listens, the connection broke, or time is over. What was asked may have been done."""


class NoConnection(NoAnswer):
    """Nobody was reached: nothing was asked, so nothing was done."""


class NotTrusted(ApiError):
    """Who answers shows no certificate that is trusted: its authority is not known here, or it is somebody else."""


class NotAController(ApiError):
    """An answer came, and not as a controller answers."""


class ApiProblem(ApiError):
    """The controller says what is wrong (RFC 9457).

    Attributes:
        problem: all it says; ``type``, ``title``, ``status`` and ``detail`` are always there.
        retry_after_s: when it says that one may ask again; None if it does not say.
        is_old: whether it stands by, so one that leads may say something else.
    """

    def __init__(self, problem: dict[str, Any], retry_after_s: float | None = None, is_old: bool = False) -> None:
        self.problem = problem
        self.retry_after_s = retry_after_s
        self.is_old = is_old
        super().__init__(problem["detail"])

    @property
    def status(self) -> int:
        """The answer's status, as 404."""
        return int(self.problem["status"])

    @property
    def kind(self) -> str:
        """Which problem it is, as ``/problems/not-known``; never changes."""
        return str(self.problem["type"])


class ApiRefusal(ApiProblem):
    """The answer no, with the numbers, and what would be granted instead."""

    @property
    def offers(self) -> list[OfferOut]:
        """What would be granted instead."""
        found: list[OfferOut] = self.problem["offers"]
        return found
