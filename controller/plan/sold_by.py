"""Of whom a circuit is bought: what is bought is known by its seller alone. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SoldBy:
    """Of whom a circuit is bought.

    Attributes:
        kind: of provider.
        server: what tells it from others of its kind, as a URL; empty if nothing does.
        moved_from: what ``server`` was before, if that is the same one by another name.
    """

    kind: str
    server: str
    moved_from: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.kind} ({self.server})" if self.server else self.kind

    def has_what_was_bought_of(self, before: "SoldBy") -> bool:
        """Return whether it knows what was bought of ``before``."""
        return self.kind == before.kind and before.server in {"", self.server, self.moved_from}
