"""A log in a stream of NATS JetStream (2.14.5 or later).

Owns the stream, and how entries are messages of it. Does not own the connection (`nats_connection.py`) nor what the
server's answers mean (`jetstream_answers.py`).

The subject of its messages ends with a random number, the identity of the log: a stream that is removed and made again
has another one, so what an owner of the former log sends goes nowhere. Those of partition 1 and of further ones have
its number behind that. How many partitions there are is said by the metadata of the stream.

An entry is one message; one that is larger than the server takes is several, which are stored together or not at all
(an atomic batch). The place of an entry is the number of its last message in the stream, its sequence. Each message
begins with a byte: 0, then the entry; or 1, then the number of the part (from 1), that of all parts, and the part.

The stream is kept by `replicas` servers, and an acknowledgement means that a majority has the message. It is on their
disks only with `sync_interval: always` in their configuration, which a client cannot see. Only the leader of the stream
accepts an append, and compares the expected last sequence, of the stream or of a subject, with all that it has
proposed; a leader that was deposed cannot get its messages committed.

Sources: https://docs.nats.io/reference/reference-protocols/nats_api_reference and, for atomic batches,
https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-50.md
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import trio

from trunkline.store import jetstream_answers as answers
from trunkline.store.errors import LogUnreachable, StoreBroken
from trunkline.store.log import LogServer, LogState, Placed, Trimmed
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
_WHOLE: Final = b"\0"
_API: Final = "$JS.API"
_NANOSECONDS: Final = 1_000_000_000
_PARTITIONS: Final = "trunkline-partitions"
_EXPECTED: Final = "Nats-Expected-Last-Sequence"
_EXPECTED_OF_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence"

# Statuses of a reader's messages.
_HEARTBEAT: Final = 100
_NOTHING: Final = frozenset({404, 408})
"""There is nothing, or not within the time."""
_CONFLICT: Final = 409
_FULL: Final = frozenset({"Batch Completed", "Message Size Exceeds MaxBytes"})
"""As many messages were sent as were asked for, or as many bytes."""


class Stream(NamedTuple):
    """A stream: what tells it from one that is made again under its name, the number of partitions, what it has."""

    identity: str
    partitions: int
    state: LogState


class JetStreamLog:
    """Implements `Log` in the stream `name`, whose messages have a subject that begins with `subject`.

    It follows and appends to one `partition`. Nothing is appended before `create`, `look` or `identity` has found the
    whole subject.
    """

    def __init__(
        self,
        connection: NatsConnection,
        name: str,
        subject: str,
        part_bytes: int = PART_BYTES,
        partition: int = 0,
    ) -> None:
        self.name = name
        self.partition = partition
        self.partitions = 1
        self._connection = connection
        self._subject = subject
        self._whole_subject = subject
        self._part_bytes = part_bytes

    @property
    def problem(self) -> str | None:
        """Why there is no connection to its servers; None where there is one."""
        return None if self._connection.server is not None else self._connection.problem

    # The stream.

    async def create(self, replicas: int, partitions: int = 1) -> None:
        """Make the stream, unless it is there. Raises LogUnreachable, and StoreBroken if the server refuses."""
        subject = f"{self._subject}.{secrets.token_hex(8)}"
        config = {
            "name": self.name,
            "subjects": [subject, f"{subject}.*"] if partitions > 1 else [subject],
            "metadata": {_PARTITIONS: str(partitions)},
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
        if answers.error_of(answer) != answers.NAME_TAKEN:
            answers.checked(answer)
        await self.identity()

    async def identity(self) -> str:
        """What tells this log from one that is made again under its name. From now on entries are appended to this one.

        Raises LogBroken if there is none.
        """
        return self._seen(answers.checked(await self._asked(f"STREAM.INFO.{self.name}", {}))).identity

    async def look(self) -> Stream | None:
        """The stream, to which entries are appended from now on; None if there is none."""
        answer = await self._asked(f"STREAM.INFO.{self.name}", {})
        return None if answers.error_of(answer) == answers.NO_STREAM else self._seen(answers.checked(answer))

    def _seen(self, info: Mapping[str, Any]) -> Stream:
        config = info["config"]
        if not config.get("allow_atomic"):
            raise StoreBroken(
                "The NATS servers are too old for a log: they have no atomic batches. Use 2.15 or later."
            )
        self._whole_subject = min(config["subjects"], key=len)
        self.partitions = int((config.get("metadata") or {}).get(_PARTITIONS, 1))
        identity = self._whole_subject.removeprefix(self._subject)
        return Stream(identity, self.partitions, answers.state_of(info))

    async def remove(self) -> None:
        """Remove the stream and all that is in it; no error if there is none."""
        answer = await self._asked(f"STREAM.DELETE.{self.name}", {})
        if answers.error_of(answer) != answers.NO_STREAM:
            answers.checked(answer)

    async def state(self) -> LogState:
        """What the stream has. Raises LogBroken if there is none."""
        return answers.state_of(answers.checked(await self._asked(f"STREAM.INFO.{self.name}", {})))

    async def servers(self) -> list[LogServer]:
        """The servers that keep the stream, the one that leads it first; without a leader there is none that does."""
        cluster = answers.checked(await self._asked(f"STREAM.INFO.{self.name}", {})).get("cluster") or {}
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
        answers.checked(await self._asked(f"STREAM.PURGE.{self.name}", {"seq": before}))

    # Appending and reading.

    def length(self, data: bytes) -> int:
        """The number of messages of an entry."""
        return -(-len(data) // self._part_bytes) or 1

    async def append(self, data: bytes, after: int) -> int:
        """Append an entry (`Log.append`)."""
        expected = {_EXPECTED if self.partitions == 1 else _EXPECTED_OF_SUBJECT: str(after)}
        return answers.place_of(await self._append(self._messages(data), expected))

    async def entry(self, place: int) -> bytes | None:
        """The entry whose last message has this place (`Log.entry`)."""
        message = await self._message(place)
        if message is None or message[:1] == _WHOLE:
            return None if message is None else message[1:]
        _, count, last = answers.part_of(message, place)
        parts = [await self._message(each) for each in range(place - count + 1, place)]
        whole = b"".join(answers.part_of(each, place)[2] for each in parts if each is not None)
        return None if None in parts else whole + last

    async def _message(self, place: int) -> bytes | None:
        answer = await self._asked(f"STREAM.MSG.GET.{self.name}", {"seq": place})
        if answers.error_of(answer) == answers.NO_MESSAGE:
            return None
        return base64.b64decode(answers.checked(answer)["message"].get("data", ""))

    def _subject_of(self, partition: int) -> str:
        return f"{self._whole_subject}.{partition}" if partition else self._whole_subject

    def _messages(self, data: bytes) -> list[bytes]:
        size, count = self._part_bytes, self.length(data)
        if count == 1:
            return [_WHOLE + data]
        if count > PARTS_MAX:
            raise StoreBroken(f"An entry of {len(data)} bytes is too large for the log.")
        return [answers.PART.pack(1, n + 1, count) + data[n * size : (n + 1) * size] for n in range(count)]

    async def _append(self, messages: Sequence[bytes], expected: Mapping[str, str]) -> Message:
        """Append messages, the first one with the headers `expected`; several are an atomic batch.

        Of a batch each message waits for the one before it only at the start and at the end.
        """
        subject = self._subject_of(self.partition)
        if len(messages) == 1:
            return await self._connection.request(subject, messages[0], expected, wait_s=REQUEST_S)
        batch = secrets.token_hex(12)
        for number, message in enumerate(messages, 1):
            headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            if number == 1:
                headers |= expected
            if number == len(messages):
                headers["Nats-Batch-Commit"] = "1"
            elif number > 1:
                await self._sent(subject, message, headers)
                continue
            answer = await self._connection.request(subject, message, headers, wait_s=REQUEST_S)
            if answer.payload:
                break  # it is refused, or stored
        return answer

    async def _sent(self, subject: str, message: bytes, headers: Mapping[str, str]) -> None:
        with trio.move_on_after(REQUEST_S):
            await self._connection.send(subject, message, headers)
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
            if self.partitions > 1:
                config["filter_subject"] = self._subject_of(self.partition)
            wanted = {"stream_name": self.name, "config": config, "action": "create"}
            answers.checked(await self._asked(f"CONSUMER.CREATE.{self.name}.{consumer}", wanted))
            if self.partitions > 1 and (state := await self.state()).first > after + 1:
                raise Trimmed(state.first)  # what was removed may have been of this partition
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
                place = answers.sequence_of(message)
                if place <= after:
                    continue
                if place != after + 1 and self.partitions == 1:
                    raise Trimmed(place)
                after = place
                if message.payload[:1] == _WHOLE:
                    yield Placed(place, message.payload[1:])
                    continue
                number, count, piece = answers.part_of(message.payload, place)
                if number == 1:
                    pieces = []
                pieces.append(piece)
                if number == count == len(pieces):
                    yield Placed(place, b"".join(pieces))

    async def _asked(self, subject: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self._connection.request(
            f"{_API}.{subject}", json.dumps(body).encode(), wait_s=REQUEST_S
        )
        return answers.object_of(answer)
