"""The deletion of an experience: everything of it, or all but what is to be kept, a part in each turn.

A part is small, so that other calls of the application are handled between two parts. If the server stops meanwhile,
the rest is still there, and the call can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Message, Query
from trunkline.actors.presentation.experience.content import erase_copies
from trunkline.actors.presentation.experience.kind import (
    DEVELOP,
    DOMAIN,
    ENDPOINT,
    GROUP,
    SLUG,
    USER,
    VERSION,
    VIEW,
)
from trunkline.actors.presentation.experience.relations import (
    ENDPOINTS_OF_GROUP,
    GROUPS_OF_ENDPOINT,
    GROUPS_OF_USER,
    USERS_OF_GROUP,
    Relation,
    unrelate,
)
from trunkline.actors.presentation.experience.terms import REPLIES, page_of
from trunkline.store import keys

_REMOVED_BYTES_MAX: Final = 1024 * 1024
"""Bytes that one turn of a deletion writes: some 10 ms of the event loop, 70 ms for a large version."""


class RemovalChoice(Query, frozen=True):
    """What of an experience is kept. Named versions and workflows are kept unless the call says otherwise."""

    keep_users: bool = False
    keep_groups: bool = False
    keep_slugs: bool = False
    keep_domains: bool = False
    remove_versions: bool = False
    keep_views: bool = False
    keep_endpoints: bool = False
    remove_workflows: bool = False


class RemoveSome(Message, frozen=True):
    """Remove a part of what is to be removed of an experience; the answer is whether there may be more."""

    query: RemovalChoice


def remove_some(owner: Actor, choice: RemovalChoice) -> bool:
    """Stage the removal of some records; false if there are none left. Raises `Invalid` if what is kept needs them."""
    _check(owner, choice)
    limits = owner.system.limits
    for kind, relations in _removed(choice):
        prefix = keys.record_prefix(kind.name, owner.ref.id)
        # The snapshot has all that earlier parts removed. What others change now is read again from the journal.
        with owner.system.store.snapshot() as snapshot:
            stored = snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix))
            ids = [
                bytes(key[-keys.ID_BYTES :]) for key in islice(stored, limits.experience_removed_records_max)
            ]
        for id in ids:
            record = records.find(Staged(owner), kind, owner.ref.id, id)
            if record is None:
                continue
            for relation in relations:
                unrelate(owner, relation, id, record.doc)
            if kind is VERSION:
                erase_copies(owner, id)
            records.erase(owner, kind, owner.ref.id, id, record.doc)
            if owner.batch is not None and owner.batch.size_bytes > _REMOVED_BYTES_MAX:
                return True
        if ids:
            return True
    return False


def _removed(choice: RemovalChoice) -> Iterator[tuple[Kind, tuple[Relation, ...]]]:
    """The kinds to remove, with the relations to records that are kept."""
    if not choice.keep_endpoints:
        yield ENDPOINT, ((GROUPS_OF_ENDPOINT,) if choice.keep_groups else ())
    if not choice.keep_views:
        yield VIEW, ()
        yield DEVELOP, ()
    if choice.remove_versions:
        yield VERSION, ()
    if not choice.keep_domains:
        yield DOMAIN, ()
    if not choice.keep_slugs:
        yield SLUG, ()
    if not choice.keep_groups:
        users = (USERS_OF_GROUP,) if choice.keep_users else ()
        yield GROUP, (*users, *((ENDPOINTS_OF_GROUP,) if choice.keep_endpoints else ()))
    if not choice.keep_users:
        yield USER, ((GROUPS_OF_USER,) if choice.keep_groups else ())


_ADDRESSES: Final = ((DOMAIN, "domainName", "keep_domains"), (SLUG, "slug", "keep_slugs"))


def _check(owner: Actor, choice: RemovalChoice) -> None:
    """Raise `Invalid` if kept endpoints answer with pages, or kept domains or slugs name versions, that would go."""
    application = owner.ref.id
    if choice.keep_endpoints and not choice.keep_views:
        for endpoint in records.all_of_kind(Staged(owner), ENDPOINT, application):
            if any(page_of(endpoint.doc.get(field)) for field in REPLIES):
                raise Invalid(
                    f"keepViews: the endpoint {endpoint.id.hex()} answers with a page; keep the views as well, or "
                    "delete the endpoints, too."
                )
    if choice.remove_versions:
        for kind, field, keep in _ADDRESSES:
            if getattr(choice, keep):
                for each in records.all_of_kind(Staged(owner), kind, application):
                    if each.doc.get("version") not in (None, "develop"):
                        raise Invalid(
                            f"removeVersions: the {kind.noun} {each.doc[field]} serves the version "
                            f"{each.doc['version']}; let it name develop first."
                        )
