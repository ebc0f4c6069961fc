"""The interface of the other processes of a server with several partitions, for the system of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.answer import Answer
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.values.structs import Message


def process_name(number: int) -> str:
    """The name of the process that serves a partition, in the log, in the metrics and wherever else it is named."""
    return f"partition-{number}"


class Peers(Protocol):
    """The processes that serve the other partitions."""

    def has(self, ref: Ref) -> bool:
        """Whether one of them serves this actor."""
        ...

    async def ask(self, ref: Ref, message: Message) -> Answer:
        """Ask an actor that one of them serves, as `System.ask`.

        Raises also `Overloaded` if its process is not there, and `Unanswered` if it has ended before it answered.
        """
        ...

    async def command(self, partition: int, subject: str, *arguments: Any) -> Any:
        """Have the process of a partition do what it does about a subject (`System.tells`), however long that takes.

        Raises as `ask`.
        """
        ...

    async def ask_each(self, subject: str) -> dict[int, Any]:
        """What each of them tells of itself about a subject (`System.tells`), by the number of its partition.

        None for one that does not answer within a second or so.
        """
        ...

    def unreachable(self) -> list[int]:
        """The partitions whose processes cannot be asked now, or are not known to have started."""
        ...

    def has_application(self, application: bytes) -> bool:
        """Whether one of them serves this application."""
        ...

    async def read(self, application: bytes, message: Message) -> Any:
        """Have the process of an application answer a read message (`actors/readers.py`). Raises as `ask`."""
        ...
