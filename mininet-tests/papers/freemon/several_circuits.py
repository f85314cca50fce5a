"""Several circuits at once, on the page of results: from the figures that are published of them."""

import json
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).resolve().parents[3] / "docs" / "results"
AT_40, AT_FIFTH = "at 40 Mbit/s: ", "at a fifth: "


def section(published: Path = PUBLISHED) -> str:
    """Return what lanes, MPTCP, SCTP and a striped mover come to, in a table."""
    lanes, pftp = (json.loads((published / f"{name}.json").read_text()) for name in ("lanes", "pftp"))
    rows = [*_lanes(lanes["figures"]), *_own_paths(lanes["figures"]), *_pftp(pftp["figures"])]
    return "\n".join(
        [
            "## Several circuits at once",
            "",
            "One transfer over two circuits, the second half as fast, by unmodified programs whose connections are",
            "dealt to lanes; the same by protocols with paths of their own; and a mover that stripes in lock step, as",
            "PFTP does. In full, with what falls short and why: [lanes](lanes.md), [what a mover",
            "needs](what-if.md#what-a-mover-needs). The figures: [lanes.json](results/lanes.json),",
            "[pftp.json](results/pftp.json).",
            "",
            "| | by the plan or the model | measured |",
            "|---|---|---|",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
        ]
    )


def _lanes(seen: dict[str, Any]) -> list[tuple[str, str, str]]:
    def rest(case: str) -> tuple[str, str]:
        return _s(seen["rest_by_the_plan_s"][case]), _s(seen["rest_took_s"][case])

    whole = f"curl, {seen['size_bytes'] / 1e9:g} GB over both circuits"
    return [
        (whole, _s(seen["by_the_plan_s"]["curl, undisturbed"]), _s(seen["took_s"]["curl, undisturbed"])),
        ("what is left of it when `north` dies midway", *rest("curl, north dies")),
        ("what is left of it when `south` dies midway", *rest("curl, south dies")),
    ]


def _own_paths(seen: dict[str, Any]) -> list[tuple[str, str, str]]:
    def undisturbed(case: str) -> tuple[str, str]:
        return _s(seen["by_the_plan_s"][case]), _s(seen["took_s"][case])

    def still(case: str) -> str:
        return _s(sum(lasts_s for _, lasts_s in seen["holes_s"][AT_40 + case]))

    return [
        ("curl over MPTCP, at a fifth of rates and size", *undisturbed(f"{AT_FIFTH}mptcp, undisturbed")),
        ("without a byte when the sender's interface dies, MPTCP", "-", still("mptcp, interface dies")),
        (
            "SCTP, one path at a time, held by a meter; by the plan both lanes",
            *undisturbed(f"{AT_40}sctp, undisturbed"),
        ),
        ("without a byte likewise, SCTP by RFC 7829", "1 s", still("sctp, interface dies")),
        ("without a byte likewise, SCTP by RFC 4960", "63 s", still("sctp-rfc4960, interface dies")),
    ]


def _pftp(seen: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = {one["streams"]: one for one in seen["figure_11_in_lock_step"]}
    return [
        (
            f"four lanes, PFTP's lock step, {count} stream{'s' if count > 1 else ''} (figure 11 of Wertz et al.)",
            f"{rows[count]['model_mb_per_s']:g} MB/s",
            f"{rows[count]['mb_per_s']:g} MB/s",
        )
        for count in (min(rows), max(rows))
    ]


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"
