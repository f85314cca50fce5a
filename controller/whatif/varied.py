"""What of a scenario's file is varied: all combinations of the values to try, each put in its place. Pure."""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.settings.sections import Section
from controller.whatif.sections import ScenarioSections, StoreHoldsSection, SupposedCircuitSection
from topology.problems import Problems

MOST_VARIANTS = 200
_OF_ALL = frozenset({"runs", "seed", "vary"})
_BY_NAME: Mapping[str, type[Section]] = {"circuits": SupposedCircuitSection, "stores": StoreHoldsSection}


def varied(values: Any, vary: Mapping[str, list[Any]], problems: Problems) -> Iterator[tuple[dict[str, object], Any]]:
    """Yield each combination of what is varied, and the file's values with it."""
    count = 1
    for place, options in vary.items():
        count *= len(options)
        if not options:
            problems.at(place).add("need a list of values")
    if count > MOST_VARIANTS:
        problems.add(f"{count} combinations are more than {MOST_VARIANTS}: vary less at once")
    if problems.found:
        return
    for chosen in itertools.product(*vary.values()):
        said = dict(zip(vary, chosen, strict=True))
        changed = copy.deepcopy(values)
        for place, value in said.items():
            _put(changed, place, value, problems.at(place))
        if problems.found:
            return
        yield said, changed


def _put(values: Any, place: str, value: object, problems: Problems) -> None:
    """Put a value in its place, of the file's values; what is no place goes to ``problems``."""
    steps = place.split(".")
    items = {item["name"]: item for item in values.get("workload", ())}
    named = _longest(steps, items)
    if named:
        inside, steps, parts = items[".".join(steps[:named])], steps[named:], None
        if not steps:
            problems.add(f"is all of an item: say which of its keys, such as {place}.bytes")
    elif steps[0] in _OF_ALL:
        problems.add("is the same for all variants; with runs: 3 each of them is drawn from three seeds")
        return
    elif steps[0] in _keys_of(ScenarioSections):
        inside, parts = values, None
    else:
        problems.add(f'there is no section and no workload "{steps[0]}"; there are {", ".join(items)}')
        return
    while steps:
        if not isinstance(inside, dict):
            problems.add(f"cannot be varied: {'.'.join(steps)} would be a key of what has none")
            return
        count = (_longest(steps, inside) or 1) if parts is None else _name_length(steps, parts)
        key, steps = ".".join(steps[:count]), steps[count:]
        if not steps:
            inside[key] = copy.deepcopy(value)
            return
        parts = _BY_NAME.get(key) if inside is values else None
        inside[key] = copy.copy(inside.get(key, {}))  # what an alias of YAML says elsewhere too stays as it is there
        inside = inside[key]


def _longest(steps: Sequence[str], known: Mapping[str, object]) -> int:
    """Return how many of the first steps make a name that is known, which may have dots in it; the most, 0 if none."""
    return next((count for count in range(len(steps), 0, -1) if ".".join(steps[:count]) in known), 0)


def _name_length(steps: Sequence[str], section: type[Section]) -> int:
    """Return how many of the first steps make the name of such a section: what comes after is one of its keys."""
    keys = _keys_of(section)
    return next((count for count in range(len(steps) - 1, 0, -1) if steps[count] in keys), len(steps))


def _keys_of(section: type[Section]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in section.model_fields.items())
