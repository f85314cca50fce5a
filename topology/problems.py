"""What is wrong with a file: all of it, each problem with its line, if that is known, and its path."""

from dataclasses import dataclass, field

from topology.yaml_text import line_of


def path_of(*steps: str | int) -> str:
    """Return where something stands in a file.

    >>> path_of("flows", 2, "class")
    'flows[2].class'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def placed(values: object, steps: tuple[str | int, ...], what: object) -> str:
    """Return a problem with its place.

    >>> placed({}, ("flows", 2), "there is no such host")
    'flows[2]: there is no such host'
    """
    line = line_of(values, steps)
    return f"{f'line {line}: ' if line else ''}{path_of(*steps) or 'the file'}: {what}"


@dataclass(frozen=True, slots=True)
class Problems:
    """What has been found to be wrong, together; a part is given the problems of its section, and adds to them.

    Attributes:
        steps: the way to this part.
        found: all problems so far, those of other parts too.
        values: what YAML has read, which knows its lines.

    >>> all_of_them = Problems()
    >>> all_of_them.at("flows", 2).add("there is no such host")
    >>> all_of_them.found
    ['flows[2]: there is no such host']
    """

    steps: tuple[str | int, ...] = ()
    found: list[str] = field(default_factory=list)
    values: object = None

    def at(self, *steps: str | int) -> "Problems":
        """Return the problems of what stands below this."""
        return Problems((*self.steps, *steps), self.found, self.values)

    def add(self, what: object) -> None:
        """Take note of a problem here."""
        self.found.append(placed(self.values, self.steps, what))
