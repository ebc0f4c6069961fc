"""The address of an actor."""

from __future__ import annotations

from typing import NamedTuple


class Ref(NamedTuple):
    """The address of an actor. It always exists; the actor is activated by its first message.

    `parent` is the id of the application that holds the actor (`ids.ROOT` where none does).
    """

    kind: str
    parent: bytes
    id: bytes
