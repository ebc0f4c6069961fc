"""The address of an actor."""

from __future__ import annotations

from typing import Final, NamedTuple

from trunkline.actors.core.values.ids import ROOT


class Ref(NamedTuple):
    """The address of an actor. The address is always valid; the first message activates the actor.

    `parent` is the id of the actor's application (`ids.ROOT` if it has none).
    """

    kind: str
    parent: bytes
    id: bytes


APPLICATION: Final = "application"


def application_streams(application: bytes) -> Ref:
    """The actor that has the streams of a whole application."""
    return Ref(APPLICATION, ROOT, application)
