"""The payloads after the steps of a dry run, as long as they are few bytes in all."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.engine.copies import copied, size_of

SNAPSHOTS_MAX: Final = 200
"""Steps of which an answer shows the payload; of the others it shows the path."""
BYTES_MAX: Final = 1024 * 1024
"""About the bytes as JSON of all of them. They are copied and encoded in the event loop."""


class Snapshots:
    """Those of one run."""

    __slots__ = ("_kept", "_left", "left_out")

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}
        self._left = BYTES_MAX
        self.left_out = 0
        """Steps whose payload is not kept."""

    def keep(self, step: int, payload: Any) -> None:
        """Keep a copy of the payload after a step; from the first one on that does not fit, none."""
        if step < SNAPSHOTS_MAX and self._left >= 0:
            self._left -= size_of(payload, self._left)
            if self._left >= 0:
                self._kept[step] = copied(payload)
                return
        self.left_out += 1

    def shown(self, step: int) -> dict[str, Any]:
        """What an answer shows of a step: the payload, if it is kept."""
        return {"payload": self._kept[step]} if step in self._kept else {}
