"""The owner of a partition, as its log knows it: claims, and appends what is fenced by the log alone.

Owns how an append ends that nobody has answered: it is sent again, behind the same entry as before, so that it is in
the log once at most; if another entry is there, the log is read. Does not own when a node claims, nor what it appends.

No clock and no lease decides who owns a partition. A claim is an entry like others: from then on every append of the
owner before it is refused, as the log does not end any more where that one thinks. For that an owner has one append
under way at a time: a second one would name a place at which another entry may come to be.
"""

from __future__ import annotations

from typing import Final

import trio

from trunkline.store.errors import Fenced, LogBroken, LogUnreachable
from trunkline.store.log import (
    Chain,
    Entry,
    Kind,
    Log,
    NotNext,
    Placed,
    Trimmed,
    decoded,
    encoded,
    end_of,
    hash_of,
)

AGAIN_S: Final = 0.2
"""After an append that nobody has answered, so long until the next one."""
LOOK_S: Final = 1.0
"""How long an entry is waited for that the log says to have, and that its readers do not see yet."""
SHORTER_S: Final = 30.0
"""A log that lacks for so long what it had acknowledged has lost it. A server that was cut off from the others, and
that knows less than they do, or has other entries that nobody confirms, has stopped to lead it by then."""


class LogOwner:
    """Appends for the node `name`, at the end of `chain`. `claim` first."""

    def __init__(self, log: Log, chain: Chain, name: str) -> None:
        self.name = name
        self.chain = chain
        """Up to the last entry that is acknowledged."""
        self.appended = 0
        self.appended_bytes = 0
        """The entries that the log has acknowledged, and their bytes."""
        self._log = log

    async def claim(self, body: bytes = b"") -> bool:
        """Claim the partition; false if the chain is not at the end of the log: then follow on, and claim again.

        Waits however long the log cannot be reached. If it is cancelled, the claim may be in the log: whoever follows
        the chain sees it. Raises LogBroken.
        """
        try:
            await self._append("claim", body, self.chain.epoch + 1)
        except Fenced:
            return False
        return True

    async def append(self, body: bytes, kind: Kind = "group") -> None:
        """Append an entry. It is on a majority when this returns, and the chain ends with it.

        Waits however long the log cannot be reached. Raises Fenced if another node owns the partition: this entry is
        not in the log, and no later one will be. Raises LogBroken. If it is cancelled, nobody knows: append the same
        again, or nothing.
        """
        await self._append(kind, body, self.chain.epoch)

    async def _append(self, kind: Kind, body: bytes, epoch: int) -> None:
        chain = self.chain
        data = encoded(Entry(chain.partition, epoch, self.name, chain.tip, kind, body))
        self._add(Placed(await self._settled(data, is_sure=kind != "claim"), data))

    def _add(self, placed: Placed) -> None:
        self.chain.add(placed)
        self.appended += 1
        self.appended_bytes += len(placed.data)

    async def _settled(self, data: bytes, *, is_sure: bool) -> int:
        """Append until the log has the entry, or another one in its place. Raises Fenced for another one.

        `is_sure`: it is known that the log has the last entry of the chain. A log that has lost it may have gone on,
        and end at the same place with an entry of another node. So it is looked for again where an append was not
        answered, and where the log is shorter than it was.
        """
        chain, shorter_s = self.chain, None
        while True:
            try:
                if is_sure:
                    return await self._log.append(data, chain.place)
                last = await end_of(self._log)
                if last == chain.place and await self._has_last():
                    is_sure, shorter_s = True, None
                    continue
            except LogUnreachable:
                is_sure = False
                await trio.sleep(AGAIN_S)
                continue
            except NotNext as refusal:
                last = refusal.last
            if last <= chain.place:
                is_sure, shorter_s = False, shorter_s or trio.current_time()
                if trio.current_time() - shorter_s > SHORTER_S:
                    raise LogBroken(
                        f"The log of partition {chain.partition} ends at {last}, and it had acknowledged an entry at "
                        f"{chain.place}, which it does not have: it has lost entries, or was made again."
                    )
                await trio.sleep(AGAIN_S)
                continue
            shorter_s, found = None, await self._looked(chain.place)
            if found is not None and found.data == data:
                return found.place
            if found is not None:
                other = decoded(found.data)
                raise Fenced(f"{other.owner} owns partition {other.partition} in epoch {other.epoch}.")

    async def _has_last(self) -> bool:
        """Whether the log has the last entry of the chain. Who answers may be cut off from those who have it."""
        chain = self.chain
        return not chain.place or hash_of(await self._log.entry(chain.place) or b"") == chain.tip

    async def _looked(self, after: int) -> Placed | None:
        """The entry behind `after`; None if it is not seen for a while. Raises Fenced if it was there long ago."""
        with trio.move_on_after(LOOK_S):
            return await self._behind(after)
        return None

    async def _behind(self, after: int) -> Placed | None:
        """The entry behind `after`; None if it cannot be read just now. Raises Fenced if it was there long ago."""
        try:
            async with self._log.follow(after) as entries:
                async for placed in entries:
                    return placed
        except LogUnreachable:
            pass
        except Trimmed:
            raise Fenced(f"The log of partition {self.chain.partition} went on without this node.") from None
        await trio.sleep(AGAIN_S)
        return None
