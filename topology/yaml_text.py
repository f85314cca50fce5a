"""YAML as people write it, read into plain values; whatever PyYAML stumbles over is one error."""

import yaml


class NotYaml(ValueError):
    """A text that is not YAML, or not with values that there are."""


def values_of(text: str) -> object:
    """Return what a YAML text says, in plain values.

    >>> values_of("{a: [1, b]}")
    {'a': [1, 'b']}

    Raises:
        NotYaml: in one line, what is wrong. PyYAML's own errors are not all: a date in month 13 is a ValueError to it,
            ``!!int ''`` an IndexError, ``!!bool x`` a KeyError, ``!!timestamp x`` an AttributeError, and very deep
            nesting a RecursionError.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise NotYaml(f"is not YAML: {words}") from error
