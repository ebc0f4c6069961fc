"""Revisions of records: entity tags and the preconditions of requests."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

from trunkline.actors.records.kind import Doc
from trunkline.actors.values.errors import PreconditionFailed


class Found(NamedTuple):
    """A record as it was read: `raw` are the stored bytes, from which the entity tag is computed."""

    id: bytes
    doc: Doc
    raw: bytes

    @property
    def etag(self) -> str:
        """The entity tag of this revision."""
        return etag_of(self.raw)


class WithEtag(msgspec.Struct, frozen=True):
    """An answer with a separate entity tag, for rows: all their field names belong to the user, so it cannot be one."""

    value: Any
    etag: str


def etag_of(raw: bytes) -> str:
    """The strong entity tag of a record: equal tags mean equal stored bytes."""
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def check_match(if_match: str | None, raw: bytes) -> None:
    """Raise `PreconditionFailed` if `If-Match` names a revision other than the one with these stored bytes."""
    if if_match is not None:
        check_etag(if_match, etag_of(raw))


def check_etag(if_match: str, etag: str) -> None:
    """`check_match` for a revision with this entity tag."""
    if if_match.strip() == "*":
        return
    wanted = {tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")}
    if etag not in wanted:
        raise PreconditionFailed(
            f"If-Match: the record has changed; its _etag is {etag}. Read it again before you change it."
        )
