"""Selection of workflows for a call that deletes them together with what triggers them."""

from __future__ import annotations

from trunkline.actors.flows.kind import FLOW
from trunkline.actors.flows.presenter import read_definition
from trunkline.actors.records import records
from trunkline.actors.records.listing import ids_of_facet
from trunkline.actors.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message


class SelectTriggered(Message, frozen=True):
    """The ids of the workflows whose editable state has a trigger of this type with this key."""

    application: bytes
    type: str
    key: str


class SelectOfClass(Message, frozen=True):
    """The ids of the workflows of a class."""

    application: bytes
    flow_class: str


def select_triggered(reading: Reading, message: SelectTriggered) -> list[bytes]:
    """The answer to `SelectTriggered`, in the order of ids."""
    snapshot, application, key = reading.snapshot, message.application, message.key.lower()
    reading.check_time(is_long=records.total(snapshot, FLOW, application) > SCAN_INLINE_MAX // 8)
    found = []
    for flow, _ in records.scan(snapshot, FLOW, application):
        triggers = read_definition(snapshot, application, flow, ROOT).get("triggers", ())
        if any(each["type"] == message.type and each.get("key", "").lower() == key for each in triggers):
            found.append(flow)
    return found


def select_of_class(reading: Reading, message: SelectOfClass) -> list[bytes]:
    """The answer to `SelectOfClass`, by name."""
    return list(ids_of_facet(reading.snapshot, FLOW, message.application, message.flow_class))
