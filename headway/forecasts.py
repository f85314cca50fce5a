"""Made from the API's description by contrib/api_client.py: what would be."""

from typing import Any, Literal, TypedDict

# A promise that would be broken.
BreaksOut = TypedDict(
    "BreaksOut",
    {
        "kind": Literal["reservation", "announcement"],
        "id": str,
        "why": str,
        "promised": str | None,
        "done": str | None,
        "lacks_s": float,
    },
)

# What breaks if a circuit dies at this moment and stays dead.
DeathOut = TypedDict(
    "DeathOut",
    {
        "circuit": str,
        "at": str,
        "until": str,
        "unlike": list[str],
        "breaks": list[BreaksOut],
        "anyway": list[BreaksOut],
    },
)

# The site as it is, whole.
ScenarioOut = TypedDict(
    "ScenarioOut",
    {
        "version": str,
        "at": str,
        "unlike": list[str],
        "site": dict[str, Any],
    },
)
