"""What application templates add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.portability.templates.apply import APPLY_TEMPLATE, CREATE_FROM_TEMPLATE
from trunkline.actors.portability.templates.catalogue import load_catalogue


def _parts(start: Start) -> Iterator[object]:
    yield load_catalogue(start.settings.templates_dir, start.settings.limits)


FEATURE: Final = Feature(
    parts=_parts,
    jobs=(APPLY_TEMPLATE, CREATE_FROM_TEMPLATE),
)
