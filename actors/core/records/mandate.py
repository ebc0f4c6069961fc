"""Mandates: in whose name something acts later, stored with what will act.

Owns what is stored of an author: who it is, and the scopes of the token that was used. Does not own what that allows
now (`actors/people/organizations/mandates.py`), because it is found out when something acts, never before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec


class Mandate(msgspec.Struct, frozen=True, omit_defaults=True):
    """An author: a user, or the bearer of an API token. Ids are in hexadecimal, as in other records.

    `user` is missing for the token of an application. `session` are the generation and the beginning (ms) of the
    session of a user's API token, which ends with the password. The session of a login is not kept: what a person has
    set up goes on when the person has logged out.
    """

    name: str
    scopes: tuple[str, ...]
    user: str | None = None
    application: str | None = None
    token: str | None = None
    session: tuple[int, int] | None = None

    @property
    def type(self) -> Literal["User", "ApiToken"]:
        """What the author is, in the words of the audit log."""
        return "User" if self.token is None else "ApiToken"

    @property
    def id(self) -> str:
        """The id of the token, or else of the user."""
        id = self.token or self.user
        assert id is not None
        return id


Mandates = tuple[Mandate, ...]
"""The authors in whose name something acts: it may do what each of them may do. Without any it acts for the owner of
its application, as everything did that was stored before there were mandates."""


def stored_mandates(mandates: Mandates) -> list[dict[str, Any]]:
    """Mandates as plain data, for a document."""
    stored: list[dict[str, Any]] = msgspec.to_builtins(list(mandates))
    return stored


def mandates_of(stored: Iterable[dict[str, Any]] | None) -> Mandates:
    """The mandates of a document."""
    return tuple(msgspec.convert(each, Mandate) for each in stored or ())
