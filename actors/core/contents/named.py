"""Which contents the records of a store name, for backups and for the check of a data directory."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import StoreError
from trunkline.store.object_store import ObjectStore, Stored
from trunkline.store.snapshot import Snapshot

PIECE_BYTES: Final = 1 << 20


def name_of(application: bytes, content: bytes) -> str:
    """The name of a content in the object store."""
    return f"{application.hex()}/{content.hex()}"


def contents_of(
    kinds: Iterable[Kind], snapshot: Snapshot, application: bytes
) -> Iterator[tuple[str, Stored]]:
    """Yield the name, size and hash of each content that a record of an application names."""
    for kind in kinds:
        if kind.contents is not None:
            for _, doc in records.scan(snapshot, kind, application):
                for content, stored in kind.contents(doc):
                    yield name_of(application, content), stored


def all_contents(
    kinds: Mapping[str, Kind], snapshot: Snapshot, void: Container[bytes] = ()
) -> Iterator[tuple[str, Stored]]:
    """Yield the name, size and hash of each content that a record of the store names.

    Those of applications that are `void` are left out: the contents belong to another partition, which may have
    removed them.
    """
    for application in applications(snapshot):
        if application not in void:
            yield from contents_of(kinds.values(), snapshot, application)


def content_problems(
    kinds: Mapping[str, Kind], snapshot: Snapshot, contents: ObjectStore, void: Container[bytes] = ()
) -> Iterator[str]:
    """Yield a sentence for each content that is missing or damaged, and for each count of bytes that is wrong.

    `void` is as in `all_contents`.
    """
    for application in applications(snapshot):
        if application in void:
            continue
        size_bytes = 0
        for name, stored in contents_of(kinds.values(), snapshot, application):
            size_bytes += stored.size_bytes
            problem = _problem(contents, name, stored)
            if problem is not None:
                yield f"contents {name}: {problem}"
        counted = counted_bytes(snapshot.get(keys.COUNTS, keys.content_count_key(application)))
        if counted != size_bytes:
            yield (f"contents of {application.hex()}: files have {size_bytes} bytes, {counted} are counted.")


def applications(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the ids of all applications."""
    prefix = keys.record_prefix(APPLICATION.name, ROOT)
    for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        yield bytes(key[-keys.ID_BYTES :])


def counted_bytes(raw: bytes | None) -> int:
    """The bytes of the complete contents of an application, from its count."""
    counted: int = 0 if raw is None else decode(raw).get("bytes", 0)
    return counted


def _problem(contents: ObjectStore, name: str, stored: Stored) -> str | None:
    try:
        content = contents.open(name, stored)
        if content is None:
            return "the content is missing"
        with content:
            while content.read(PIECE_BYTES):
                pass
    except StoreError as failure:
        return str(failure)
    return None
