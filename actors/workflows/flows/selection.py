"""Selection of the workflows of a class, for what is done with an experience as a whole."""

from __future__ import annotations

from trunkline.actors.core.records import records
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.values.structs import Message
from trunkline.actors.workflows.flows.kind import FLOW


class SelectOfClass(Message, frozen=True):
    """The ids of the workflows of a class, of all or of those with a name."""

    application: bytes
    flow_class: str
    name: str | None = None


def select_of_class(reading: Reading, message: SelectOfClass) -> list[bytes]:
    """The answer to `SelectOfClass`, by name."""
    ids = ids_of_facet(reading.snapshot, FLOW, message.application, message.flow_class)
    if message.name is None:
        return list(ids)
    reading.check_time(is_long=records.total(reading.snapshot, FLOW, message.application) > SCAN_INLINE_MAX)
    found = (records.find(reading.snapshot, FLOW, message.application, id) for id in ids)
    return [each.id for each in found if each is not None and each.doc["name"] == message.name]
