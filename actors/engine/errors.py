"""What ends a run of a workflow."""

from __future__ import annotations


class NodeError(Exception):
    """A node cannot do its work, so the run fails. `name` is what workflows compare, the message is a sentence."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class RunFailed(Exception):
    """A run has failed at a node: its index in the program, and the error."""

    def __init__(self, node: int, error: NodeError) -> None:
        super().__init__(str(error))
        self.node = node
        self.error = error
