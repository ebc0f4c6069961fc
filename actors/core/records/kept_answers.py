"""Answers that are kept for calls with an Idempotency-Key: a call that is repeated gets the answer of the first one.

Owns how answers are stored, found, bounded and removed. Does not own what the key of a call is, nor what an answer
looks like (`http/calls/idempotency.py`).

An answer is in the batch of the effect, so there are both or none. Its owner is the actor that stores the effect. The
answers of an owner are numbered; the oldest go first, when they expire or when there are too many. Nothing of this is
in the memory of an actor, so it costs nothing where no call has such a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.core.records.expiry import Part, Step
from trunkline.actors.core.values.errors import PayloadTooLarge
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.arrived_copies import foreign
from trunkline.store.batch import Batch
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

Get = Callable[[str, bytes], "bytes | None"]
"""Returns the value at a key of a database: of the journal in a turn, of a snapshot elsewhere."""

_EXPIRED_MAX: Final = 16
"""Expired answers that a new one removes; the retention removes the others."""


class KeptAnswer(NamedTuple):
    """An answer. `request` is a digest of the request that it answers. Headers are names and values."""

    request: bytes
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class ExpiredAnswers(NamedTuple):
    """Owners with expired answers, by the prefix of their keys.

    `start` is where the search goes on, None at the end. `wait_ms` is the time until more expire of those searched; 0
    if some have expired, because nobody knows when the next ones do.
    """

    owners: list[bytes]
    start: bytes | None
    wait_ms: int


class _Answers:
    """The answers of one owner, whose oldest can be removed. `save` at the end."""

    def __init__(self, get: Get, batch: Batch, prefix: bytes) -> None:
        self.first, self.end, self.size_bytes = _head(get, prefix)
        self._get = get
        self._batch = batch
        self._prefix = prefix

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest answer was given; None if there is none."""
        return None if self.first == self.end else _numbered(self._get, self._prefix, self.first)[1]

    def remove_oldest(self, replaced: bytes = b"") -> None:
        """Remove the oldest answer. That of the digest `replaced` is about to be replaced and does not count."""
        digest, _ = _numbered(self._get, self._prefix, self.first)
        key = keys.answer_key(self._prefix, digest)
        raw = None if digest == replaced else self._get(keys.ANSWERS, key)
        if raw is not None and decode(raw)[0] == self.first:
            self._batch.delete(keys.ANSWERS, key)
            self.size_bytes -= len(raw)
        self._batch.delete(keys.ANSWERS, keys.answer_number_key(self._prefix, self.first))
        self.first += 1

    def add(self, digest: bytes, raw: bytes, now_ms: int) -> None:
        """Store an answer with the number `end`."""
        put = self._batch.put
        put(keys.ANSWERS, keys.answer_key(self._prefix, digest), raw)
        put(keys.ANSWERS, keys.answer_number_key(self._prefix, self.end), encode([digest, now_ms]))
        self.size_bytes += len(raw)
        self.end += 1

    def save(self) -> None:
        """Stage the numbers."""
        key = keys.answers_head_key(self._prefix)
        if self.first == self.end:
            self._batch.delete(keys.ANSWERS, key)
        else:
            self._batch.put(keys.ANSWERS, key, encode([self.first, self.end, self.size_bytes]))


def prefix_of(ref: Ref) -> bytes:
    """The common prefix of the keys of the answers of an actor."""
    return keys.answers_prefix(ref.id if ref.parent == ROOT else ref.parent, ref.kind, ref.id)


def find_answer(get: Get, ref: Ref, digest: bytes, oldest_ms: int) -> KeptAnswer | None:
    """The answer of the digest, if it was given at `oldest_ms` or later."""
    raw = get(keys.ANSWERS, keys.answer_key(prefix_of(ref), digest))
    if raw is None:
        return None
    _, time_ms, request, status, headers, body = decode(raw)
    if time_ms < oldest_ms:
        return None
    return KeptAnswer(request, status, [(name, value) for name, value in headers], body)


def keep_answer(system: Host, batch: Batch, ref: Ref, digest: bytes, answer: KeptAnswer) -> int:
    """Stage an answer with the writes of a turn; return how many were forgotten for it before they expired.

    Raises `PayloadTooLarge` for one that exceeds the bound by itself.
    """
    limits, get, now_ms = system.limits, system.journal.get, system.clock.wall_ms()
    prefix = prefix_of(ref)
    answers = _Answers(get, batch, prefix)
    raw = encode([answers.end, now_ms, *answer])
    if len(raw) > limits.idempotency_bytes_max:
        raise PayloadTooLarge(
            f"Idempotency-Key: the answer to this call would take {len(raw)} bytes, and at most "
            f"{limits.idempotency_bytes_max} are kept; send less in one call, or leave the header out."
        )
    before = get(keys.ANSWERS, keys.answer_key(prefix, digest))
    if before is not None:  # it has expired
        answers.size_bytes -= len(before)
    kept_since_ms = oldest_kept_ms(limits, now_ms)
    expired = forgotten = 0
    while (oldest_ms := answers.oldest_ms) is not None:
        if oldest_ms < kept_since_ms and expired < _EXPIRED_MAX:
            expired += 1
        elif (
            answers.end - answers.first >= limits.idempotency_keys_max
            or answers.size_bytes + len(raw) > limits.idempotency_bytes_max
        ):
            forgotten += oldest_ms >= kept_since_ms
        else:
            break
        answers.remove_oldest(digest)
    answers.add(digest, raw, now_ms)
    answers.save()
    return forgotten


def oldest_kept_ms(limits: Limits, now_ms: int) -> int:
    """The time in ms of the oldest answers that have not expired."""
    return now_ms - round(limits.idempotency_keep_s * 1000)


# Removal of expired answers.


def expired_answers(
    snapshot: Snapshot, application: bytes, start: bytes, oldest_ms: int, most: int
) -> ExpiredAnswers:
    """Search at most `most` owners of an application, from the prefix `start` on."""
    owners: list[bytes] = []
    wait_ms = keys.TIME_MS_MAX
    end = keys.prefix_end(application)
    low: bytes | None = start or application
    for _ in range(most):
        assert low is not None
        key = next(snapshot.keys(keys.ANSWERS, low, end), None)
        if key is None:
            return ExpiredAnswers(owners, None, wait_ms)
        prefix = bytes(key[: keys.ANSWERS_PREFIX_BYTES])
        time_ms = _Answers(snapshot.get, Batch(), prefix).oldest_ms
        if time_ms is not None and time_ms < oldest_ms:
            owners.append(prefix)
            wait_ms = 0
        elif time_ms is not None:
            wait_ms = min(wait_ms, time_ms - oldest_ms + 1)
        low = keys.prefix_end(prefix)
    return ExpiredAnswers(owners, low, wait_ms)


def remove_expired(get: Get, batch: Batch, prefix: bytes, oldest_ms: int, most: int) -> int:
    """Stage the removal of at most `most` expired answers of an owner, and return their number.

    Not by a turn of the owner, which may be deleted: a turn reads everything from the journal anyway. The batch is
    submitted before anything is awaited.
    """
    answers = _Answers(get, batch, prefix)
    removed = 0
    while removed < most and (time_ms := answers.oldest_ms) is not None and time_ms < oldest_ms:
        answers.remove_oldest()
        removed += 1
    if removed:
        answers.save()
    return removed


# Verification.


def answer_problems(snapshot: Snapshot) -> Iterator[str]:
    """Yield a sentence for each owner whose answers and numbers do not agree."""
    void = foreign(snapshot)
    low: bytes | None = b""
    while low is not None and (key := next(snapshot.keys(keys.ANSWERS, low, None), None)) is not None:
        prefix = bytes(key[: keys.ANSWERS_PREFIX_BYTES])
        low = keys.prefix_end(prefix)
        if prefix[: keys.ID_BYTES] in void:
            continue
        first, end, size_bytes = _head(snapshot.get, prefix)
        numbered = {number: _numbered(snapshot.get, prefix, number)[0] for number in range(first, end)}
        found = size = 0
        for each, raw in snapshot.range(keys.ANSWERS, keys.answer_key(prefix, b""), low):
            if each.startswith(keys.answer_key(prefix, b"")):
                digest = bytes(each[len(keys.answer_key(prefix, b"")) :])
                size += len(raw)
                found += numbered.get(decode(raw)[0]) != digest
        if found or size != size_bytes:
            yield (
                f"answers {prefix.hex()}: {found} kept answers have no number, and they have {size} bytes; "
                f"{size_bytes} are counted."
            )


# What is stored.


def _head(get: Get, prefix: bytes) -> tuple[int, int, int]:
    """The number of the oldest answer, that of the next one, and the bytes of all."""
    raw = get(keys.ANSWERS, keys.answers_head_key(prefix))
    if raw is None:
        return 0, 0, 0
    first, end, size_bytes = decode(raw)
    return first, end, size_bytes


def _numbered(get: Get, prefix: bytes, number: int) -> tuple[bytes, int]:
    """The digest and the time of an answer; those of none if they are missing."""
    raw = get(keys.ANSWERS, keys.answer_number_key(prefix, number))
    if raw is None:
        return b"", 0
    digest, time_ms = decode(raw)
    return digest, time_ms


def search_answers(snapshot: Snapshot, step: Step) -> Part:
    """Search the answers of calls with an Idempotency-Key, by their owners, from the prefix `start` on."""
    oldest_ms = oldest_kept_ms(step.limits, step.now_ms)
    found = expired_answers(snapshot, step.owner, step.start, oldest_ms, step.limits.searched_devices_max)
    return Part([], found.start, found.start, found.wait_ms, found.owners)
