"""What commands to devices add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.fleet.devices.commands.links import Links


def _parts(start: Start) -> Iterator[object]:
    yield Links(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(Links,),
    moved=(Links,),
)
