"""Revisions of records: entity tags and the preconditions of requests.

A revision is a hash of the stored bytes of a record; `_etag` shows it. The entity tag of an answer is the revision and
a hash of the whole answer, because an answer may also show counts, names of other records, or another shape of the
record. So equal tags mean equal answers, and the tag of any answer also names the revision for `If-Match`.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import PreconditionFailed


class Found(NamedTuple):
    """A record as it was read: `raw` are the stored bytes, from which the revision is computed."""

    id: bytes
    doc: Doc
    raw: bytes

    @property
    def revision(self) -> str:
        """The revision that was read."""
        return revision_of(self.raw)


class WithEtag(msgspec.Struct, frozen=True):
    """An answer with a separate entity tag, for rows: all their field names belong to the user, so it cannot be one.

    The tag depends on all that the row shows: its bytes and the columns. It is also the revision of the row.
    """

    value: Any
    etag: str


def revision_of(raw: bytes) -> str:
    """The revision of a record: equal revisions mean equal stored bytes."""
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def answer_etag(revision: str, answer: bytes) -> str:
    """The strong entity tag of an answer that shows this revision."""
    return f"{revision}-{hashlib.blake2b(answer, digest_size=8).hexdigest()}"


def check_match(if_match: str | None, raw: bytes) -> None:
    """Raise `PreconditionFailed` if `If-Match` names a revision other than the one with these stored bytes."""
    if if_match is not None:
        check_revision(if_match, revision_of(raw))


def check_revision(if_match: str, revision: str) -> None:
    """`check_match` for a record of this revision."""
    if if_match.strip() == "*":
        return
    tags = (tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(","))
    if revision not in {tag.partition("-")[0] for tag in tags}:
        raise PreconditionFailed(
            f"If-Match: the record has changed; its _etag is {revision}. Read it again before you change it."
        )
