"""The interface of the system for its actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.moves import Moves
    from trunkline.actors.core.runtime.peers import Peers
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.revocations import Revocations
    from trunkline.actors.core.runtime.subscription import Events
    from trunkline.actors.core.values.clock import Clock
    from trunkline.actors.core.values.ids import IdFactory
    from trunkline.limits.table import Limits
    from trunkline.store.batch import Batch
    from trunkline.store.env import Store
    from trunkline.store.journal import Journal
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")


class Host(Protocol):
    """The part of `System` that actors and turns use."""

    store: Store
    journal: Journal
    limits: Limits
    clock: Clock
    ids: IdFactory
    revocations: Revocations
    random_bytes: Callable[[int], bytes]
    check_batch: Callable[[Ref, Batch], None] | None
    peers: Peers | None
    """The processes of the other partitions; None if there is one partition."""
    forgotten: list[Callable[[bytes], object]]
    """Called with each application that is deleted, after the commit, or has left for another process."""
    moves: Moves
    """The applications that are being moved to other processes."""

    async def until_readable(self) -> None:
        """Return when all partitions can be read here (`System.until_readable`)."""
        ...

    def component(self, type: type[T]) -> T:
        """The component of this type."""
        ...

    def has_subscribers(self, ref: Ref, topic: str) -> bool:
        """True if a `publish` would reach a subscriber."""
        ...

    def topics_of(self, ref: Ref) -> tuple[str, ...]:
        """The topics of an actor that have subscribers."""
        ...

    def publish(self, ref: Ref, topic: str, events: Events) -> None:
        """Offer the same events to every subscriber, without waiting."""
        ...

    def end_streams(self, ref: Ref, topic: str) -> None:
        """End the streams of a topic after what was published, so that their clients come back for the rest."""
        ...

    def forget_children(self, parent: bytes) -> None:
        """Remove every active actor of a deleted application from memory and end its streams."""
        ...

    async def read(
        self,
        query: Callable[[Snapshot], T],
        *,
        wide: bool = False,
        on_step: Callable[[], None] | None = None,
    ) -> T:
        """Run a long read on its own snapshot in a worker thread."""
        ...

    async def ask(self, ref: Ref, message: Any, stamp: Callable[[Any, Any], None] | None = None) -> Any:
        """Ask an actor; its writes are on disk when this returns."""
        ...
