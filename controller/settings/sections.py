"""What sections of the configuration are made of: no unknown keys, and quantities with their units."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from topology import units


def _text(value: Any) -> str:
    """Return what YAML has read as a time as the text it was; YAML takes times without quotes for its own."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


Instant = Annotated[int, BeforeValidator(lambda text: units.instant_us(_text(text)))]
Rate = Annotated[int, BeforeValidator(lambda text: units.rate_bps(str(text)))]
Duration = Annotated[int, BeforeValidator(lambda text: units.duration_us(str(text)))]
Size = Annotated[int, BeforeValidator(lambda text: units.size_bytes(str(text)))]
Fraction = Annotated[int, BeforeValidator(lambda text: units.fraction_ppm(str(text)))]


class Section(BaseModel):
    """Unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
