"""The one way in: match, authenticate, check the fences, parse, ask or read, answer.

Works on plain bytes and header maps, so that Quart and any other door in front of it give the same answer
to the same request. Holds no logic of the domain: a row names a message, and the message is answered by an
actor or by a reader.

There is one pipeline with two drivers. Its steps are: admit the call, parse it, make the message, ask or read, answer.
`handle` awaits them, for any call. `begin` takes the same steps without waiting and calls back with the commit; it is
for calls whose head came before.
"""

from __future__ import annotations

from typing import Any

import msgspec
import structlog
import trio

from trunkline.actors import authority, readers
from trunkline.actors.accounts.reach import filters_by_tags, key_admits_address
from trunkline.actors.readers import LATER, read_at_once
from trunkline.actors.records.revision import WithEtag
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.runtime.system import System
from trunkline.actors.values.errors import Crashed, DomainError, Forbidden, NotFound
from trunkline.actors.values.structs import Created, Message, Renamed
from trunkline.http.calls.admissions import Admission, Admissions, Repeat
from trunkline.http.calls.auth import Tokens, check_scope
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, MethodNotAllowed, answer, rate_limit
from trunkline.http.calls.fields import OF_THE_MOMENT
from trunkline.http.calls.json_body import check, decode
from trunkline.http.calls.lane import Lane
from trunkline.http.calls.links import add_links
from trunkline.http.calls.logins import LoginGuard
from trunkline.http.calls.request import Headers, Request, Response
from trunkline.http.calls.route import Route
from trunkline.http.calls.table import RouteTable
from trunkline.http.wire.fast_path import Respond
from trunkline.http.wire.headers import Fields
from trunkline.limits.window import Verdict

_log = structlog.get_logger("trunkline.http")

Found = tuple[dict[str, Route], list[str]]
"""The rows of a path by method, and the values of its placeholders."""

_PLAIN = (JSON,)
SUCCESS = b'{"success":true}'


class Dispatcher:
    """Answers requests by the route table. `answered` counts answers by operation and status."""

    def __init__(self, system: System, tokens: Tokens, table: RouteTable, *, token_ttl_s: int) -> None:
        self.system = system
        self.tokens = tokens
        self.table = table
        self.token_ttl_s = token_ttl_s
        self.logins = LoginGuard(system.limits)
        self.lane = Lane(system.limits.bulk_items_max, system.limits.bulk_waiting_calls_max)
        self.admissions = Admissions(system.limits.pass_cache_length_max)
        self.answered: dict[tuple[str, int], int] = {}

    # The driver that awaits.

    async def handle(
        self, request: Request, found: Found | None = None, known: Admission | None = None
    ) -> Response:
        """Answer a request. Never raises anything but cancellation: every failure is an answer.

        `found` is what the table matched, `known` the admission of the call, where the caller has looked already.
        """
        operation = "none"
        try:
            if known is None or not self.holds(known):
                row, values = self._row(request, found)
                operation = row.operation
                known = self._admit(row, values, request)
            operation = known.route.operation
            response = await self._take(self._call(known, request), known.ref)
            if response.stream is not None and request.method == "HEAD":
                # A stream has a head like any answer, but no end that a client could wait for.
                response.stream.close()
                response = Response(response.status, response.headers)
        except DomainError as refusal:
            response = Response(*answer(refusal))
        except trio.Cancelled:
            raise
        except Exception as bug:  # noqa: BLE001 - whatever it is, this call gets its answer and the rest goes on
            response = Response(*answer(_crashed(operation, bug)))
        self._count(operation, response.status)
        return response

    async def _take(self, call: Call, ref: Ref | None) -> Response:
        """Answer an admitted call. `ref` is the actor that it is for, where that is known."""
        route = call.route
        self._parse(call)
        if route.prepare is not None:
            call.body = await route.prepare(call.body)
        if route.handler is not None:
            return await route.handler(call)
        assert route.message is not None
        if route.to is None:
            return reply(call, route.ok, await self.read(call, route.message))
        self.system.check_load()
        message = self.message(call, route.message)
        if route.lane and type(call.body) is list:
            async with self.lane.taken(len(call.body)):
                answered = await self.system.ask(ref or self.ref(call), message)
        else:
            answered = await self.system.ask(ref or self.ref(call), message)
        return await self._answer(call, answered.value, answered.verdict)

    async def _answer(self, call: Call, value: Any, verdict: Verdict | None) -> Response:
        """What an actor's answer is to the caller: itself, the record as it is now, or that the call succeeded."""
        route = call.route
        headers = [*_verdict_fields(route, verdict)]
        if route.answers:
            return reply(call, route.ok, value, headers)
        if route.then is None:
            return Response(route.ok, headers, SUCCESS)
        once: dict[str, str] = {}
        if isinstance(value, Created):
            assert route.made is not None
            call.ids = {**call.ids, route.made: value.id}
            once = value.shown_once
        elif isinstance(value, Renamed):
            call.ids = {**call.ids, "name": value.name}
        return reply(call, route.ok, {**await self.read(call, route.then), **once}, headers)

    # The driver that calls back.

    def recall(self, request: Request, known: Admission) -> Repeat | None:
        """What all calls that differ from `request` in nothing but the body have in common.

        None where they are more than one message, or have to be refused: `handle` knows those.
        """
        route = known.route
        if (
            route.message is None
            or route.then is not None
            or route.handler is not None
            or route.prepare is not None
        ):
            return None
        call = self._call(known, request)
        try:
            call.query, call.links = route.parser.parse(request.query)
            if route.decoder is not None:
                check(request, self.system.limits.body_bytes_max)
        except DomainError:
            return None
        fields = self.table.filled[route, route.message]
        constant = {name: source(call) for name, source in fields if name not in OF_THE_MOMENT}
        replies = known.ref is None or route.answers
        takes_now = any(name == "now_ms" for name, _ in fields)
        return Repeat(known, call if replies else None, constant, takes_now=takes_now)

    def begin(self, repeat: Repeat, body: bytes, done: Respond) -> bool:
        """Handle one more call of a kind that came before, without waiting for anything.

        Its admission has to hold, and its body to be no larger than one may be.
        True where it was taken: `done` is called once, now or with the commit, with the same answer that
        `handle` would give. False where it must go that way, and nothing was done.
        """
        system, route, ref = self.system, repeat.admission.route, repeat.admission.ref
        operation = route.operation
        begun = None
        told: tuple[int, Fields, bytes]
        try:
            if ref is None:
                value = read_at_once(system, self._repeated(repeat, None))
                if value is LATER:
                    return False
                verdict = None
            else:
                system.check_load()
                decoded = None
                if route.decoder is not None and (body or not route.optional_body):
                    decoded = decode(route.decoder, body)
                    if route.lane and type(decoded) is list:
                        return False
                begun = system.begin(ref, self._repeated(repeat, decoded))
                if begun is None:
                    return False
                value, verdict = begun.value, begun.verdict
            fields = _verdict_fields(route, verdict)
            if repeat.call is not None:
                told = reply(repeat.call, route.ok, value, [*fields]).parts
            else:
                told = (route.ok, fields, SUCCESS)
        except DomainError as refusal:
            told = answer(refusal)
        except Exception as bug:  # noqa: BLE001 - as in `handle`
            told = answer(_crashed(operation, bug))
        if begun is None or begun.group is None:
            self._count(operation, told[0])
            done(*told)
            return True

        def stored(failure: DomainError | None) -> None:
            status, fields, text = told if failure is None else answer(failure)
            self._count(operation, status)
            done(status, fields, text)

        system.when_stored(begun, stored)
        return True

    def _repeated(self, repeat: Repeat, body: Any) -> Message:
        """The message of one more call."""
        route, fields = repeat.admission.route, repeat.fields
        assert route.message is not None
        if repeat.takes_now:
            fields = {**fields, "now_ms": self.system.clock.wall_ms()}
        if route.decoder is not None:
            return route.message(body=body, **fields)
        return route.message(**fields)

    # Admission.

    def known(self, method: str, path: str, authorization: bytes | None) -> Admission | None:
        """The admission of a call that came before, None where there is none (any more)."""
        try:
            return self.admissions.find(method, path, self.tokens.caller(authorization))
        except DomainError:
            return None

    def holds(self, known: Admission) -> bool:
        """Whether an admission that was found before is still good."""
        principal = known.principal
        if principal is None or principal.revoked:
            return False
        return principal.expires_ms is None or self.system.clock.wall_ms() < principal.expires_ms

    def _row(self, request: Request, found: Found | None) -> tuple[Route, list[str]]:
        """The row of a request, and the values of its path."""
        found = found or self.table.match(request.path)
        if found is None:
            raise NotFound(f"There is nothing at {request.path[:200]}; `/docs` shows the API.")
        methods, values = found
        method = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
        row = methods.get(method)
        if row is None:
            allowed = ", ".join(sorted(methods))
            raise MethodNotAllowed(
                f"{request.method} is not a method of this path; it takes {allowed}.", allowed
            )
        return row, values

    def _admit(self, route: Route, values: list[str], request: Request) -> Admission:
        """Who calls, and whether that is allowed. Raises where it is not."""
        principal = None
        if route.access != "none":
            principal = self.tokens.caller(request.headers.get(b"authorization"))
            check_scope(route, principal)
        ids = {part.name: part.read(value) for part, value in zip(route.parts, values, strict=True)}
        if route.area == "user" and principal is not None:
            ids["user"] = principal.user_id
        call = self._call(Admission(route, principal, ids, None), request)
        self.check_fences(call)
        ref = None if route.to is None or route.creates else route.to.ref(ids)
        admission = Admission(route, principal, ids, ref)
        self.admissions.keep(request.method, request.path, admission)
        return admission

    def check_fences(self, call: Call) -> None:
        """Raise where the caller's address, application or device is not within the token's reach, or not there.

        Also asked of an open stream again whenever something has changed that its token depends on.
        """
        if call.route.access == "none":
            return
        principal, revocations = call.principal, self.system.revocations
        if principal.key and not key_admits_address(principal.key, call.request.address):
            raise Forbidden(
                "The access key of this token is not for the network address that the call came from."
            )
        application = call.ids.get("application")
        if application is not None and application not in principal.subjects:
            with self.system.store.snapshot() as snapshot:
                authority.check_application(snapshot, principal, application)
            revocations.add_subject(principal, application)
        device = call.ids.get("device")
        if device is not None and principal.kind == "device" and principal.device_id != device:
            with self.system.store.snapshot() as snapshot:
                authority.check_device(snapshot, principal, device, states=call.route.device == "self")
            if filters_by_tags(principal.key):
                revocations.add_subject(principal, device)

    # The steps in between.

    def _call(self, admission: Admission, request: Request) -> Call:
        now_ms = self.system.clock.wall_ms()
        return Call(self, admission.route, request, now_ms, admission.principal, admission.ids)

    def _parse(self, call: Call) -> None:
        """Decode the query and the body. Raises what is wrong with them."""
        route = call.route
        call.query, call.links = route.parser.parse(call.request.query)
        if route.decoder is not None and (call.request.body or not route.optional_body):
            check(call.request, self.system.limits.body_bytes_max)
            call.body = decode(route.decoder, call.request.body)

    def message(self, call: Call, message: type[Message]) -> Message:
        """A message whose fields come from the call. `message` is one of those that the row names."""
        fields = self.table.filled[call.route, message]
        return message(**{name: source(call) for name, source in fields})

    def scopes_of(self, operation: str) -> frozenset[str]:
        """The scopes of which a token needs one for an operation; none for one that is not there."""
        return self.table.scopes.get(operation, frozenset())

    def ref(self, call: Call) -> Ref:
        """The actor that the row addresses; a fresh id where the row creates it."""
        route = call.route
        assert route.to is not None
        if route.creates:
            call.ids = {**call.ids, route.to.id: self.system.ids.new(call.now_ms)}
        return route.to.ref(call.ids)

    async def read(self, call: Call, message: type[Message]) -> Any:
        """Answer a reading message whose fields come from the call."""
        return await self.read_message(self.message(call, message))

    async def read_message(self, message: Message) -> Any:
        """Answer a reading message."""
        return await readers.read(self.system, message)

    def _count(self, operation: str, status: int) -> None:
        key = (operation, status)
        self.answered[key] = self.answered.get(key, 0) + 1


def _verdict_fields(route: Route, verdict: Verdict | None) -> tuple[tuple[bytes, bytes], ...]:
    """The fields of an answer of an actor: with those of the throttle, where one applied."""
    if verdict is None:
        return _PLAIN
    assert route.throttle is not None
    return JSON, *rate_limit(route.throttle, verdict)


def _crashed(operation: str, bug: Exception) -> Crashed:
    """What is told where we failed; the fault is in the log."""
    _log.error("call failed", operation=operation, exc_info=bug)
    return Crashed("The server failed to handle this call; the fault is logged.")


def reply(call: Call, status: int, value: Any, headers: Headers | None = None) -> Response:
    """The JSON answer of a value: links where they are wanted, an entity tag and 304 where it has one."""
    headers = [JSON] if headers is None else headers
    etag = None
    if type(value) is WithEtag:
        value, etag = value
    elif isinstance(value, dict) and "_type" in value:
        etag = value.get("_etag")
        if call.links:
            add_links(value, call.route.links)
    if etag is not None:
        headers.append((b"etag", f'"{etag}"'.encode()))
        if call.route.method == "GET" and _same(call.request.header(b"if-none-match"), etag):
            return Response(304, headers)
    return Response(status, headers, msgspec.json.encode(value))


def _same(if_none_match: str | None, etag: str) -> bool:
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in if_none_match.split(",")}
    return "*" in tags or etag in tags
