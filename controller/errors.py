"""What can go wrong, as one tree.

HeadwayError
  ConfigError        the configuration is wrong: every problem with its path (exit 2)
  SellersExchanged   it has other sellers than those of whom something is bought (exit 1)
  NotKnown           no such thing (404)
  NotAllowed         the request makes no sense here (422)
  Taken              an id or a key that another request was made with (409)
  Outdated           it has changed since the client saw it (412)
  Unconditional      a change without what the client has seen (428)
  NotYours           a change of what is somebody else's (403)
A switch that did not do what it was told: controller.southbound.errors (502).
A refusal for want of capacity is not an error but a value (controller.plan.announcements.Refused, 409).
"""


class HeadwayError(Exception):
    """Root of the tree."""


class ConfigError(HeadwayError):
    """The configuration is wrong; ``problems`` has every one of them, each with its path."""

    def __init__(self, source: str, problems: tuple[str, ...]) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))


class SellersExchanged(HeadwayError):
    """Circuits have other sellers than those of whom something is bought; ``why`` says of each what to do."""

    def __init__(self, why: tuple[str, ...]) -> None:
        self.why = why
        super().__init__("\n".join(why))


class NotKnown(HeadwayError):
    """There is no ``kind`` called ``name``.

    Attributes:
        known: the names there are; none if they are too many to be told, or some that exist are not among them.
    """

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        super().__init__(f'there is no {kind} "{name}"' + (f"; there are: {', '.join(known)}" if known else ""))


class NotAllowed(HeadwayError):
    """A request that cannot be meant: ``field`` has a value that is not possible here."""

    def __init__(self, field: str, why: str) -> None:
        self.field = field
        self.why = why
        super().__init__(f"{field}: {why}")


class Taken(HeadwayError):
    """A promise with the ``id`` or ``Idempotency-Key`` of ``another``: ``field`` says which, ``name`` that."""

    def __init__(self, field: str, name: str, another: str = "another announcement") -> None:
        self.field = field
        self.name = name
        super().__init__(f'{field}: "{name}" was used for {another}; for this take another')


class Outdated(HeadwayError):
    """A change of what the client saw as ``seen_version``, but it is at ``version`` by now."""

    def __init__(self, kind: str, name: str, seen_version: int, version: int) -> None:
        self.kind = kind
        self.name = name
        self.seen_version = seen_version
        self.version = version
        super().__init__(f'{kind} "{name}" is at version {version}, not {seen_version}: get it again, then change it')


class Unconditional(HeadwayError):
    """A change of ``name`` that does not say what the client has seen of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'a change of "{name}" must say which version it is of: send its ETag as If-Match')


class NotYours(HeadwayError):
    """A change of ``name`` by somebody who is neither its ``owner``, nor in the group that is, nor operates the site.

    Attributes:
        needs: the role that may, whoever the owner is.
    """

    def __init__(self, kind: str, name: str, owner: str) -> None:
        self.kind = kind
        self.name = name
        self.owner = owner or None
        self.needs = "operate"
        whose = f"is not yours but {owner}'s" if owner else "is nobody's"
        said = f"you are not {name}" if kind == "owner" else f'{kind} "{name}" {whose}'
        super().__init__(f'{said}: this needs the role "{self.needs}"')
