"""Calls with an Idempotency-Key: a call that is repeated is answered with the stored answer of the first one.

Follows draft-ietf-httpapi-idempotency-key-header-07. Owns which calls have a key, what a key looks like, which calls
are in work, and what an answer is. Does not own how answers are stored (`actors/core/records/kept_answers.py`).

A key belongs to its caller (device, API token or user) and to the actor that the call asks: another caller with the
same key makes a call of its own, and sees no answer of somebody else. The actor stores the answer in the batch of the
effect, so a crash leaves both or neither. A call that is refused stores no answer, so it may be repeated with the same
key.

Such a call is not cancelled when its client leaves, because until its commit nobody else may make it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from trunkline.actors.core.records.kept_answers import KeptAnswer, find_answer, keep_answer, oldest_kept_ms
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid, InWork, KeyReused
from trunkline.http.calls.call import Call, Keep
from trunkline.http.calls.request import Response

if TYPE_CHECKING:
    from trunkline.actors.access.authority import Principal
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.system import System
    from trunkline.http.calls.request import Request

HEADER: Final = b"idempotency-key"
REPLAYED: Final = (b"idempotent-replayed", b"true")
"""The header of an answer that was stored by an earlier call."""

KEY_CHARACTERS_MAX: Final = 255

STRING: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
"""A String of RFC 9651, "Structured Field Values for HTTP"."""

_DIGEST_BYTES: Final = 16

Respond = Callable[[Actor, Any], Response]
"""The response to the value of an actor's turn, within that turn."""


class IdempotentCalls:
    """The calls of one server that have a key. `repeated` counts stored answers that were sent again, `forgotten`
    those that made room for others before they expired."""

    def __init__(self, system: System) -> None:
        self.repeated = 0
        self.forgotten = 0
        self._system = system
        self._in_work: dict[tuple[Ref, bytes], bytes] = {}

    def has_key(self, call: Call) -> bool:
        """Whether a call has a key that means something. Raises `Invalid` if its operation takes none.

        A read may be repeated anyway. To a webhook the header is one of those that its workflows are told.
        """
        route, request = call.route, call.request
        if HEADER not in request.headers or request.method in ("GET", "HEAD") or route.free_query:
            return False
        if not route.takes_key:
            raise Invalid(
                f"Idempotency-Key: {route.operation} does not take it, and would be done again if it is repeated; "
                "leave the header out. It is for states, commands, new events and new rows."
            )
        return True

    async def once(
        self, call: Call, ref: Ref, ask: Callable[[], Awaitable[Response]], respond: Respond
    ) -> Response:
        """Make a call with a key, or answer it with the stored answer.

        `ref` is the owner of the answer. `ask` makes the call, and has what is in `call.keep` add the answer to its
        writes: `respond` of the value of a turn, or what a handler gives. Raises `Invalid` for a malformed key,
        `InWork` while the first call is in work, `KeyReused` for a key of another request, and what `ask` raises.
        """
        key = _key(call.request)
        digest, request = _digest_of_key(call.principal, key), _digest_of_request(call.request)
        in_work = self._in_work.get((ref, digest))
        stored = None if in_work is not None else self._find(ref, digest)
        first = in_work if stored is None else stored.request
        if first not in (None, request):
            raise KeyReused(
                f"Idempotency-Key: the key {_shown(key)} belongs to a call with another path, query or body; "
                "give each call a key of its own, and repeat a call byte for byte."
            )
        if in_work is not None:
            raise InWork(
                f"Idempotency-Key: the first call with the key {_shown(key)} is still in work; repeat it in a second."
            )
        if stored is not None:
            self.repeated += 1
            return Response(stored.status, [*stored.headers, REPLAYED], stored.body)

        def add(response: Response, batch: Any) -> None:
            answer = KeptAnswer(request, response.status, response.headers, response.body)
            self.forgotten += keep_answer(self._system, batch, ref, digest, answer)

        call.keep = Keep(lambda actor, value: add(respond(actor, value), actor.writes()), add)
        self._in_work[ref, digest] = request
        try:
            with trio.CancelScope(shield=True):
                response = await ask()
        finally:
            del self._in_work[ref, digest]
        return response

    def _find(self, ref: Ref, digest: bytes) -> KeptAnswer | None:
        oldest_ms = oldest_kept_ms(self._system.limits, self._system.clock.wall_ms())
        with self._system.store.snapshot() as snapshot:
            return find_answer(snapshot.get, ref, digest, oldest_ms)


def _key(request: Request) -> str:
    """The key of a request as it was sent, in quotation marks. Raises `Invalid` for another form."""
    given = (request.header(HEADER) or "").strip(" ")
    found = STRING.fullmatch(given)
    if found is None:
        example = (
            given
            if re.fullmatch(r"[\w.:-]{1,64}", given, re.ASCII)
            else "8e03978e-40d5-43e8-bc93-6894a57f9324"
        )
        raise Invalid(
            f"Idempotency-Key: {_shown(given)} is not a string in double quotes; send it in the form "
            f'"{example}", of printable ASCII characters, with \\ before each \\ and each double quote in it.'
        )
    if not found[1] or len(found[1]) > KEY_CHARACTERS_MAX:
        raise Invalid(
            f"Idempotency-Key: the key has {len(found[1])} characters; give 1 to {KEY_CHARACTERS_MAX}, such as a UUID."
        )
    return given


def _shown(key: str) -> str:
    return key if len(key) <= 64 else f"{key[:64]}..."


def _digest_of_key(principal: Principal, key: str) -> bytes:
    caller = principal.device_id or principal.token_id or principal.user_id or principal.application_id or b""
    return hashlib.sha256(b"\0".join((principal.kind.encode(), caller, key.encode()))).digest()[
        :_DIGEST_BYTES
    ]


def _digest_of_request(request: Request) -> bytes:
    head = f"{request.method} {request.path}?".encode("utf-8", "surrogatepass")
    return hashlib.sha256(head + request.query + b"\n" + request.body).digest()[:_DIGEST_BYTES]
