"""The message to a webhook, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.structs import Message


class ReceiveCall(Message, frozen=True):
    """A call of the address. The answer is a `CallAnswer`.

    `url` is the whole address as the caller knows it, `client` the network address of the caller. Names of `headers`
    are in lower case. Everything comes from somebody who knows the token, and is not checked yet. `told` is what
    workflows get of the call, in the version `flow_version`; if the caller `waits`, a reply goes to `reply_id`, which
    no other call has.
    """

    throttle: ClassVar[str | None] = "webhook_call"

    method: str
    url: str
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes
    client: str = ""
    told: Doc = msgspec.field(default_factory=dict)
    flow_version: str | None = None
    reply_id: str = ""
    waits: bool = False


class ReceiveSignedCall(ReceiveCall, frozen=True):
    """A call of the address that is signed with a certificate, which has to be fetched first."""


class OpenConnection(ReceiveCall, frozen=True):
    """A WebSocket connection that a client wants to open. It counts as a call; without a refusal it is accepted.

    `connection` is its id; workflows send to `reply_id`. `told` is what every run of the connection gets.
    """

    connection: bytes = b""


class TakeClientMessage(Message, frozen=True):
    """A message of the client of a connection, whose other fields are those of its `OpenConnection`."""

    throttle: ClassVar[str | None] = "webhook_call"

    content: bytes
    is_text: bool
    told: Doc
    reply_id: str
    flow_version: str | None


class NoteConnectionEnd(Message, frozen=True):
    """A connection has ended. Told once, however often it is noted."""

    connection: bytes
    code: int
    reason: str


class CallAnswer(msgspec.Struct, frozen=True):
    """The answer to a call: a status, with `{"success": true}` or the text that a sender expects of a handshake.

    `waits`: the answer is the reply of a workflow. `not_served` says why the webhook cannot take the call; then nothing
    was stored.
    """

    status: int = 200
    text: str | None = None
    waits: bool = False
    not_served: str | None = None


class WebhookReply(msgspec.Struct, frozen=True):
    """What a workflow answers a call with. It goes to `Replies.reply` with the `replyId` of the trigger's payload."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | str = b""
