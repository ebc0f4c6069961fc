"""Changes of users and groups that depend on what is stored: single tags, and single members of a group."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import Creator, PatchRecord
from trunkline.actors.core.records.resource import Resources, missing
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.structs import Body, Message


class AmendRecord(Message, frozen=True):
    """Change a record as a patch does, and beside the fields of `body` entries of others.

    `entries` has for each such field, as it is called in the API, what is set. In a map of texts that is a text, or
    None for an entry that is removed. In a list of ids it is True for one that is added, and None.
    """

    resource: str
    record: bytes
    body: Body
    by: Creator
    entries: dict[str, dict[str, Any]]


def patch_of(owner: Actor, message: AmendRecord) -> PatchRecord:
    """The patch of the whole fields. Raises `NotFound` and `Invalid`."""
    kind = owner.system.component(Resources)[message.resource].kind
    found = records.find(Staged(owner), kind, owner.ref.id, message.record)
    if found is None:
        raise missing(kind, message.record)
    fields = msgspec.to_builtins(message.body)
    for name, entries in message.entries.items():
        old = found.doc[name]
        new = {**(old if isinstance(old, dict) else dict.fromkeys(old, True)), **entries}
        left = {key: value for key, value in new.items() if value is not None}
        fields[name] = left if isinstance(old, dict) else list(left)
    try:
        body = msgspec.convert(fields, type(message.body))
    except msgspec.ValidationError as error:
        raise invalid(error, "body", type(message.body), fields) from None
    return PatchRecord(resource=message.resource, record=message.record, body=body, by=message.by)
