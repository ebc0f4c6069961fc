"""Who is told that a workflow has changed: what keeps parts of workflows in memory."""

from __future__ import annotations

from collections.abc import Callable

Changed = Callable[[bytes, bytes], None]
"""Is told the application and the workflow."""


class FlowChanges:
    """The listeners of one system. A component."""

    def __init__(self) -> None:
        self._listeners: list[Changed] = []

    def listen(self, listener: Changed) -> None:
        """Call `listener` with each change, in the turn of the workflow, before the change is stored."""
        self._listeners.append(listener)

    def changed(self, application: bytes, flow: bytes) -> None:
        """A workflow was created, changed or deleted."""
        for listener in self._listeners:
            listener(application, flow)
