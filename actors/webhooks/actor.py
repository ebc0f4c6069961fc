"""The webhook actor: takes the calls of one webhook's address.

Its mailbox has the throttle. Its record belongs to the application, which may change it between two calls, so each turn
reads it anew.
"""

from __future__ import annotations

from typing import ClassVar, Final

from trunkline.actors.records.kind import Doc
from trunkline.actors.runtime.actor import Actor
from trunkline.actors.triggers.index import FlowIndex, Watcher
from trunkline.actors.triggers.intake import Cause, stage
from trunkline.actors.triggers.replies import Replies
from trunkline.actors.values.errors import NotFound
from trunkline.actors.values.origin import Origin
from trunkline.actors.values.timestamps import HOUR_MS
from trunkline.actors.webhooks.alexa import AlexaCertificates, check_call
from trunkline.actors.webhooks.kind import WEBHOOK
from trunkline.actors.webhooks.messages import CallAnswer, ReceiveCall, ReceiveSignedCall
from trunkline.actors.webhooks.verification import check_password, check_sender
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.keyring import Keyring

_FINAL_STATUS_MIN: Final = 200
_WEBSOCKET: Final = "This webhook takes WebSocket connections, which this server does not serve yet."
_NO_REPLY: Final = (
    "This webhook waits for the reply of a workflow, and no enabled workflow is triggered by it."
)


class Webhook(Actor):
    """One webhook of an application. `ref.parent` is the application."""

    kind: ClassVar[str] = "webhook"
    noun: ClassVar[str] = "webhook"

    __slots__ = ()

    def load(self) -> bool:
        return self._stored() is not None

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

    def _answer(self, doc: Doc, call: ReceiveCall) -> CallAnswer:
        """Take a call that is verified, and answer it."""
        if doc["isWebsocket"]:
            return CallAnswer(not_served=_WEBSOCKET)
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
        hour = now_ms // HOUR_MS
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, hour), {"webhook": 1})
        data = {**call.told, "replyId": call.reply_id} if waits else call.told
        # Calls need not wait for each other, so each is a lane of its own.
        cause = Cause(call.reply_id, data, now_ms, {"triggerId": id}, Origin(id, "webhook"))
        runs = stage(self, watchers, cause)
        self.system.component(Replies).count_runs(self.ref.parent, call.reply_id, len(runs))

    def _check_password(self, doc: Doc, call: ReceiveCall) -> None:
        username, sealed = doc.get("basicAuthUsername"), doc.get("basicAuthPassword")
        if username is None and sealed is None:
            return
        password = None
        if sealed is not None:
            keyring = self.system.component(Keyring)
            password = keyring.unseal(sealed, kind=WEBHOOK.name, id=self.ref.id, field="basicAuthPassword")
        check_password(call, username or "", password)

    def _doc(self) -> Doc:
        raw = self._stored()
        if raw is None:
            raise NotFound("There is no webhook at this address.")
        doc: Doc = decode(raw)
        return doc

    def _stored(self) -> bytes | None:
        key = keys.record_key(WEBHOOK.name, self.ref.parent, self.ref.id)
        return self.system.journal.get(keys.RECORDS, key)
