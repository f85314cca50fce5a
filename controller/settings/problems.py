"""What is wrong with a configuration: all of it, each problem with its path in the file."""

from dataclasses import dataclass, field


def path_of(*steps: str | int) -> str:
    """Return where something stands in a file.

    >>> path_of("flows", 2, "class")
    'flows[2].class'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


@dataclass(frozen=True, slots=True)
class Problems:
    """What has been found to be wrong, together; a part is given the problems of its section, and adds to them.

    >>> all_of_them = Problems()
    >>> all_of_them.at("flows", 2).add("there is no such host")
    >>> all_of_them.found
    ['flows[2]: there is no such host']
    """

    steps: tuple[str | int, ...] = ()
    found: list[str] = field(default_factory=list)

    def at(self, *steps: str | int) -> "Problems":
        """Return the problems of what stands below this."""
        return Problems((*self.steps, *steps), self.found)

    def add(self, what: object) -> None:
        """Take note of a problem here."""
        self.found.append(f"{path_of(*self.steps)}: {what}")
