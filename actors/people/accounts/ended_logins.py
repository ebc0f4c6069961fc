"""Logins that their user has ended: each ends alone, with all tokens that were renewed from its first one.

Owns the record of a user with the ended logins. An entry is kept until the last token of its login has expired; that
of a login whose tokens do not expire is kept for good. At the bound the login that began first is forgotten, and
with it all logins end that did not begin later: so none is ever valid again, and the record cannot grow.

Does not own what ends all logins of a user (the password and `tokenCutoff`, in `actor.py`).
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import OTHER_OWNER, Doc, Kind
from trunkline.actors.core.values.structs import Message
from trunkline.actors.people.accounts.messages import Session

ENDED_LOGINS: Final = Kind(
    name="endedLogins",
    noun="list of ended logins",
    home="owner",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""One record for each user who has logged out: its id and its parent are the id of the user.

`ended` has the id of each login with its beginning and the time until which it is kept (None: for good), in ms.
`endedUntil` is the beginning up to which all logins have ended.
"""

_MARGIN_MS: Final = 3_600_000
"""How much longer an entry is kept than its tokens are valid: a renewal may be under way, a clock be set back."""


class EndLogin(Message, frozen=True):
    """End a login: its tokens are not valid any more. `ttl_s` is their lifetime; None if they do not expire."""

    session: Session
    ttl_s: float | None


def end(doc: Doc, message: EndLogin, now_ms: int, kept_max: int) -> None:
    """Note in the record `doc` that a login has ended."""
    session, ttl_s = message.session, message.ttl_s
    until_ms = None if ttl_s is None else now_ms + round(ttl_s * 1000) + _MARGIN_MS
    ended = {id: entry for id, entry in doc.get("ended", {}).items() if entry[1] is None or entry[1] > now_ms}
    ended[session.id] = [session.since_ms, until_ms]
    while len(ended) > kept_max:
        oldest = min(ended, key=lambda each: ended[each][0])
        doc["endedUntil"] = max(ended_until(doc), ended.pop(oldest)[0])
    doc["ended"] = ended


def is_ended(doc: Doc, session: Session) -> bool:
    """Whether the record `doc` of its user ends a login."""
    return session.id in doc.get("ended", {}) or session.since_ms <= ended_until(doc)


def ended_until(doc: Doc) -> int:
    """The beginning up to which all logins have ended; -1 if there is none."""
    return int(doc.get("endedUntil", -1))
