"""Calls of the server's own operations, for nodes: without the network, with the rights of an application.

The HTTP layer, which knows the operations, gives them to the component `ApiCalls`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

import trio

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.engine.errors import NodeError

START_S: Final = 10.0


class ApiCall(NamedTuple):
    """A call. `params` are the values of the path, the query and the body by their names.

    Without a `token` the caller is the workflow `by`, with the rights of its authors in its application.
    """

    operation: str
    params: dict[str, Any]
    application: bytes
    by: Creator
    origin: Origin
    token: str = ""


class ApiAnswer(NamedTuple):
    """The status, and the body: the value of JSON, or a text."""

    status: int
    body: Any


class Operations(Protocol):
    """The operations of the API."""

    def is_read(self, operation: str) -> bool:
        """Whether an operation changes nothing; False for one that does not exist."""
        ...

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Make a call. Every failure is an answer."""
        ...


class ApiCalls:
    """How nodes call operations. A component."""

    def __init__(self) -> None:
        self._operations: Operations | None = None
        self._is_served = trio.Event()

    def serve(self, operations: Operations) -> None:
        """The operations can be called from now on. Runs may have begun before, right after the start."""
        self._operations = operations
        self._is_served.set()

    async def operations(self) -> Operations:
        """The operations. Raises `NodeError` if nothing serves them."""
        with trio.move_on_after(START_S):
            await self._is_served.wait()
        if self._operations is None:
            raise NodeError("NotServed", "This node needs the API of a server, and here is none.")
        return self._operations
