"""What ends a run of a workflow."""

from __future__ import annotations

from typing import Any


class NodeError(Exception):
    """A node cannot do its work, so the run fails. `name` is what workflows compare, the message is a sentence."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class RunFailed(Exception):
    """A run has failed at a node: the number of the program, the index in it, the error, and the payload there."""

    def __init__(self, program: int, node: int, error: NodeError, payload: Any) -> None:
        super().__init__(str(error))
        self.program = program
        self.node = node
        self.error = error
        self.payload = payload

    def without_frames(self) -> RunFailed:
        """The same without the frames that it went through, which would keep all that the run had."""
        self.error.__traceback__ = self.error.__context__ = self.__context__ = None
        return self.with_traceback(None)
