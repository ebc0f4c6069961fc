"""The dispatcher: from a `Request` to its `Response`, for every operation of the API.

It knows neither Quart nor the engine, so that every path through them gives the same response to the same request. It
has no domain logic: a route names a message, and an actor or a reader answers the message.

There is one pipeline with two drivers. Its steps are: admit the call (`admissions.py`), parse it (`parsing.py`), build
the message, ask or read, and build the response (`responses.py`). `handle` awaits the steps, for any call. `begin` runs
the same steps without waiting and calls back after the commit; it is for calls with a request head that was handled
before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

import structlog
import trio

from trunkline.actors import readers
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.runtime.work import current_work, noted
from trunkline.actors.core.values.errors import Crashed, DomainError
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.state.traffic import Traffic
from trunkline.actors.people.accounts.login_throttle import LoginThrottle
from trunkline.actors.readers import LATER, read_at_once
from trunkline.http.calls.admissions import Admission, Admissions, CallTemplate
from trunkline.http.calls.audit import execute_audited
from trunkline.http.calls.auth import Tokens
from trunkline.http.calls.call import Call
from trunkline.http.calls.call_statistics import CallStatistics
from trunkline.http.calls.call_turns import CallTurns
from trunkline.http.calls.errors import error_response
from trunkline.http.calls.idempotency import IdempotentCalls
from trunkline.http.calls.json_body import check, decode, is_long_work
from trunkline.http.calls.login_failures import LoginFailures
from trunkline.http.calls.message_fields import PER_CALL_FIELDS
from trunkline.http.calls.parsing import parse_body, parse_query
from trunkline.http.calls.public_answers import PublicAnswers
from trunkline.http.calls.request import Request, Response, Withheld, check_current
from trunkline.http.calls.responses import (
    SUCCESS,
    json_response,
    response_headers,
    response_to,
    take_ids,
)
from trunkline.http.calls.route import Route
from trunkline.http.calls.route_table import RouteMatch, RouteTable
from trunkline.http.wire.fast_path import Respond
from trunkline.http.wire.headers import Fields
from trunkline.http.wire.request_context import note_work

_log = structlog.get_logger("trunkline.http")


class Dispatcher:
    """Handles requests by the route table. `statistics` counts the responses."""

    def __init__(self, system: System, tokens: Tokens, table: RouteTable, *, token_ttl_s: int) -> None:
        self.system = system
        self.tokens = tokens
        self.table = table
        self.token_ttl_s = token_ttl_s
        self.login_throttle = LoginThrottle(system.limits)
        self.login_failures = LoginFailures(system.limits.logged_logins_per_minute_max)
        self.public_answers = PublicAnswers(system.limits)
        self.idempotent_calls = IdempotentCalls(system)
        limits = system.limits
        self.bulk_calls = OwnerShares("bulk calls", limits.bulk_items_max, limits.bulk_waiting_calls_max)
        self.admissions = Admissions(self, table)
        self.statistics = CallStatistics()
        self.certificate_expires_s: Callable[[], float] = lambda: math.inf
        """When the certificate of the server expires, in seconds since 1970; for the metrics."""
        commits = system.journal.statistics
        self.call_turns = CallTurns(
            system.component(Owners).charged,
            lambda: (commits.commits, commits.total_commit_s),
            system.component(LoopWatch).lap,
        )
        self.places = None if system.store.partitions is None else system.component(Places)
        self._count = self.statistics.add

    # The driver that awaits.

    async def handle(
        self, request: Request, match: RouteMatch | None = None, admission: Admission | None = None
    ) -> Response:
        """Handle a request. Raises only `trio.Cancelled`: every failure becomes a response.

        `match` (of the route table) and `admission` are passed if the caller has looked them up already.
        """
        began_s = perf_counter()
        route: Route | None = None
        call: Call | None = None
        try:
            if admission is None or not self.admissions.is_valid(admission):
                route, values = self.admissions.find_route(request, match)
                admission = self.admissions.admit(route, values, request)
            else:
                note_work(admission.work)
            route = admission.route
            current_work.set(admission.work)
            call = self._call(admission, request)
            if route.audited:
                execute = partial(self._execute, call, admission.ref)
                response = await execute_audited(call, self._reads_same_path(request), execute)
            else:
                response = await self._execute(call, admission.ref)
                if route.is_read:
                    check_current(self.system, response.stream)
            if response.stream is not None and request.method == "HEAD":
                response.stream.close()
                response = Response(response.status, response.headers, stream=Withheld())
        except DomainError as reason:
            refusal = self.system.checked(reason)
            response = Response(*error_response(refusal))
            if call is not None:
                self._note_refusal(call.route, call.ids, refusal)
        except trio.Cancelled:
            raise
        except Exception as bug:  # noqa: BLE001 - a bug in one call must not affect others
            crash = _log_crash(route, bug)
            response = Response(*error_response(crash))
            if call is not None:
                self._note_refusal(call.route, call.ids, crash)
        self._count(route, response.status, began_s, is_backlog=call is not None and call.is_backlog)
        return response

    def _reads_same_path(self, request: Request) -> Route | None:
        """The route that reads what is at the path of a request, if there is one."""
        match = self.table.match(request.path)
        return None if match is None else match[0].get("GET")

    async def _execute(self, call: Call, ref: Ref | None) -> Response:
        """Execute an admitted call, once if it has a key. `ref` is the actor to ask, if it is known already."""
        if self.idempotent_calls.has_key(call):
            return await self.idempotent_calls.once(
                call, ref or self.ref(call), partial(self._execute_now, call, ref), partial(self._keep, call)
            )
        return await self._execute_now(call, ref)

    async def _execute_now(self, call: Call, ref: Ref | None) -> Response:
        route = call.route
        parse_query(call)
        if call.is_backlog:
            assert route.backlog_handler is not None
            return await route.backlog_handler(call)
        await parse_body(call)
        if route.prepare is not None:
            call.body = await route.prepare(call.body)
        if route.handler is not None:
            return await route.handler(call)
        assert route.message is not None
        if route.to is None:
            return await self._response_of_read(call)
        self.system.check_load()
        message = self.message(call, route.message)
        if route.bulk and type(call.body) is list:
            async with self.bulk_calls.place(self.system.payer(), len(call.body)):
                value, verdict = await self.system.ask(ref or self.ref(call), message, call.stamp)
        else:
            value, verdict = await self.system.ask(ref or self.ref(call), message, call.stamp)
        shown_once = take_ids(call, value)
        if route.then is not None:
            value = call.shown or {**await self.read(call, route.then), **shown_once}
        return response_to(call, value, verdict)

    def _keep(self, call: Call, actor: Actor, value: Any) -> Response:
        """The response to the value of a turn that is not over: the one to keep for repetitions."""
        then, shown_once = call.route.then, take_ids(call, value)
        if then is not None:
            value = call.shown = {**readers.read_in_turn(actor, self.message(call, then)), **shown_once}
        return response_to(call, value, None)

    # The driver that calls back.

    def make_template(self, request: Request, admission: Admission) -> CallTemplate | None:
        """What all calls that differ from `request` only in the body have in common.

        None if such calls need more than one message, or must be refused; then `handle` must handle them.
        """
        route = admission.route
        if (
            route.message is None
            or route.then is not None
            or route.handler is not None
            or route.prepare is not None
        ):
            return None
        call = self._call(admission, request)
        try:
            call.query, call.with_links = route.parser.parse(request.query)
            if call.is_backlog:
                return None
            if route.decoder is not None:
                check(request, self.system.limits.body_bytes_max)
        except DomainError:
            return None
        fields = self.table.field_sources[route, route.message]
        constant = {name: source(call) for name, source in fields if name not in PER_CALL_FIELDS}
        returns_value = admission.ref is None or route.answer_is_reply
        needs_now = any(name == "now_ms" for name, _ in fields)
        return CallTemplate(admission, call if returns_value else None, constant, needs_now=needs_now)

    def begin(self, template: CallTemplate, body: bytes, done: Respond) -> bool:
        """Handle a repeated call without waiting.

        The admission of `template` must be valid, and `body` within the size limit. True if the call is handled:
        `done` is called once, now or after the commit, with the same response that `handle` would give. False if
        nothing was done and the call must go to `handle`.
        """
        route, _, _, ref, noted.work = template.admission
        system = self.system
        began_s = perf_counter()
        turn = None
        response: tuple[int, Fields, bytes]
        try:
            if ref is None:
                value = read_at_once(system, self._message_from(template, None))
                if value is LATER:
                    return False
                system.check_current()
                verdict = None
            else:
                system.check_load()
                decoded = None
                if route.decoder is None:
                    if body:
                        return False
                elif body or not route.optional_body:
                    if is_long_work(body):
                        return False
                    decoded = decode(route.decoder, body)
                    if route.bulk and type(decoded) is list:
                        return False
                turn = system.begin(ref, self._message_from(template, decoded))
                if turn is None:
                    return False
                if turn.group is None:
                    system.check_current()
                value, verdict = turn.value, turn.verdict
            fields = response_headers(route, verdict)
            if template.call is not None:
                response = json_response(template.call, route.ok, value, [*fields]).parts
            else:
                response = (route.ok, fields, SUCCESS)
        except DomainError as reason:
            refusal = system.checked(reason)
            response = error_response(refusal)
            self._note_refusal(route, template.admission.ids, refusal)
        except Exception as bug:  # noqa: BLE001 - as in `handle`
            crash = _log_crash(route, bug)
            response = error_response(crash)
            self._note_refusal(route, template.admission.ids, crash)
        if turn is None or turn.group is None:
            self._count(route, response[0], began_s)
            done(*response)
            return True

        def committed(failure: DomainError | None) -> None:
            if failure is None:
                status, fields, text = response
            else:
                status, fields, text = error_response(failure)
                self._note_refusal(route, template.admission.ids, failure)
            self._count(route, status, began_s)
            done(status, fields, text)

        system.when_stored(turn, committed)
        return True

    def _message_from(self, template: CallTemplate, body: Any) -> Message:
        """The message of a repeated call."""
        route, fields = template.admission.route, template.fields
        assert route.message is not None
        if template.needs_now:
            fields = {**fields, "now_ms": self.system.clock.wall_ms()}
        if route.decoder is not None:
            return route.message(body=body, **fields)
        return route.message(**fields)

    def _note_refusal(self, route: Route, ids: Mapping[str, bytes], refusal: DomainError) -> None:
        """Count the refusal of a call for the overview of its application."""
        of = route.counts_refusals_of
        if of is not None:
            device = ids["device"] if of == "device" else None
            self.system.component(Traffic).refuse(ids["application"], device, route.operation, refusal)

    # Other steps.

    def _call(self, admission: Admission, request: Request) -> Call:
        now_ms = self.system.clock.wall_ms()
        return Call(self, admission.route, request, now_ms, admission.principal, admission.ids)

    async def _response_of_read(self, call: Call) -> Response:
        """The response to a call that reads; that to a long read is made in the thread where it was read."""
        route = call.route
        assert route.message is not None
        finish = partial(json_response, call, route.ok)
        message = self.message(call, route.message)
        response: Response = await readers.read(self.system, message, finish, partial(finish, in_pieces=True))
        return response

    def message(self, call: Call, message: type[Message]) -> Message:
        """A message whose fields are filled from the call. `message` is one of the messages of the route."""
        fields = self.table.field_sources[call.route, message]
        return message(**{name: source(call) for name, source in fields})

    def route_of(self, operation: str) -> Route | None:
        """The route of an operation; None for an unknown one."""
        return self.table.by_operation.get(operation)

    def ref(self, call: Call) -> Ref:
        """The actor that the route asks; with a new id if the call creates it."""
        route = call.route
        assert route.to is not None
        if route.creates_actor:
            id = self.system.ids.new(call.now_ms)
            call.ids = {**call.ids, route.to.id: id}
            if self.places is not None and route.to.id == APPLICATION.name:
                self.places.place_new(id)
        return route.to.ref(call.ids)

    async def read(self, call: Call, message: type[Message]) -> Any:
        """Answer a read message whose fields are filled from the call."""
        return await self.read_message(self.message(call, message))

    async def read_message(self, message: Message) -> Any:
        """Answer a read message."""
        return await readers.read(self.system, message)


def _log_crash(route: Route | None, bug: Exception) -> Crashed:
    """Log a bug, and return the error for the client."""
    _log.error("call failed", operation="none" if route is None else route.operation, exc_info=bug)
    return Crashed("The server failed to handle this call; the fault is logged.")
