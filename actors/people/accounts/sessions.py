"""The sessions of users' tokens: as claims of a token, and whether they are still valid. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.people.accounts.actor import token_generation
from trunkline.actors.people.accounts.ended_logins import ENDED_LOGINS, is_ended
from trunkline.actors.people.accounts.messages import Session

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


def is_valid(snapshot: Snapshot, user: bytes, doc: Doc, session: Session) -> bool:
    """Whether a session of a user, with this record, is still valid."""
    if session.generation != token_generation(doc) or session.since_ms < doc["tokenCutoff"]:
        return False
    if not session.id:
        return True  # of an API token, whose own record can end it
    ended = records.find(snapshot, ENDED_LOGINS, user, user)
    return ended is None or not is_ended(ended.doc, session)


def session_of(claims: Mapping[str, Any], user: Doc, *, is_api_token: bool) -> Session:
    """Return the session of a user's token. Without a session in its claims, it began when the token was issued.

    Tokens of logins of earlier versions have no id; it is made of the generation and the beginning.
    """
    since_ms = claims.get("auth", round(claims["iat"] * 1000))
    generation = claims.get("gen", token_generation(user))
    id = "" if is_api_token else claims.get("sid", f"{generation}.{since_ms}")
    return Session(generation, since_ms, id)


def session_claims(session: Session) -> dict[str, Any]:
    """Return the claims of a session."""
    claims = {"gen": session.generation, "auth": session.since_ms}
    return {**claims, "sid": session.id} if session.id else claims
