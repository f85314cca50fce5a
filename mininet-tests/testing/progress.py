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
