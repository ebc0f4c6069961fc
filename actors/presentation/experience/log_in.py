"""Logins of the users of an experience, as they are stored: when the last one was, and which tokens have ended."""

from __future__ import annotations

from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.owner import by_fields
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.structs import Message
from trunkline.actors.presentation.experience.kind import USER


class NoteLogIn(Message, frozen=True):
    """Store that a user has logged in, that the tokens of the user have ended, or both.

    The answer is the time (ms) with which a token must be made that is to be valid afterwards.
    """

    user: bytes
    by: Creator
    is_log_in: bool = True
    ends_tokens: bool = False


def note_log_in(owner: Actor, message: NoteLogIn) -> int:
    """Stage it. Raises `NotFound` if there is no such user."""
    found = records.find(Staged(owner), USER, owner.ref.id, message.user)
    if found is None:
        raise missing(USER, message.user)
    old, now_ms = found.doc, owner.system.clock.wall_ms()
    # A token of this millisecond has ended as well; a cutoff in the future stays.
    made_ms = now_ms + 1 if message.ends_tokens else now_ms
    new = {**old, "lastUpdated": records.next_update_ms(now_ms, old), **by_fields("lastUpdated", message.by)}
    if message.is_log_in:
        new["lastLogin"] = now_ms
    if message.ends_tokens:
        new["tokenCutoff"] = max(old.get("tokenCutoff") or 0, made_ms)
    records.write(owner, USER, owner.ref.id, message.user, old, new)
    return made_ms
