"""A log in a stream of NATS JetStream (2.14.5 or later).

Owns the stream, and how entries are messages of it. Does not own the connection (`nats_connection.py`).

The subject of its messages ends with a random number, the identity of the log: a stream that is removed and made again
has another one, so what an owner of the former log sends goes nowhere.

An entry is one message; one that is larger than the server takes is several, which are stored together or not at all
(an atomic batch). The place of an entry is the number of its last message in the stream, its sequence. Each message
begins with a byte: 0, then the entry; or 1, then the number of the part (from 1), that of all parts, and the part.

The stream is kept by `replicas` servers, and an acknowledgement means that a majority has the message. It is on their
disks only with `sync_interval: always` in their configuration, which a client cannot see. Only the leader of the stream
accepts an append, and compares the expected last sequence with all that it has proposed; a leader that was deposed
cannot get its messages committed.

Sources: https://docs.nats.io/reference/reference-protocols/nats_api_reference and, for atomic batches,
https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-50.md
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import trio

from trunkline.store.errors import LogBroken, LogUnreachable, StoreBroken
from trunkline.store.log import LogServer, LogState, NotNext, Placed, Trimmed
from trunkline.store.nats_codec import Message
from trunkline.store.nats_connection import Messages, NatsConnection

REQUEST_S: Final = 2.0
"""How long an answer is waited for. Without a leader of the stream, nobody answers; an election takes 4 to 9 s."""
PART_BYTES: Final = 1_000_000
"""Of an entry in one message. A server takes 1 MiB, headers included, unless its configuration says otherwise."""
PARTS_MAX: Final = 1000
"""The most messages of an atomic batch."""
PULLED: Final = 256
"""Messages that a reader asks for at a time."""
PULLED_BYTES: Final = 4 * 1024 * 1024
PULL_S: Final = 30.0
HEARTBEAT_S: Final = 1.0
"""The server says so often that there is nothing new for a reader."""
FORGOTTEN_S: Final = 60.0
"""A reader that asks for nothing is forgotten by the server after so long."""
_PART: Final = struct.Struct(">BHH")
_WHOLE: Final = b"\0"
_API: Final = "$JS.API"
_WRONG_LAST: Final = 10071
_NO_STREAM: Final = 10059
_NAME_TAKEN: Final = 10058
_NANOSECONDS: Final = 1_000_000_000

# Statuses of a reader's messages.
_HEARTBEAT: Final = 100
_NOTHING: Final = frozenset({404, 408})
"""There is nothing, or not within the time."""
_CONFLICT: Final = 409
_FULL: Final = frozenset({"Batch Completed", "Message Size Exceeds MaxBytes"})
"""As many messages were sent as were asked for, or as many bytes."""


class JetStreamLog:
    """Implements `Log` in the stream `name`, whose messages have a subject that begins with `subject`.

    Nothing is appended before `create` or `identity` has found the whole subject.
    """

    def __init__(
        self, connection: NatsConnection, name: str, subject: str, part_bytes: int = PART_BYTES
    ) -> None:
        self.name = name
        self._connection = connection
        self._subject = subject
        self._whole_subject = subject
        self._part_bytes = part_bytes

    # The stream.

    async def create(self, replicas: int) -> None:
        """Make the stream, unless it is there. Raises LogUnreachable, and StoreBroken if the server refuses."""
        config = {
            "name": self.name,
            "subjects": [f"{self._subject}.{secrets.token_hex(8)}"],
            "storage": "file",
            "num_replicas": replicas,
            "retention": "limits",
            "discard": "new",
            "max_age": 0,
            "max_msgs": -1,
            "max_bytes": -1,
            "deny_delete": True,
            "allow_atomic": True,
            "allow_direct": False,
            "duplicate_window": _NANOSECONDS,
        }
        answer = await self._asked(f"STREAM.CREATE.{self.name}", config)
        if _error(answer) != _NAME_TAKEN:
            _checked(answer)
        await self.identity()

    async def identity(self) -> str:
        """What tells this log from one that is made again under its name. From now on entries are appended to this one.

        Raises LogBroken if there is none.
        """
        info = _checked(await self._asked(f"STREAM.INFO.{self.name}", {}))
        (self._whole_subject,) = info["config"]["subjects"]
        return self._whole_subject.removeprefix(self._subject)

    async def exists(self) -> bool:
        """Whether there is such a stream."""
        answer = await self._asked(f"STREAM.INFO.{self.name}", {})
        if _error(answer) == _NO_STREAM:
            return False
        _checked(answer)
        return True

    async def remove(self) -> None:
        """Remove the stream and all that is in it; no error if there is none."""
        answer = await self._asked(f"STREAM.DELETE.{self.name}", {})
        if _error(answer) != _NO_STREAM:
            _checked(answer)

    async def state(self) -> LogState:
        """What the stream has. Raises LogBroken if there is none."""
        state = _checked(await self._asked(f"STREAM.INFO.{self.name}", {}))["state"]
        last = state["last_seq"]
        return LogState(max(state["first_seq"], 1), last, state["bytes"])

    async def servers(self) -> list[LogServer]:
        """The servers that keep the stream, the one that leads it first; without a leader there is none that does."""
        cluster = _checked(await self._asked(f"STREAM.INFO.{self.name}", {})).get("cluster") or {}
        leader = cluster.get("leader")
        found = [] if leader is None else [LogServer(str(leader), leads=True, is_current=True)]
        for replica in cluster.get("replicas") or ():
            is_current = bool(replica.get("current")) and not replica.get("offline")
            found.append(LogServer(str(replica.get("name")), leads=False, is_current=is_current))
        return found

    async def trim(self, before: int) -> None:
        """Remove all messages before a place."""
        if before <= 1:
            return  # a server would take 0 for the end
        _checked(await self._asked(f"STREAM.PURGE.{self.name}", {"seq": before}))

    # Appending and reading.

    def length(self, data: bytes) -> int:
        """The number of messages of an entry."""
        return -(-len(data) // self._part_bytes) or 1

    async def append(self, data: bytes, after: int) -> int:
        """Append an entry (`Log.append`)."""
        messages = self._messages(data)
        expected = {"Nats-Expected-Last-Sequence": str(after)}
        if len(messages) == 1:
            answer = await self._connection.request(
                self._whole_subject, messages[0], expected, wait_s=REQUEST_S
            )
        else:
            answer = await self._append_parts(messages, expected)
        found = _object(answer)
        if _error(found) == _WRONG_LAST:
            raise NotNext(_last_of(found))
        if _error(found) is not None and found["error"].get("code", 0) >= 500:
            raise LogUnreachable(
                _sentence(found["error"])
            )  # such as a disk that is full: it may be tried again
        place: int = _checked(found)["seq"]
        return place

    def _messages(self, data: bytes) -> list[bytes]:
        size, count = self._part_bytes, self.length(data)
        if count == 1:
            return [_WHOLE + data]
        if count > PARTS_MAX:
            raise StoreBroken(f"An entry of {len(data)} bytes is too large for the log.")
        return [_PART.pack(1, n + 1, count) + data[n * size : (n + 1) * size] for n in range(count)]

    async def _append_parts(self, messages: list[bytes], expected: Mapping[str, str]) -> Message:
        """Send an atomic batch. Each part waits for the one before it only at the start and at the end."""
        batch = secrets.token_hex(12)
        for number, message in enumerate(messages[:-1], 1):
            headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            if number > 1:
                await self._sent(message, headers)
                continue
            answer = await self._connection.request(
                self._whole_subject, message, {**headers, **expected}, wait_s=REQUEST_S
            )
            if answer.payload:
                return answer  # it is refused
        headers = {
            "Nats-Batch-Id": batch,
            "Nats-Batch-Sequence": str(len(messages)),
            "Nats-Batch-Commit": "1",
        }
        return await self._connection.request(self._whole_subject, messages[-1], headers, wait_s=REQUEST_S)

    async def _sent(self, message: bytes, headers: Mapping[str, str]) -> None:
        with trio.move_on_after(REQUEST_S):
            await self._connection.send(self._whole_subject, message, headers)
            return
        raise LogUnreachable("The connection to the log broke while an entry was sent.")

    # Following.

    @asynccontextmanager
    async def follow(self, after: int) -> AsyncGenerator[AsyncGenerator[Placed, None], None]:
        """All entries behind `after` (`Log.follow`). The generator raises LogUnreachable when the server is gone."""
        async with self._connection.messages() as replies:
            consumer = f"follow-{secrets.token_hex(8)}"
            config = {
                "name": consumer,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": after + 1,
                "ack_policy": "none",
                "replay_policy": "instant",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": int(FORGOTTEN_S * _NANOSECONDS),
            }
            wanted = {"stream_name": self.name, "config": config, "action": "create"}
            _checked(await self._asked(f"CONSUMER.CREATE.{self.name}.{consumer}", wanted))
            entries = self._pulled(consumer, replies, after)
            try:
                yield entries
            finally:
                with trio.CancelScope(shield=True), suppress(LogUnreachable):
                    await entries.aclose()
                    if self._connection.server is not None:
                        await self._connection.send(f"{_API}.CONSUMER.DELETE.{self.name}.{consumer}", b"")

    async def _pulled(self, consumer: str, replies: Messages, after: int) -> AsyncGenerator[Placed, None]:
        pull = json.dumps(
            {
                "batch": PULLED,
                "max_bytes": PULLED_BYTES,
                "expires": int(PULL_S * _NANOSECONDS),
                "idle_heartbeat": int(HEARTBEAT_S * _NANOSECONDS),
            }
        ).encode()
        pieces: list[bytes] = []
        while True:
            await self._connection.send(
                f"{_API}.CONSUMER.MSG.NEXT.{self.name}.{consumer}", pull, reply=replies.subject
            )
            left = PULLED
            while left:
                message = await replies.next(3 * HEARTBEAT_S)
                if message.status == _HEARTBEAT:
                    continue
                if message.status in _NOTHING:
                    break
                if message.status == _CONFLICT and message.description in _FULL:
                    if left < PULLED:
                        break
                    continue  # it is about what was pulled before
                if message.status:
                    raise LogUnreachable(f"The log ends the reading: {message.description}.")
                left -= 1
                place = _sequence(message)
                if place <= after:
                    continue
                if place != after + 1:
                    raise Trimmed(place)
                after = place
                if message.payload[:1] == _WHOLE:
                    yield Placed(place, message.payload[1:])
                    continue
                number, count, piece = _part(message.payload, place)
                if number == 1:
                    pieces = []
                pieces.append(piece)
                if number == count == len(pieces):
                    yield Placed(place, b"".join(pieces))

    async def _asked(self, subject: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self._connection.request(
            f"{_API}.{subject}", json.dumps(body).encode(), wait_s=REQUEST_S
        )
        return _object(answer)


def _object(answer: Message) -> dict[str, Any]:
    try:
        found = json.loads(answer.payload)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise LogBroken(f"The log answers with {answer.payload[:80]!r}.")
    return found


def _error(answer: Mapping[str, Any]) -> int | None:
    """The number of the error of an answer; None if it has none."""
    error = answer.get("error")
    return None if error is None else int(error.get("err_code", 0))


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if _error(answer) is not None:
        raise _refused(answer)
    return answer


def _refused(answer: Mapping[str, Any]) -> StoreBroken | LogUnreachable:
    error = answer["error"]
    if error.get("err_code") == _NO_STREAM:
        return LogBroken("The log does not exist. It is never made again by itself.")
    # 503: there is no leader, or the servers are too busy.
    return LogUnreachable(_sentence(error)) if error.get("code") == 503 else StoreBroken(_sentence(error))


def _sentence(error: Mapping[str, Any]) -> str:
    return f"The log refuses: {error.get('description', 'unknown')} ({error.get('err_code', 0)})."


def _last_of(answer: Mapping[str, Any]) -> int:
    """The last sequence that the refusal of an append names."""
    _, _, number = str(answer["error"].get("description", "")).rpartition(" ")
    return int(number) if number.isascii() and number.isdigit() else -1


def _part(raw: bytes, place: int) -> tuple[int, int, bytes]:
    """The number of a part, that of all, and the part."""
    if len(raw) < _PART.size or raw[0] != 1:
        raise LogBroken(f"The log has a message at {place} that is not an entry.")
    _, number, count = _PART.unpack_from(raw)
    return number, count, raw[_PART.size :]


def _sequence(message: Message) -> int:
    """The sequence of a message in the stream: `$JS.ACK.stream.consumer.delivered.sequence...`, or with a domain and an
    account before the stream."""
    words = message.reply.split(".")
    return int(words[5] if len(words) == 9 else words[7])
