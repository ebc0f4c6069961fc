"""The experience actor: the only writer of the experience of one application.

It is separate from the application actor, so that checks of routes and changes of many members do not hold up the keys
and tokens of the application. It keeps no state in memory.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.actors.records.owner import RecordParent


class Experience(RecordParent):
    """The experience of one application. `ref.parent` and `ref.id` are both the application's id."""

    kind: ClassVar[str] = "experience"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True  # it exists as long as its application
