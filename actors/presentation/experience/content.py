"""The endpoints and views of the versions of an experience.

Those of the version `develop` are records that are changed. A named version has copies of them, which never change;
a copy is found by the id of its version and the id of what it was copied from.

The functions read from a snapshot, or from the journal, which also has uncommitted writes of earlier turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import KeyRange, index_range
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Source, Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.presentation.experience.kind import (
    DEVELOP,
    ENDPOINT,
    ENDPOINT_COPY,
    GROUP,
    VERSION,
    VIEW,
    VIEW_COPY,
)
from trunkline.actors.presentation.experience.terms import page_of
from trunkline.store import keys
from trunkline.store.codec import decode, encode

DEVELOP_NAME: Final = "develop"
COPIES: Final[Mapping[str, Kind]] = {ENDPOINT.name: ENDPOINT_COPY, VIEW.name: VIEW_COPY}
"""The kind of the copies in named versions, by the kind of what is copied."""

_CONTENT: Final = (ENDPOINT, VIEW)
_ID: Final = re.compile(r"[0-9A-Fa-f]{24}")


# Versions.


def find_version(source: Source, application: bytes, named: str | bytes) -> Found:
    """A version by its id or name. The id of `develop` is that of the application. Raises `NotFound`."""
    if named in (DEVELOP_NAME, application, application.hex()):
        return _develop(source, application)
    if isinstance(named, bytes) or looks_like_id(named):
        id = named if isinstance(named, bytes) else bytes.fromhex(named)
        found = records.find(source, VERSION, application, id)
    else:
        found = version_of_name(source, application, named)
    if found is None:
        text = named.hex() if isinstance(named, bytes) else named[:100]
        raise NotFound(f"There is no {VERSION.noun} {text} here.")
    return found


def looks_like_id(text: str) -> bool:
    """Whether a text is an id, so that it cannot be a name."""
    return _ID.fullmatch(text) is not None


def version_of_name(source: Source, application: bytes, name: str) -> Found | None:
    """A named version by its name; None if there is none."""
    for id in _ids_in(source, index_range(VERSION, application, "version", keys.sortable(name))):
        found = records.find(source, VERSION, application, id)
        # The index has only the beginning of a long name.
        if found is not None and found.doc["version"] == name:
            return found
    return None


def check_version(source: Source, application: bytes, name: str) -> None:
    """Raise `Invalid` unless a domain or a slug may name this version."""
    if name != DEVELOP_NAME and version_of_name(source, application, name) is None:
        raise Invalid(
            f"version: there is no version {name} in this application; give develop or the name of one."
        )


def _develop(source: Source, application: bytes) -> Found:
    """The version `develop`, with the defaults of the application as long as its settings were never changed."""
    found = records.find(source, DEVELOP, application, application)
    if found is not None:
        return found
    owner = records.find(source, APPLICATION, ROOT, application)
    if owner is None:
        raise NotFound(f"There is no application {application.hex()} here.")
    doc: Doc = {
        "version": DEVELOP_NAME,
        "creationDate": owner.doc["creationDate"],
        "lastUpdated": owner.doc["creationDate"],
        "endpointDefaultCors": owner.doc.get("endpointDefaultCors", False),
    }
    return Found(application, doc, encode(doc))


# Their content. `version` is the id of a named version, None for `develop`.


def copies_range(kind: Kind, application: bytes, version: bytes) -> KeyRange:
    """The index keys of all copies of a kind in a named version."""
    return index_range(COPIES[kind.name], application, "of", keys.sortable_start(f"{version.hex()}/"))


def find_in(source: Source, kind: Kind, application: bytes, version: bytes | None, id: bytes) -> Found | None:
    """An endpoint or a view of a version; None if there is none."""
    if version is None:
        return records.find(source, kind, application, id)
    copy = COPIES[kind.name]
    of = keys.sortable(f"{version.hex()}/{id.hex()}")
    for copy_id in _ids_in(source, index_range(copy, application, "of", of)):
        found = records.find(source, copy, application, copy_id)
        return None if found is None else as_original(found)
    return None


def all_in(source: Source, kind: Kind, application: bytes, version: bytes | None) -> Iterator[Found]:
    """All endpoints or views of a version, in the order of ids."""
    if version is None:
        yield from records.all_of_kind(source, kind, application)
        return
    for copy_id in _ids_in(source, copies_range(kind, application, version)):
        found = records.find(source, COPIES[kind.name], application, copy_id)
        if found is not None:
            yield as_original(found)


def as_original(copy: Found) -> Found:
    """A copy with the id of what it was copied from."""
    return Found(bytes.fromhex(copy.doc["of"][-24:]), copy.doc, copy.raw)


def _ids_in(source: Source, range: KeyRange) -> list[bytes]:
    assert range.high is not None
    return [bytes(key[-keys.ID_BYTES :]) for key, _ in source.range(range.db, range.low, range.high)]


def replace_content(owner: Actor, version: bytes | None, source: bytes | None, now_ms: int) -> None:
    """Stage the content of `source` as that of another version, in place of what it had."""
    if version is not None:
        write_copies(owner, version, source, now_ms)
    else:
        assert source is not None
        _restore(owner, source, now_ms)


def _restore(owner: Actor, source: bytes, now_ms: int) -> None:
    """Stage the content of a named version as that of `develop`. Groups that were deleted since are left out."""
    application, journal = owner.ref.id, Staged(owner)
    before = {
        kind: {each.id: each.doc for each in all_in(journal, kind, application, None)} for kind in _CONTENT
    }
    after = {
        kind: {each.id: each.doc for each in all_in(journal, kind, application, source)} for kind in _CONTENT
    }
    groups: dict[str, Found] = {}
    for doc in (*before[ENDPOINT].values(), *after[ENDPOINT].values()):
        for id in doc["experienceGroupIds"]:
            found = groups.get(id) or records.find(journal, GROUP, application, bytes.fromhex(id))
            if found is not None:
                groups[id] = found
    for doc in after[ENDPOINT].values():
        doc["experienceGroupIds"] = [id for id in doc["experienceGroupIds"] if id in groups]
    for kind in _CONTENT:
        for id, old in before[kind].items():
            if id not in after[kind]:
                records.erase(owner, kind, application, id, old)
        for id, doc in after[kind].items():
            del doc["of"]
            old_doc = before[kind].get(id)
            if old_doc != doc:
                records.write(owner, kind, application, id, old_doc, {**doc, "lastUpdated": now_ms})
    for group_id, group in groups.items():
        members = [id.hex() for id, doc in after[ENDPOINT].items() if group_id in doc["experienceGroupIds"]]
        if members != group.doc["experienceEndpointIds"]:
            doc = {**group.doc, "experienceEndpointIds": members}
            records.write(owner, GROUP, application, group.id, group.doc, doc)


def write_copies(owner: Actor, version: bytes, source: bytes | None, now_ms: int) -> None:
    """Stage copies of the content of `source` as the content of a named version, in place of what it had.

    Raises `Invalid` if it has more bytes than a version may have.
    """
    application, journal = owner.ref.id, Staged(owner)
    content = {kind.name: list(all_in(journal, kind, application, source)) for kind in _CONTENT}
    size = sum(len(each.raw) for found in content.values() for each in found)
    most = owner.system.limits.experience_version_bytes_max
    if size > most:
        raise Invalid(
            f"The endpoints and views have {size} bytes; a version takes at most {most}. Make some shorter."
        )
    erase_copies(owner, version)
    for name, found in content.items():
        for each in found:
            doc = {**each.doc, "of": f"{version.hex()}/{each.id.hex()}"}
            records.write(owner, COPIES[name], application, owner.system.ids.new(now_ms), None, doc)


def erase_copies(owner: Actor, version: bytes) -> None:
    """Stage the removal of the content of a named version."""
    for kind in _CONTENT:
        copy = COPIES[kind.name]
        for id in _ids_in(Staged(owner), copies_range(kind, owner.ref.id, version)):
            found = records.find(Staged(owner), copy, owner.ref.id, id)
            if found is not None:
                records.erase(owner, copy, owner.ref.id, id, found.doc)


# Checks of records.


def check_number(total: bytes | None, most: int, nouns: str) -> None:
    """Raise `Invalid` if a stored count has reached its bound."""
    if total is not None and decode(total).get("n", 0) >= most:
        raise Invalid(f"The experience has {most} {nouns} already, which is the limit; delete one first.")


def check_address(field: str, reply: Doc | None) -> None:
    """Raise `Invalid` for a redirection to nowhere."""
    if reply is not None and reply["type"] == "redirect" and not reply["value"].strip():
        raise Invalid(f"{field}.value: is empty; give the address to which visitors are sent, such as /home.")


def check_reply(owner: Actor, field: str, reply: Doc | None, version: bytes | None = None) -> None:
    """Raise `Invalid` unless the page with which a stored reply answers is a page of the version."""
    if not has_page(owner, reply, version):
        raise Invalid(
            f"{field}.value: {str(page_of(reply))[:100]!r} is not the id of a page of this version of the experience."
        )


def has_page(owner: Actor, reply: Doc | None, version: bytes | None = None) -> bool:
    """Whether the page with which a stored reply answers, if it does with one, is a page of the version."""
    page = page_of(reply)
    if page is None:
        return True
    found = None
    if looks_like_id(page):
        found = find_in(Staged(owner), VIEW, owner.ref.id, version, bytes.fromhex(page))
    return found is not None and found.doc["viewType"] == "page"
