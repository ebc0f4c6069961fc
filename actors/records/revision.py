"""Revisions of records: entity tags and the preconditions that name them."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from trunkline.actors.records.kind import Doc
from trunkline.actors.values.errors import PreconditionFailed


class Found(NamedTuple):
    """A record as it was read: `raw` are the stored bytes, of which the entity tag is made."""

    id: bytes
    doc: Doc
    raw: bytes

    @property
    def etag(self) -> str:
        """The entity tag of this revision."""
        return etag_of(self.raw)


class Tagged(NamedTuple):
    """An answer whose entity tag has no place in it: the fields of a row are all its owner's."""

    value: Any
    etag: str


def etag_of(raw: bytes) -> str:
    """A strong entity tag: equal tags mean equal stored bytes."""
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def check_match(if_match: str | None, raw: bytes) -> None:
    """Raise `PreconditionFailed` where the caller's `If-Match` names another revision than the stored one."""
    if if_match is not None:
        check_tag(if_match, etag_of(raw))


def check_tag(if_match: str, etag: str) -> None:
    """The same for a revision of which the entity tag is known."""
    if if_match.strip() == "*":
        return
    wanted = {tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")}
    if etag not in wanted:
        raise PreconditionFailed(
            f"If-Match: the record has changed; its _etag is {etag}. Read it again before you change it."
        )
