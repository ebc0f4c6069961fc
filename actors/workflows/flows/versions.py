"""Finding the version that a text names: an id, the name of a version, `develop` or `default`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.workflows.flows.kind import DEFAULT, DEVELOP, FLOW_VERSION
from trunkline.store import keys
from trunkline.store.codec import decode

Get = Callable[[str, bytes], bytes | None]
"""Reads a key of a database: of a snapshot, or of the journal, which also knows what is not committed yet."""

_ID: Final = re.compile(r"[0-9A-Fa-f]{24}\Z")


def id_bytes(text: str) -> bytes | None:
    """The bytes of an id; None for a text that is none, such as a template."""
    return bytes.fromhex(text) if _ID.match(text) else None


class VersionFound(NamedTuple):
    """A version: its id, its record and the stored bytes of it. `develop` has 12 zero bytes and an empty record."""

    id: bytes
    doc: Doc
    raw: bytes

    @property
    def name(self) -> str:
        """The name of the version."""
        return DEVELOP if self.id == ROOT else str(self.doc["version"])


_DEVELOP: Final = VersionFound(ROOT, {}, b"")


def version_by_id(get: Get, application: bytes, flow: bytes, id: bytes) -> VersionFound | None:
    """The version of the workflow with this id, None if it has none. The id of the workflow stands for `develop`."""
    if id == flow:
        return _DEVELOP
    raw = records.raw_of(get, FLOW_VERSION, application, id)
    if raw is None:
        return None
    doc: Doc = decode(raw)
    return VersionFound(id, doc, raw) if doc["flowId"] == flow.hex() else None


def find_version(
    get: Get, application: bytes, flow: bytes, record: Doc, named: str | bytes
) -> VersionFound | None:
    """The version that a text names; `record` is that of the workflow. None if there is no such version.

    An id takes precedence over a name.
    """
    if isinstance(named, bytes):
        return version_by_id(get, application, flow, named)
    if named == DEVELOP:
        return _DEVELOP
    if named == DEFAULT:
        return default_version(get, application, flow, record)
    id = id_bytes(named)
    found = None if id is None else version_by_id(get, application, flow, id)
    if found is not None:
        return found
    raw = get(keys.FLOWS, keys.flow_version_key(application, flow, named))
    return None if raw is None else version_by_id(get, application, flow, decode(raw))


def default_version(get: Get, application: bytes, flow: bytes, record: Doc) -> VersionFound:
    """The version that runs."""
    id = record.get("defaultVersionId")
    found = None if id is None else version_by_id(get, application, flow, bytes.fromhex(id))
    return found or _DEVELOP


def no_version(named: str | bytes) -> NotFound:
    """The error for a version that does not exist."""
    shown = named.hex() if isinstance(named, bytes) else repr(named[:300])
    return NotFound(f"This workflow has no version {shown}.")
