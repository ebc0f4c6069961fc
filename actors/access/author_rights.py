"""Who an author is now, in whose name something acts, and what that author may do. Pure reads of a snapshot.

What is found here is kept by `people/organizations/mandates.py` until it may have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.access.authority import (
    NO_LONGER_VALID,
    Access,
    Principal,
    application_access,
    live,
    organization_access,
)
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.records.mandate import Mandate
from trunkline.actors.core.values.errors import Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.accounts.messages import Session
from trunkline.actors.people.accounts.scopes import scopes_within
from trunkline.actors.people.accounts.sessions import is_valid
from trunkline.actors.people.accounts.tokens import API_TOKEN
from trunkline.actors.people.organizations.mandates import Rights
from trunkline.actors.people.organizations.membership import ORGANIZATION
from trunkline.actors.people.organizations.roles import Level

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


def author_of(snapshot: Snapshot, mandate: Mandate) -> Principal:
    """The author of a mandate as the author is now. Raises `Unauthorized` if a record behind it is gone."""
    ids = (mandate.user, mandate.application, mandate.token)
    user_id, application_id, token_id = (None if id is None else bytes.fromhex(id) for id in ids)
    name = ""
    if user_id is not None:
        user = live(records.find(snapshot, USER, ROOT, user_id))
        name = user["email"]
        if mandate.session is not None and not is_valid(snapshot, user_id, user, Session(*mandate.session)):
            raise Unauthorized(NO_LONGER_VALID)
    expires_ms = None
    if token_id is not None:
        token = live(records.find(snapshot, API_TOKEN, user_id or application_id or ROOT, token_id))
        if token["status"] != "active":
            raise Unauthorized(NO_LONGER_VALID)
        name, expires_ms = str(token["name"]), token.get("expirationDate")
    return Principal(
        kind="application" if user_id is None else "user",
        scopes=frozenset(mandate.scopes),
        expires_ms=expires_ms,
        user_id=user_id,
        application_id=application_id,
        token_id=token_id,
        name=name,
    )


def rights_of(snapshot: Snapshot, mandate: Mandate, place: bytes) -> Rights:
    """What an author may do now in an application, in an organization, or with what is the author's own.

    Raises `DomainError` if that is nothing.
    """
    author = author_of(snapshot, mandate)
    access = author.accesses.get(place)
    if place == author.user_id:
        access = Access(Level.ADMINISTER, place)
    elif access is None and records.find(snapshot, ORGANIZATION, ROOT, place) is not None:
        access = organization_access(snapshot, author, place)
    elif access is None:
        access = application_access(snapshot, author, place)
    rights = Rights(access.level, scopes_within(author.scopes), author.expires_ms)
    for subject in (*author.subjects, place, access.owner):
        rights.add_subject(subject)
    return rights
