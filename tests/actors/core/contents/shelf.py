"""An owner of contents for tests: a shelf has files, each with at most one complete content."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from tests.actors.house import START_MS, House, ManualClock
from tests.placement import hold_placement
from trunkline.actors import boot, catalogue
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.messages import CompleteUpload
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind, NamedContents
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.object_store import Stored


def _contents(doc: Doc) -> NamedContents:
    if "sha256" not in doc:
        return ()
    return ((doc["content"], Stored(doc["size"], doc["sha256"])),)


BOOK: Final = Kind(name="book", noun="book", indexes=(), contents=_contents, counted_as=None, audited_as=None)
KINDS: Final = {**catalogue.KINDS, BOOK.name: BOOK}


class Order(Message, frozen=True):
    """Make a book whose content is to be uploaded until a time; it replaces the content of a complete one."""

    record: bytes
    content: bytes
    expires_ms: int


class Drop(Message, frozen=True):
    """Delete a book."""

    record: bytes


class Shelf(Actor):
    """The books of one application."""

    kind = "shelf"
    noun = "shelf"

    def load(self) -> bool:
        return True

    def on_order(self, message: Order) -> None:
        contents, old = self.system.component(Contents), self._book(message.record)
        if old is not None:
            contents.discard(self, old["content"], old.get("size", 0))
        contents.reserve(self, message.content, message.expires_ms)
        records.write(self, BOOK, self.ref.parent, message.record, old, {"content": message.content})

    def on_complete_upload(self, message: CompleteUpload) -> None:
        old = self._book(message.record)
        if old is None:
            raise NotFound("There is no such book.")
        if (
            old["content"] != message.content
            or old.get("sha256", message.stored.sha256) != message.stored.sha256
        ):
            raise Invalid("content: the book has another one.")
        if "sha256" in old:
            return
        self.system.component(Contents).keep(self, message.content, message.stored.size_bytes)
        new = {**old, "size": message.stored.size_bytes, "sha256": message.stored.sha256}
        records.write(self, BOOK, self.ref.parent, message.record, old, new)

    def on_drop(self, message: Drop) -> None:
        old = self._book(message.record)
        assert old is not None
        self.system.component(Contents).discard(self, old["content"], old.get("size", 0))
        records.erase(self, BOOK, self.ref.parent, message.record, old)

    def _book(self, id: bytes) -> Doc | None:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(BOOK.name, self.ref.parent, id))
        return None if raw is None else decode(raw)


@asynccontextmanager
async def library(path: Path, *, limits: Limits | None = None) -> AsyncIterator[House]:
    """A system on `path` with an application and its shelf, in which nobody sweeps but the test."""
    clock = ManualClock()
    settings = Settings(data_dir=str(path), limits=limits or Limits.off())
    with boot.opened(settings, clock) as system:
        system._turns.kinds[Shelf.kind] = Shelf
        hold_placement(system, KINDS)
        async with trio.open_nursery() as nursery:
            await nursery.start(system.run)
            ref = Ref("application", ROOT, system.ids.new(START_MS))
            await system.ask(ref, CreateApplication(body=ApplicationPost(name="library"), user=bytes(12)))
            yield House(system, clock, ref.id)
            nursery.cancel_scope.cancel()
