"""What an actor sees of the system that it lives in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from trunkline.actors.runtime.ref import Ref
    from trunkline.actors.runtime.revocations import Revocations
    from trunkline.actors.values.clock import Clock
    from trunkline.actors.values.ids import IdFactory
    from trunkline.limits.table import Limits
    from trunkline.store.batch import Batch
    from trunkline.store.env import Store
    from trunkline.store.journal import Journal
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")


class Host(Protocol):
    """The system, as its actors and their turns know it. `System` is the one that there is."""

    store: Store
    journal: Journal
    limits: Limits
    clock: Clock
    ids: IdFactory
    revocations: Revocations
    random_bytes: Callable[[int], bytes]
    check_batch: Callable[[Ref, Batch], None] | None

    def component(self, type: type[T]) -> T:
        """The component of this type."""
        ...

    def has_subscribers(self, ref: Ref, topic: str) -> bool:
        """True where somebody would hear a `publish`."""
        ...

    def publish(self, ref: Ref, topic: str, position: int, event: bytes) -> None:
        """Offer the same bytes to every subscriber now."""
        ...

    def forget_children(self, parent: bytes) -> None:
        """Drop every active actor of a deleted application and end its streams."""
        ...

    async def read(self, query: Callable[[Snapshot], T]) -> T:
        """Run a long read on its own snapshot in a worker thread."""
        ...

    async def ask(self, ref: Ref, message: Any) -> Any:
        """Ask an actor; what it wrote is on disk when the answer comes."""
        ...
