"""The export and import of the globals of an application, which are a part of its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.portable import Item, Portable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import Global, GlobalPatch, PatchGlobals

if TYPE_CHECKING:
    from trunkline.actors.core.records.export_lines import Lines
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot


def _read(snapshot: Snapshot, application: bytes) -> Lines:
    found = records.find(snapshot, APPLICATION, ROOT, application)
    for each in () if found is None else found.doc.get("globals", ()):
        yield {"body": each}


def _make(item: Item) -> Iterator[Ask]:
    patch = msgspec.convert(msgspec.to_builtins(item.body), GlobalPatch)
    yield Ref("application", ROOT, item.application), PatchGlobals(body=[patch])


GLOBALS: Final = Portable(
    name="Global",
    created_by="application.patch",
    changed_by="application.patch",
    body=Global,
    has_id=False,
    read=_read,
    make=_make,
    same=("key",),
)
