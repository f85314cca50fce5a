"""What sections of the configuration are made of: no unknown keys, and quantities with their units."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator

from topology import units


def _text(value: Any) -> str:
    """Return what YAML has read as a time as the text it was; YAML takes times without quotes for its own."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


Instant = Annotated[int, BeforeValidator(lambda text: units.instant_us(_text(text)))]
Rate = Annotated[int, BeforeValidator(lambda text: units.rate_bps(str(text)))]
Duration = Annotated[int, BeforeValidator(lambda text: units.duration_us(str(text)))]
Size = Annotated[int, BeforeValidator(lambda text: units.size_bytes(str(text)))]
Fraction = Annotated[int, BeforeValidator(lambda text: units.fraction_ppm(str(text)))]


def within(least: str, most: str) -> BeforeValidator:
    """Return what reads a duration, and refuses one that is not between two others."""
    bounds_us = range(units.duration_us(least), units.duration_us(most) + 1)

    def read(value: Any) -> int:
        duration_us = units.duration_us(str(value))
        if duration_us not in bounds_us:
            raise ValueError(f"must be between {least} and {most}")
        return duration_us

    return BeforeValidator(read)


def _no_bool(value: Any) -> Any:
    """Return what is written for a number.

    Raises:
        ValueError: it is yes or no, which Python counts as 1 and 0.
    """
    if isinstance(value, bool):
        raise ValueError("is not a whole number")  # noqa: TRY004 what is wrong is the file
    return value


Count = Annotated[int, BeforeValidator(_no_bool)]


def _from_folder(path: Path, info: ValidationInfo) -> Path:
    """Return a path; a relative one begins at the ``folder`` of the validation's context."""
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / path


FilePath = Annotated[Path, AfterValidator(_from_folder)]


class Section(BaseModel):
    """Unknown keys are refused, values do not change; a text has no NUL, which is in no path, name or address."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, value: Any) -> Any:
        """Return what is written; of a list, each text is looked at.

        Raises:
            ValueError: it has a NUL, which the system would not take.
        """
        if any(isinstance(text, str) and "\0" in text for text in (value if isinstance(value, list) else [value])):
            raise ValueError("has a NUL character, which no path, name or address has")
        return value
