"""What the owner of a record is told of its content."""

from __future__ import annotations

from trunkline.actors.core.values.structs import Message
from trunkline.store.object_store import Stored


class CompleteUpload(Message, frozen=True):
    """A file was uploaded: `stored` is the content of a record of `kind`.

    The actor completes the record and keeps the content (`Contents.keep`). It refuses with NotFound if there is no such
    record, and with Invalid if the record has another content by now. If the record is complete with this content,
    nothing changes; it is refused if its hash is not that of `stored`.
    """

    kind: str
    record: bytes
    content: bytes
    stored: Stored
