"""The one way in: match, authenticate, check the fences, parse, ask or read, answer.

Works on plain bytes and header maps, so that Quart and any other door in front of it give the same answer
to the same request. Holds no logic of the domain: a row names a message, and the message is answered by an
actor or by a reader.
"""

from __future__ import annotations

from typing import Any

import msgspec
import structlog
import trio

from trunkline.actors import authority, readers
from trunkline.actors.jobs.kind import parse_job_id
from trunkline.actors.readers import LATER, read_at_once
from trunkline.actors.records.records import Tagged
from trunkline.actors.runtime.actor import Ref
from trunkline.actors.runtime.system import System
from trunkline.actors.values.errors import Crashed, DomainError, Forbidden, NotFound
from trunkline.actors.values.ids import ROOT, parse_id
from trunkline.actors.values.structs import Message
from trunkline.http.calls.admissions import Pass, Passes, Repeat
from trunkline.http.calls.auth import Tokens, check_scope
from trunkline.http.calls.call import Call, Request, Response
from trunkline.http.calls.errors import JSON, MethodNotAllowed, answer, rate_limit
from trunkline.http.calls.json_body import check, decode
from trunkline.http.calls.lane import Lane
from trunkline.http.calls.links import with_links
from trunkline.http.calls.logins import LoginGuard
from trunkline.http.calls.route import Route, RouteTable
from trunkline.http.wire.fast_path import Respond
from trunkline.http.wire.headers import Fields
from trunkline.limits.window import Verdict

_log = structlog.get_logger("trunkline.http")

Found = tuple[dict[str, Route], list[str]]
"""The rows of a path by method, and the values of its placeholders."""

_PLAIN = (JSON,)
SUCCESS = b'{"success":true}'
_RECORD_IDS = frozenset({"apiTokenId", "applicationKeyId", "eventId"})


class Dispatcher:
    """Answers requests by the route table. `answered` counts answers by operation and status."""

    def __init__(self, system: System, tokens: Tokens, table: RouteTable, *, token_ttl_s: int) -> None:
        self.system = system
        self.tokens = tokens
        self.table = table
        self.token_ttl_s = token_ttl_s
        self.logins = LoginGuard(system.limits)
        self.lane = Lane(system.limits.bulk_items_max, system.limits.bulk_waiting_calls_max)
        self.passes = Passes(system.limits.pass_cache_length_max)
        self.answered: dict[tuple[str, int], int] = {}

    def known(self, method: str, path: str, authorization: bytes | None) -> Pass | None:
        """The pass of a call that came before, None where there is none (any more)."""
        try:
            return self.passes.find(method, path, self.tokens.caller(authorization))
        except DomainError:
            return None

    async def handle(
        self, request: Request, found: Found | None = None, known: Pass | None = None
    ) -> Response:
        """Answer a request. Never raises anything but cancellation: every failure is an answer.

        `found` is what the table matched, `known` the pass of the call, where the caller has looked already.
        """
        operation = "none"
        try:
            if known is not None and self.holds(known):
                route = known.route
                operation = route.operation
                response = await self._repeat(known, request)
            else:
                methods, values = found or self._match(request.path)
                method = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
                row = methods.get(method)
                if row is None:
                    allowed = ", ".join(sorted(methods))
                    raise MethodNotAllowed(
                        f"{request.method} is not a method of this path; it takes {allowed}.", allowed
                    )
                operation = row.operation
                response = await self._call(row, values, request)
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

    def recall(self, request: Request, known: Pass) -> Repeat | None:
        """What all calls that differ from `request` in nothing but the body have in common.

        None where they are more than one message, or have to be refused: `handle` knows those.
        """
        route = known.route
        if route.message is None or route.then is not None or route.handler is not None:
            return None
        names = set(route.message.__struct_fields__)
        if "address" in names:
            return None  # it differs by connection
        call = self._call_of(known, request)
        try:
            assert route.parser is not None
            call.query, call.links = route.parser.parse(request.query)
            if route.decoder is not None:
                check(request, self.system.limits.body_bytes_max)
        except DomainError:
            return None
        fields = {name: getattr(call, name) for name in names - {"body", "now_ms"}}
        replies = known.ref is None or route.answers
        return Repeat(known, call if replies else None, fields, takes_now="now_ms" in names)

    def begin(self, repeat: Repeat, body: bytes, done: Respond) -> bool:
        """Handle one more call of a kind that came before, without waiting for anything.

        Its pass has to hold, and its body to be no larger than one may be.
        True where it was taken: `done` is called once, now or with the commit, with the same answer that
        `handle` would give. False where it must go that way, and nothing was done.
        """
        system, route, ref = self.system, repeat.known.route, repeat.known.ref
        operation = route.operation
        begun = None
        told: tuple[int, Fields, bytes]
        try:
            if ref is None:
                value = read_at_once(system, self._repeated(repeat, None))
                if value is LATER:
                    return False
                assert repeat.call is not None
                told = reply(repeat.call, route.ok, value).parts
            else:
                system.check_crowd()
                decoded = None
                if route.decoder is not None and (body or not route.optional_body):
                    decoded = decode(route.decoder, body)
                    if route.lane and type(decoded) is list:
                        return False
                begun = system.begin(ref, self._repeated(repeat, decoded))
                if begun is None:
                    return False
                fields = _verdict_fields(route, begun.verdict)
                if repeat.call is not None:
                    told = reply(repeat.call, route.ok, begun.value, [*fields]).parts
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
        route, fields = repeat.known.route, repeat.fields
        assert route.message is not None
        if repeat.takes_now:
            fields = {**fields, "now_ms": self.system.clock.wall_ms()}
        if route.decoder is not None:
            return route.message(body=body, **fields)
        return route.message(**fields)

    def _count(self, operation: str, status: int) -> None:
        key = (operation, status)
        self.answered[key] = self.answered.get(key, 0) + 1

    def _match(self, path: str) -> Found:
        found = self.table.match(path)
        if found is None:
            raise NotFound(f"There is nothing at {path[:200]}; `/docs` shows the API.")
        return found

    async def _call(self, route: Route, values: list[str], request: Request) -> Response:
        call = Call(self, route, request, self.system.clock.wall_ms())
        if route.access != "none":
            call.principal = self.tokens.caller(request.headers.get(b"authorization"))
            check_scope(route, call.principal)
        self._place(call, values)
        self.check_fences(call)
        if route.hot and route.creates is None:
            ref = None if route.to is None else self.ref(call)
            self.passes.keep(call, ref, self.system.authority_epoch)
        return await self._admitted(call, None)

    def holds(self, known: Pass) -> bool:
        """Whether a pass that was found before is still good."""
        expires_ms = known.principal.expires_ms
        return known.epoch == self.system.authority_epoch and (
            expires_ms is None or self.system.clock.wall_ms() < expires_ms
        )

    async def _repeat(self, known: Pass, request: Request) -> Response:
        """Answer a call that is admitted by its pass."""
        return await self._admitted(self._call_of(known, request), known.ref)

    def _call_of(self, known: Pass, request: Request) -> Call:
        call = Call(self, known.route, request, self.system.clock.wall_ms())
        call.principal = known.principal
        call.application = known.application
        call.device = known.device
        call.table = known.table
        return call

    async def _admitted(self, call: Call, ref: Ref | None) -> Response:
        """Parse what the call brings and answer it. `ref` is the actor that it is for, where that is known."""
        self._parse(call)
        if call.route.handler is not None:
            return await call.route.handler(call)
        return await self._answer(call, ref)

    def _parse(self, call: Call) -> None:
        """Decode the query and the body. Raises what is wrong with them."""
        route = call.route
        assert route.parser is not None
        call.query, call.links = route.parser.parse(call.request.query)
        if route.decoder is not None and (call.request.body or not route.optional_body):
            check(call.request, self.system.limits.body_bytes_max)
            call.body = decode(route.decoder, call.request.body)

    def _place(self, call: Call, values: list[str]) -> None:
        """Put the values of the path's placeholders where messages look for them."""
        for name, value in zip(call.route.params, values, strict=True):
            if name == "applicationId":
                call.application = parse_id(value, name)
            elif name == "deviceId":
                call.device = parse_id(value, name)
            elif name in _RECORD_IDS:
                call.record = parse_id(value, name)
            elif name == "jobId":
                call.record = parse_job_id(value)
            elif name == "dataTableId":
                call.table = parse_id(value, name)
            elif name == "rowId":
                call.row = parse_id(value, name)
            else:
                call.name = value

    def _check_address(self, call: Call) -> None:
        key = call.principal.key
        if key and not authority.key_admits_address(key, call.address):
            raise Forbidden(
                "The access key of this token is not for the network address that the call came from."
            )

    def check_fences(self, call: Call) -> None:
        """Raise where the caller's address, application or device is not within the token's reach, or not there.

        Also asked of an open stream again whenever something about authority has changed.
        """
        if call.route.access == "none":
            return
        principal = call.principal
        self._check_address(call)
        if call.application is not None and not (
            principal.application_id == call.application or call.application in principal.owns
        ):
            with self.system.store.snapshot() as snapshot:
                authority.check_application(snapshot, principal, call.application)
        if call.device is not None and principal.kind == "device" and principal.device_id != call.device:
            with self.system.store.snapshot() as snapshot:
                authority.check_device(snapshot, principal, call.device, states=call.route.device == "self")

    async def _answer(self, call: Call, ref: Ref | None) -> Response:
        route = call.route
        assert route.message is not None
        if route.to is None:
            headers = [JSON]
            value = await self.read(call, route.message)
        else:
            self.system.check_crowd()
            message = self.message(call, route.message)
            if route.lane and type(call.body) is list:
                async with self.lane.taken(len(call.body)):
                    answered = await self.system.ask(ref or self.ref(call), message)
            else:
                answered = await self.system.ask(ref or self.ref(call), message)
            headers = [*_verdict_fields(route, answered.verdict)]
            if route.answers:
                return reply(call, route.ok, answered.value, headers)
            self._keep(call, answered.value)
            if route.then is None:
                return Response(route.ok, headers, SUCCESS)
            value = await self.read(call, route.then)
        return reply(call, route.ok, value, headers)

    def _keep(self, call: Call, value: Any) -> None:
        """Remember the id (or the name) that an ask gave back, for the read that follows."""
        if call.route.creates == "device":
            call.device = value
        elif call.route.creates == "application":
            call.application = value
        elif call.route.creates == "dataTable":
            call.table = value
        elif call.route.creates == "record":
            call.record = value.id
        elif isinstance(value, str):
            call.name = value

    # For handlers as well.

    async def read(self, call: Call, message: type[Message]) -> Any:
        """Answer a reading message whose fields come from the call."""
        return await self.read_message(self.message(call, message))

    async def read_message(self, message: Message) -> Any:
        """Answer a reading message."""
        return await readers.read(self.system, message)

    def message(self, call: Call, message: type[Message]) -> Message:
        """Make a message of this type out of the call."""
        return message(**{field: getattr(call, field) for field in message.__struct_fields__})

    def ref(self, call: Call) -> Ref:
        """The actor that the row addresses; a fresh id where the row creates it."""
        route = call.route
        if route.to == "device":
            id = self.system.ids.new(call.now_ms) if route.creates == "device" else call.device
            assert call.application is not None
            assert id is not None
            return Ref("device", call.application, id)
        if route.to == "dataTable":
            id = self.system.ids.new(call.now_ms) if route.creates == "dataTable" else call.table
            assert call.application is not None
            assert id is not None
            return Ref("dataTable", call.application, id)
        if route.to == "application":
            id = self.system.ids.new(call.now_ms) if route.creates == "application" else call.application
            assert id is not None
            return Ref("application", ROOT, id)
        if route.to == "eventLog":
            assert call.application is not None
            return Ref("eventLog", call.application, call.application)
        assert call.principal.user_id is not None
        return Ref("user", ROOT, call.principal.user_id)


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


def reply(call: Call, status: int, value: Any, headers: list[tuple[bytes, bytes]] | None = None) -> Response:
    """The JSON answer of a value: links where they are wanted, an entity tag and 304 where it has one."""
    headers = [JSON] if headers is None else headers
    etag = None
    if type(value) is Tagged:
        value, etag = value
    elif isinstance(value, dict) and "_type" in value:
        etag = value.get("_etag")
        if call.links:
            with_links(value)
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
