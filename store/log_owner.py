"""The owner of a partition, as its log knows it: claims, and appends what is fenced by the log alone.

Owns how an append ends that nobody has answered: it is sent again, behind the same entry as before, so that it is in
the log once at most; if another entry is there, the log is read. Does not own when a node claims, nor what it appends.

All partitions of a log are claimed at once or none. So all of them belong to one node at every moment: what one node
claims of another one always includes the first partition, and a process claims its own alone only behind an entry of
its node.

No clock and no lease decides who owns a partition. A claim is an entry like others: from then on every append of the
owner before it is refused, as the log does not end any more where that one thinks. For that an owner has one append
under way at a time: a second one would name a place at which another entry may come to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from trunkline.store.errors import Fenced, LogBroken, LogUnreachable
from trunkline.store.log import (
    BEGINNING,
    ERA_BITS,
    Chain,
    Entry,
    Kind,
    Log,
    NotNext,
    Placed,
    Trimmed,
    decoded,
    encoded,
    epoch_name,
    era_of,
    hash_of,
)

AGAIN_S: Final = 0.2
"""After an append that nobody has answered, so long until the next one."""
LOOK_S: Final = 1.0
"""How long an entry is waited for that the log says to have, and that its readers do not see yet."""
SHORTER_S: Final = 30.0
"""A log that ends for so long before what it had acknowledged has lost it. A server that was cut off from the others,
and that knows less than they do, has stopped to lead it by then."""


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

    async def claim_all(self, bodies: Mapping[int, bytes], tips: Mapping[int, Placed | None]) -> bool:
        """Claim all partitions with these bodies, each behind its last entry, and begin an era; false if any of them
        has gone on: then follow on, and claim again.

        `tips` has that entry of each other one. Waits, may be cancelled, and raises as `claim`.
        """
        chain = self.chain
        ends = {chain.partition: (chain.epoch, chain.tip, chain.place)}
        for number, tip in tips.items():
            ends[number] = (
                (0, BEGINNING, 0) if tip is None else (decoded(tip.data).epoch, hash_of(tip.data), tip.place)
            )
        epoch = (1 + max(era_of(each) for each, _, _ in ends.values())) << ERA_BITS
        entries = {
            number: (encoded(Entry(number, epoch, self.name, previous, "claim", bodies[number])), place)
            for number, (_, previous, place) in ends.items()
        }
        data, after = entries[chain.partition]
        while True:
            try:
                found: Placed | None = Placed(await self._log.append_all(entries), data)
            except LogUnreachable:
                await trio.sleep(AGAIN_S)
                continue
            except NotNext:  # it may be there since an attempt that was not answered
                try:
                    found = await self._looked(after)
                except Fenced:
                    return False
            if found is None or found.data != data:
                return False
            self._add(found)
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
        self._add(Placed(await self._settled(data), data))

    def _add(self, placed: Placed) -> None:
        self.chain.add(placed)
        self.appended += 1
        self.appended_bytes += len(placed.data)

    async def _settled(self, data: bytes) -> int:
        """Append until the log has the entry, or another one in its place. Raises Fenced for another one."""
        chain, shorter_s = self.chain, None
        while True:
            try:
                return await self._log.append(data, chain.place)
            except LogUnreachable:
                await trio.sleep(AGAIN_S)
                continue
            except NotNext as refusal:
                last = refusal.last
            if last < chain.place:
                shorter_s = shorter_s or trio.current_time()
                if trio.current_time() - shorter_s > SHORTER_S:
                    raise LogBroken(
                        f"The log of partition {chain.partition} ends at {last}, and it had acknowledged an entry at "
                        f"{chain.place}: it has lost entries, or was made again."
                    )
                await trio.sleep(AGAIN_S)
                continue
            shorter_s, found = None, await self._looked(chain.place)
            if found is not None and found.data == data:
                return found.place
            if found is not None:
                other = decoded(found.data)
                epoch = epoch_name(other.epoch)
                raise Fenced(f"{other.owner} owns partition {other.partition} in epoch {epoch}.")

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
