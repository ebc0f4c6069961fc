"""The memory of payloads that wait: those of branches of runs that are visited later.

Owns how many bytes they are, of a run and of an owner, how many branches of a run wait, and the bounds on them. A
branch has a payload of its own, but it is copied when the branch is visited: until then all branches that begin at a
node have one together, and the last of them keeps it. So what waits is one payload for each node with open branches.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from trunkline.actors.engine.copies import copy_bytes
from trunkline.actors.engine.errors import NodeError

UNCOUNTED_BYTES: Final = 512
"""A payload of fewer bytes counts as one of so many."""
RUN_BYTES_MAX: Final = 128 * 1024 * 1024
RUN_BRANCHES_MAX: Final = 10_000
"""A node may lead to many nodes, with one payload for all: their places in the list of a run take memory as well."""
OWNER_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of all runs of an owner at a time."""


class BranchMemory:
    """Counts what the runs of one server keep, by owner."""

    def __init__(self) -> None:
        self._taken: Counter[bytes] = Counter()

    def take(self, owner: bytes, bytes: int) -> None:
        """Note that so many bytes wait. Raises `NodeError` if the owner has too many."""
        taken = self._taken[owner] + bytes
        if taken > OWNER_BYTES_MAX:
            raise _too_many(f"the runs of this owner keep more than {OWNER_BYTES_MAX} bytes")
        self._taken[owner] = taken

    def give(self, owner: bytes, bytes: int) -> None:
        """Note that so many bytes wait no longer."""
        left = self._taken[owner] - bytes
        if left > 0:
            self._taken[owner] = left
        else:
            self._taken.pop(owner, None)


class Waiting:
    """A payload that several branches begin with."""

    __slots__ = ("branches", "bytes", "payload")

    def __init__(self, payload: Any, branches: int, bytes: int) -> None:
        self.payload = payload
        self.branches = branches
        """Those that have not begun."""
        self.bytes = bytes


class WaitingOfRun:
    """Those of one run."""

    __slots__ = ("_branches", "_bytes", "_memory", "_owner")

    def __init__(self, memory: BranchMemory, owner: bytes) -> None:
        self._memory = memory
        self._owner = owner
        self._branches = 0
        self._bytes = 0

    def add(self, payload: Any, branches: int, bytes: int) -> Waiting:
        """A payload that some branches begin with. Raises `NodeError` over a bound."""
        if self._branches + branches > RUN_BRANCHES_MAX:
            raise NodeError(
                "TooManyBranches",
                f"Too many branches wait: those of a run are at most {RUN_BRANCHES_MAX}. Let fewer branches begin at "
                "a node, or do not lead from a branch back to a node with others.",
            )
        if self._bytes + bytes > RUN_BYTES_MAX:
            raise _too_many(f"a run keeps at most {RUN_BYTES_MAX} bytes")
        self._memory.take(self._owner, bytes)
        self._branches += branches
        self._bytes += bytes
        return Waiting(payload, branches, bytes)

    def begin(self, waiting: Waiting) -> bool:
        """One more branch begins; return whether it needs a copy, as others are still to begin."""
        waiting.branches -= 1
        self._branches -= 1
        if waiting.branches:
            return True
        self._bytes -= waiting.bytes
        self._memory.give(self._owner, waiting.bytes)
        return False

    def end(self) -> None:
        """The run is over, whatever still waits."""
        self._memory.give(self._owner, self._bytes)
        self._bytes = 0


def waiting_bytes(payload: Any) -> int:
    """What a payload counts as."""
    return max(UNCOUNTED_BYTES, copy_bytes(payload))


def _too_many(bound: str) -> NodeError:
    return NodeError(
        "TooManyBranches",
        f"The payloads of branches that wait need too much memory: {bound}. Let fewer branches begin at a node, or "
        "remove from the payload what they do not need.",
    )
