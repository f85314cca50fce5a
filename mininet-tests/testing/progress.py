"""How far an experiment is: a line of its output that ``mininet-tests/run`` reads, from in the lab too."""

MARK = "progress: "


def tell(share: float, what: str) -> None:
    """Say which part of the whole time, 0 to 1, has passed, and what is being done."""
    print(f"{MARK}{share:.3f} {what}", flush=True)


def heard(line: str) -> tuple[float, str] | None:
    """Return the share and the words of a line that ``tell`` has written; None for any other line.

    >>> heard("progress: 0.250 the image is under way")
    (0.25, 'the image is under way')
    >>> heard("progress: well")
    """
    share, _, what = line.removeprefix(MARK).partition(" ")
    try:
        return (float(share), what) if line.startswith(MARK) else None
    except ValueError:
        return None


def placed(line: str, begin: float, end: float) -> str:
    """Return a line of a run that is a part of another one: its share is of that, from ``begin`` to ``end``.

    >>> placed("progress: 0.500 the image is under way", 0.2, 0.4), placed("lab: Linux", 0.2, 0.4)
    ('progress: 0.300 the image is under way', 'lab: Linux')
    """
    told = heard(line)
    return line if told is None else f"{MARK}{begin + told[0] * (end - begin):.3f} {told[1]}"
