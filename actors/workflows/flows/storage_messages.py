"""The storage of a workflow: messages that change its entries, and the states of its nodes."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.values.structs import Message
from trunkline.actors.workflows.flows.bodies import StorageEntry


class SetStorageEntry(Message, frozen=True):
    """Set or remove a storage entry."""

    body: StorageEntry


class AddToStorageEntry(Message, frozen=True):
    """Add to the number of a storage entry, 0 if there is none. The answer is the sum."""

    key: str
    number: float


class ClearStorage(Message, frozen=True):
    """Remove all storage entries, and the states of all nodes."""


class SetLatch(Message, frozen=True):
    """Set the latch `node` if it is not set, or reset it if it is. The answer is whether it was set, and whether it is.

    `node` is what distinguishes the states of a workflow: a node, and the id that its configuration gives.
    """

    node: str
    sets: bool
    resets: bool


class PassThrottle(Message, frozen=True):
    """Pass the throttle `node` if `every_ms` have gone by since it was last passed.

    The answer is whether it is passed, and the milliseconds since it was last passed; null if it never was.
    """

    node: str
    every_ms: float


class OldState(msgspec.Struct, frozen=True):
    """The state of a node before it was replaced."""

    state: Any


class ReplaceNodeState(Message, frozen=True):
    """Replace the state of a node by any JSON; null removes it. The answer is the old one."""

    node: str
    state: Any
