"""Selection of all workflows of a class, for the deletion of an experience with its workflows."""

from __future__ import annotations

from trunkline.actors.flows.kind import FLOW
from trunkline.actors.records.listing import ids_of_facet
from trunkline.actors.records.reading import Reading
from trunkline.actors.values.structs import Message


class SelectOfClass(Message, frozen=True):
    """The ids of the workflows of a class."""

    application: bytes
    flow_class: str


def select_of_class(reading: Reading, message: SelectOfClass) -> list[bytes]:
    """The answer to `SelectOfClass`, by name."""
    return list(ids_of_facet(reading.snapshot, FLOW, message.application, message.flow_class))
