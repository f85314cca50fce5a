"""What can go wrong between us and who sells the circuit.

ProviderError
├── ProviderRefused         it said no, and will say no again
│   └── NameTaken           it may say yes to another name
├── ProviderUnavailable     it did not answer, or not so that one could understand it: try again later
│   └── AnswerLost          a request was sent, and nobody knows whether it was, or will be, carried out
├── ProviderDenied          it does not accept our credentials
├── NotInForce              it said yes, and what it has is something else
└── SecretUnusable          the credentials are not where the configuration says

They are data classes, but not frozen ones: contextlib writes ``__traceback__`` of an exception that passes through it.
"""

from dataclasses import dataclass

from controller.plan.purchases import Period


class ProviderError(Exception):
    """Root of everything raised by ``controller.providers``."""


@dataclass(eq=False)
class ProviderRefused(ProviderError):
    """The purchase ``name`` cannot be had as asked; ``reason`` is the provider's where it gave one."""

    name: str
    reason: str

    def __str__(self) -> str:
        """Return what was refused, for people."""
        return f'"{self.name}" is refused: {self.reason}'


class NameTaken(ProviderRefused):
    """What was asked for can perhaps be had, by a name that nobody has had there."""


@dataclass(eq=False)
class ProviderUnavailable(ProviderError):
    """The provider cannot be asked now; whether it has acted is unknown until it is asked again.

    Attributes:
        request: what it was asked, method and path.
        problem: what came back instead of an answer; never holds our credentials.
    """

    request: str
    problem: str

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"{self.request}: {self.problem}; to be tried again"


class AnswerLost(ProviderUnavailable):
    """A request was sent and not answered: it is not to be repeated before it is known what became of it."""


@dataclass(eq=False)
class ProviderDenied(ProviderError):
    """The provider does not accept our credentials, or they do not allow what we asked.

    Attributes:
        request: what it was asked, method and path.
        problem: what is wrong with them; never holds them.
        cure: what to do.
    """

    request: str
    problem: str
    cure: str

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"{self.request}: {self.problem}: {self.cure}"


@dataclass(eq=False)
class NotInForce(ProviderError):
    """The provider said that it was done, and reading back shows otherwise.

    Attributes:
        name: the purchase.
        asked: what it should be; None for gone.
        found: what it is; None for gone.
        difference: what of it differs.
    """

    name: str
    asked: Period | None
    found: Period | None
    difference: str

    def __str__(self) -> str:
        """Return what differs, for people."""
        return f'"{self.name}" was confirmed, but {self.difference}: asked {self.asked}, found {self.found}'


@dataclass(eq=False)
class SecretUnusable(ProviderError, ValueError):
    """There is no secret at ``source``, or not one that is kept as a secret."""

    source: str
    problem: str

    def __str__(self) -> str:
        """Return where and what, for people; never the secret."""
        return f"{self.source}: {self.problem}"
