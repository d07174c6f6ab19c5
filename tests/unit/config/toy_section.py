"""A section of lamps, as a new section is added: this module and one line of the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from routes.keys.addresses import HOST_PORT
from routes.keys.table import key, named
from routes.keys.values import NAME, STRONG_SECRET, whole
from routes.section_registry import Section

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["SECTION", "LampConfig", "LampsConfig"]


@dataclass(frozen=True, slots=True)
class LampConfig:
    """`lamps.NAME.*`: one lamp."""

    name: str
    colour: str = key("colour", NAME, "Colour of the lamp.", example="red", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LampsConfig:
    """`lamps.*`: all lamps."""

    each: tuple[LampConfig, ...] = named("lamps", LampConfig)
    watts: int = key("lamps.watts", whole(1, 60), "Power of a lamp.", default="40")
    secret: str | None = key("lamps.key", STRONG_SECRET, "Key to the switch.", secret=True)
    switch: tuple[str, int] | None = key("lamps.switch", HOST_PORT, "Address of the switch.")


def not_too_bright(settings: Settings) -> None:
    """Checks the power of all lamps together."""
    if len(settings.names("lamps")) * (settings.get("lamps.watts") or 0) > 100:
        settings.fault("lamps.watts", "", "too bright", "remove a lamp")


SECTION = Section(
    about="Lamps that show that the bridge runs.",
    noun="lamp",
    settings=LampsConfig,
    checks=(not_too_bright,),
    reserved={"lamps.shape": ("round", "others do not fit")},
    notes=("Lamps burn.\n",),
    listens=("lamps.switch",),
)
