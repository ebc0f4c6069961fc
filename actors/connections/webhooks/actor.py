"""The webhook actor: takes the calls of one webhook's address, and what comes on its WebSocket connections.

Its mailbox has the throttle. Its record belongs to the application, which may change it between two calls, so each turn
reads it anew.

The connection of a client is noted in the batch that triggers its beginning, and the note is removed in the batch that
triggers its end. So each beginning that workflows are told of has one end, also if the server is killed in between.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from trunkline.actors.connections.webhooks.alexa import AlexaCertificates, check_call
from trunkline.actors.connections.webhooks.kind import WEBHOOK
from trunkline.actors.connections.webhooks.messages import (
    CallAnswer,
    NoteConnectionEnd,
    OpenConnection,
    ReceiveCall,
    ReceiveSignedCall,
    TakeClientMessage,
)
from trunkline.actors.connections.webhooks.verification import check_password, check_sender
from trunkline.actors.core.formulas.byte_texts import shown
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Forbidden, Invalid, NotFound, Unauthorized
from trunkline.actors.core.values.origin import PUBLIC
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.people.accounts.application_log_ins import ApplicationLogIns
from trunkline.actors.workflows.triggers.index import FlowIndex, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.store import keys
from trunkline.store.codec import decode, encode
from trunkline.store.keyring import Keyring

_FINAL_STATUS_MIN: Final = 200
_NO_REPLY: Final = (
    "This webhook waits for the reply of a workflow, and no enabled workflow is triggered by it."
)


Kept = tuple[str, Doc, str | None]
"""What is kept of an open connection: where workflows reply to, what they are told, and in which version they run."""


class Webhook(Actor):
    """One webhook of an application. `ref.parent` is the application."""

    kind: ClassVar[str] = "webhook"
    noun: ClassVar[str] = "webhook"

    __slots__ = ()

    def load(self) -> bool:
        return True  # the end of a connection is told also when its webhook is gone; the rest is checked in each turn

    def on_receive_call(self, call: ReceiveCall) -> CallAnswer:
        """Check who calls, and take the call. A disabled webhook succeeds and takes nothing."""
        doc = self._doc()
        if not doc["enabled"]:
            return CallAnswer()
        self._check_password(doc, call)
        handshake = check_sender(doc, call)
        if handshake is not None:
            return handshake
        return self._answer(doc, call)

    async def on_receive_signed_call(self, call: ReceiveSignedCall) -> CallAnswer:
        """The same for a call of Alexa; it waits for the certificate of the signer, if that is not known yet."""
        doc = self._doc()
        if not doc["enabled"]:
            return CallAnswer()
        self._check_password(doc, call)
        clock = self.system.clock
        url = call.headers.get(b"signaturecertchainurl", b"").decode("latin1")
        key = await self.system.component(AlexaCertificates).key(url, clock.wall_ms())
        doc = self._doc()
        check_call(call, key, doc.get("verificationCode") or "", clock.wall_ms())
        return self._answer(doc, call)

    # Connections.

    def on_open_connection(self, message: OpenConnection) -> None:
        """Check who connects, trigger what waits for a connection, and note that its end has to be told."""
        doc = self._doc()
        if not doc["enabled"]:
            raise Forbidden("This webhook is disabled; it takes no connections.")
        if not doc["isWebsocket"]:
            raise Invalid(
                "Upgrade: this webhook takes HTTP requests; WebSocket connections need one with isWebsocket."
            )
        self._check_password(doc, message)
        if doc["verificationType"] == "alexa":
            raise Forbidden("verificationType: Alexa opens no WebSocket connections; change it to none.")
        check_sender(doc, message)
        kept: Kept = (message.reply_id, message.told, message.flow_version)
        self.put(keys.META, self._connection_key(message.connection), encode(kept))
        self._count()
        self._tell(kept, "connect", {})

    def on_take_client_message(self, message: TakeClientMessage) -> None:
        """Trigger what waits for a message."""
        doc = self._doc()
        self._count()
        told = {"data": _shown(message, doc.get("castBuffersAs")), "length": len(message.content)}
        self._tell((message.reply_id, message.told, message.flow_version), "message", told)

    def on_note_connection_end(self, message: NoteConnectionEnd) -> None:
        """Trigger what waits for the end of a connection, unless that was done."""
        key = self._connection_key(message.connection)
        raw = self.system.journal.get(keys.META, key)
        if raw is None:
            return
        self.delete(keys.META, key)
        self._tell(decode(raw), "disconnect", {"statusCode": message.code, "reason": message.reason})

    def _tell(self, kept: Kept, type: str, message: Doc) -> None:
        """Stage the runs of a connection, which are a lane of their own: one after the other, in this order."""
        reply_id, told, version = kept
        id = self.ref.id.hex()
        watchers = self.system.component(FlowIndex).of(self.ref.parent, version).get("webhook", id)
        data = {**told, "replyId": reply_id, "type": type, "message": message}
        now_ms = self.system.clock.wall_ms()
        stage(self, watchers, Cause(reply_id, data, now_ms, {"triggerId": id}, PUBLIC))

    def _connection_key(self, connection: bytes) -> bytes:
        return keys.webhook_connection_key(self.ref.parent, self.ref.id, connection)

    # Calls.

    def _answer(self, doc: Doc, call: ReceiveCall) -> CallAnswer:
        """Take a call that is verified, and answer it."""
        waits = doc["waitForReply"] and call.waits
        triggers = self.system.component(FlowIndex).of(self.ref.parent, call.flow_version)
        watchers = triggers.get("webhook", self.ref.id.hex())
        if waits and not watchers:
            return CallAnswer(not_served=_NO_REPLY)
        self._take(call, watchers, waits=waits)
        if waits:
            return CallAnswer(waits=True)
        # Codes below 200 announce an answer and are none themselves.
        code = int(doc["responseCode"])
        return CallAnswer(code if code >= _FINAL_STATUS_MIN else 200)

    def _take(self, call: ReceiveCall, watchers: tuple[Watcher, ...], *, waits: bool) -> None:
        """Stage what a call leaves behind, as one batch: so what it triggers is on disk before it is answered."""
        now_ms, id = self.system.clock.wall_ms(), self.ref.id.hex()
        self._count()
        data = {**call.told, "replyId": call.reply_id} if waits else call.told
        # Calls need not wait for each other, so each is a lane of its own.
        cause = Cause(call.reply_id, data, now_ms, {"triggerId": id}, PUBLIC)
        runs = stage(self, watchers, cause)
        self.system.component(Replies).count_runs(self.ref.parent, call.reply_id, len(runs))

    def _count(self) -> None:
        hour = self.system.clock.wall_ms() // HOUR_MS
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, hour), {"webhook": 1})

    def _check_password(self, doc: Doc, call: ReceiveCall) -> None:
        username, sealed = doc.get("basicAuthUsername"), doc.get("basicAuthPassword")
        if not username and sealed is None:
            return
        password = None
        if sealed is not None:
            keyring = self.system.component(Keyring)
            password = keyring.unseal(sealed, kind=WEBHOOK.name, id=self.ref.id, field="basicAuthPassword")
        if not username and not password:  # exports have empty texts for what is not set
            return
        log_ins, account = self.system.component(ApplicationLogIns), f"webhook {self.ref.id.hex()}"
        log_ins.check(self.ref.parent, account, call.client)
        try:
            check_password(call, username or "", password)
        except Unauthorized:
            if b"authorization" in call.headers:
                log_ins.note_failure(self.ref.parent, account, call.client)
            raise

    def _doc(self) -> Doc:
        key = keys.record_key(WEBHOOK.name, self.ref.parent, self.ref.id)
        raw = self.system.journal.get(keys.RECORDS, key)
        if raw is None:
            raise NotFound("There is no webhook at this address.")
        doc: Doc = decode(raw)
        return doc


def _shown(message: TakeClientMessage, cast: str | None) -> Any:
    """The content of a message: a text, or, if bytes are cast to an array, their numbers."""
    return shown(message.content, "utf8" if message.is_text or cast is None else cast)
