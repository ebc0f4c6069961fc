"""Server-sent events: states and commands, messages of topics, runs of workflows.

A stream is a subscription to an actor, with its events framed. Comments keep the connection open while there
are no events. When something changes that its token depends on, the stream wakes up and verifies the token again, so a
key that is set to inactive ends its streams at once.

Events have their position as `id`, where the store has them too, and `Last-Event-ID` replays the missed ones: page by
page, because a client may have been away for long, and a stream keeps only one page in memory. Its subscription is
paused meanwhile. When the last page is read it begins to buffer, and one more page has what came between the two. Where
what was missed is not kept any more, the client gets the event `reset`, and the stream goes on with what is new.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import trio

from trunkline.actors.access.authority import Principal
from trunkline.actors.core.runtime.ref import Ref, application_streams
from trunkline.actors.core.runtime.subscription import Events, Missed, Subscription
from trunkline.actors.core.values.errors import DomainError, Invalid
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.changes import EVENT_TOPIC, end_of_changes
from trunkline.actors.data.events.messages import GetMissedChanges
from trunkline.actors.data.topics.actor import streams_ref
from trunkline.actors.data.topics.filters import check_filter
from trunkline.actors.fleet.devices.actor.commands import COMMAND_TOPIC
from trunkline.actors.fleet.devices.actor.connection import CONNECTION_TOPIC
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC, StateFeed, check_selection
from trunkline.actors.fleet.devices.record.messages import Listen, StateStream
from trunkline.actors.fleet.devices.record.read_messages import GetMissedStates, ReplayCommands
from trunkline.actors.workflows.flows.run_records import RUN_TOPIC
from trunkline.actors.workflows.triggers.run_messages import GetMissedRuns
from trunkline.http.calls.access import check_resource_access
from trunkline.http.calls.auth import check_scope
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Headers, Response

SSE_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
KEEP_ALIVE = b":\n\n"
_NOTHING = Missed([], more=False)
_POSITION = re.compile(r"[0-9]{1,28}", re.ASCII)
"""28 digits cover every position up to the year 73,000,000, and every such number is a valid key of the log."""


Replay = Callable[[Call, int], Awaitable[Missed]]
"""Reads a page of what a stream has missed after a position."""

_RESET = (
    b"event: reset\nid: %d\ndata: "
    + msgspec.json.encode(
        {"message": "Not everything since your last id is kept. Read what you need again; new events follow."}
    )
    + b"\n\n"
)


class EventStream:
    """The body of an open stream: `next` returns the bytes to send, `close` ends the subscription.

    `missed` is the first page of the events after `position` that are replayed before live events follow, and `replay`
    reads the next ones; without it events have no position. `end` gives the position after everything that was
    offered, if there is one: clients are told of it also while they get no events, so that they come back with an `id`
    that is kept.
    """

    def __init__(
        self,
        call: Call,
        subscription: Subscription,
        event: str,
        replay: Replay | None = None,
        position: int = -1,
        missed: Missed = _NOTHING,
        end: Callable[[], int] | None = None,
    ) -> None:
        self._call = call
        self._replay = replay
        self._end = end
        self._subscription = subscription
        self._watch_revocation(call.principal)
        self._keep_alive_s: float = call.query.keep_alive_interval
        self._event_line = f"event: {event}\n".encode()
        self._sent = -1
        self._replayed = position
        # A comment is sent at once, so that proxies and clients see that the stream is open.
        self._pending: list[bytes] = []
        self._more_missed = subscription.paused
        self._pending = [self._keep_alive(), *self._frames_of(missed)]

    async def next(self) -> bytes | None:
        """Wait for events or the next keep-alive; None when the stream has ended."""
        if self._pending:
            pending, self._pending = self._pending, []
            return b"".join(pending)
        while self._more_missed:
            missed = await self._next_missed()
            if missed is None or missed:
                return missed
            if self._more_missed:
                return KEEP_ALIVE
        subscription = self._subscription
        due_s = trio.current_time() + self._keep_alive_s
        frames: list[bytes] = []
        while True:
            with trio.move_on_at(min(due_s, self._expiry_s())) as timer:
                frames = self._frames(await subscription.receive())
            if timer.cancelled_caught and subscription.is_empty and subscription.ending is None:
                frames = [self._keep_alive()]
            if not self._still_allowed():
                return None
            if frames:
                return b"".join(frames)
            if subscription.ending is not None:
                return None

    async def _next_missed(self) -> bytes | None:
        """The next page of missed events; None if the stream has ended."""
        assert self._replay is not None
        try:
            missed = await self._replay(self._call, self._replayed)
        except DomainError:
            return None
        frames = self._frames_of(missed)
        if not self._still_allowed() or self._subscription.ending is not None:
            return None
        return b"".join(frames)

    def _frames_of(self, missed: Missed) -> list[bytes]:
        """The frames of a page of missed events."""
        frames = self._frames(missed.events)
        if missed.is_reset:
            frames.append(_RESET % missed.position)
        self._sent = max(self._sent, missed.position)
        if missed.position >= 0 or missed.events:
            self._replayed = self._sent
        # After the last page, one more has what came before new events are buffered.
        self._more_missed = missed.more or self._subscription.paused
        if not missed.more:
            self._subscription.paused = False
        return frames

    def _keep_alive(self) -> bytes:
        """A comment; where there is a position, also the `id` with which the client should come back."""
        if self._end is None or self._more_missed:
            return KEEP_ALIVE
        self._sent = max(self._sent, self._end())
        return b":\nid: %d\n\n" % self._sent

    def close(self) -> None:
        self._call.service.system.streams.close(self._subscription)
        self._unwatch_revocation()

    def _watch_revocation(self, principal: Principal) -> None:
        """Wake the stream when the principal is revoked."""
        self._watched: Principal | None = principal
        self._call.service.system.revocations.hold(principal)
        principal.watchers[self._subscription.wake] = None

    def _unwatch_revocation(self) -> None:
        if self._watched is not None:
            self._watched.watchers.pop(self._subscription.wake, None)
            self._call.service.system.revocations.release(self._watched)
            self._watched = None

    def _frames(self, events: Events) -> list[bytes]:
        frames = []
        for position, data in events:
            if self._replay is None:
                frames.append(b"%bdata: %b\n\n" % (self._event_line, data))
            elif position > self._sent:
                self._sent = position
                frames.append(b"%bid: %d\ndata: %b\n\n" % (self._event_line, position, data))
        return frames

    def _expiry_s(self) -> float:
        """The time at which the token expires, on Trio's clock."""
        expires_ms = self._call.principal.expires_ms
        if expires_ms is None:
            return math.inf
        left_ms = expires_ms - self._call.service.system.clock.wall_ms()
        return trio.current_time() + max(0, left_ms) / 1000

    def _still_allowed(self) -> bool:
        """Whether the token still allows this stream. Verifies it again if its principal was revoked."""
        call = self._call
        try:
            principal = call.service.tokens.authenticate(call.request.headers.get(b"authorization"))
            if principal is not call.principal:
                call.principal = principal
                check_scope(call.route, principal)
                self._unwatch_revocation()
                self._watch_revocation(principal)
                check_resource_access(call)
        except DomainError:
            return False
        return True


async def command_stream(call: Call) -> Response:
    """Open the command stream of the device in the path."""
    return await _replaying(call, _subscribe(call, COMMAND_TOPIC), "deviceCommand", _replay_commands)


async def run_stream(call: Call) -> Response:
    """Open the stream of the runs of the workflow in the path: each run that ends, while somebody listens."""
    ref = Ref("flow", call.application, call.ids["flow"])
    subscription = call.service.system.subscribe(ref, RUN_TOPIC, Listen())
    return await _replaying(call, subscription, "flowRun", _replay_runs)


async def state_stream(call: Call) -> Response:
    """Open the state stream of the device in the path."""
    end = call.service.system.component(StateFeed).end
    return await _replaying(call, _subscribe(call, STATE_TOPIC), "deviceState", _replay_states, end)


async def application_state_stream(call: Call) -> Response:
    """Open a stream of the states of an application."""
    system, application = call.service.system, call.application
    with system.store.snapshot() as snapshot:
        selection = check_selection(snapshot, application, call.query)
    subscription = system.subscribe(application_streams(application), selection.topic, Listen())
    feed = system.component(StateFeed)
    feed.select(application, selection)
    return await _replaying(call, subscription, "deviceState", _replay_states, feed.end)


async def event_stream(call: Call) -> Response:
    """Open a stream of the changes of the events of an application."""
    system, application = call.service.system, call.application

    def end() -> int:
        with system.store.snapshot() as snapshot:
            return end_of_changes(snapshot, application)

    subscription = system.subscribe(application_streams(application), EVENT_TOPIC, Listen())
    return await _replaying(call, subscription, "eventChange", _replay_changes, end)


async def connection_stream(call: Call) -> Response:
    """Open a stream of the connections of the devices of an application. The logs of the devices have missed ones."""
    ref = application_streams(call.application)
    subscription = call.service.system.subscribe(ref, CONNECTION_TOPIC, Listen())
    return Response(200, SSE_HEADERS, stream=EventStream(call, subscription, "deviceConnection"))


async def topic_stream(call: Call) -> Response:
    """Open a stream of the messages of topics. Messages are kept nowhere, so none are replayed."""
    filter = call.query.topic
    check_filter(filter, "topic")
    subscription = call.service.system.subscribe(streams_ref(call.application), filter, Listen())
    return Response(200, SSE_HEADERS, stream=EventStream(call, subscription, "mqttMessage"))


def _subscribe(call: Call, topic: str) -> Subscription:
    ref = Ref("device", call.application, call.ids["device"])
    return call.service.system.subscribe(ref, topic, Listen())


async def _replaying(
    call: Call,
    subscription: Subscription,
    event: str,
    replay: Replay,
    end: Callable[[], int] | None = None,
) -> Response:
    """Open a stream that begins after `Last-Event-ID`."""
    try:
        last = (call.request.header(b"last-event-id") or "").strip()
        if last and _POSITION.fullmatch(last) is None:
            raise Invalid(
                f"Last-Event-ID: {last[:40]!r} is not an id of this stream; send the last `id` that it carried."
            )
        subscription.paused = bool(last)
        position = int(last) if last else -1
        missed = await replay(call, position) if last else _NOTHING
    except BaseException:
        call.service.system.streams.close(subscription)
        raise
    return Response(
        200, SSE_HEADERS, stream=EventStream(call, subscription, event, replay, position, missed, end)
    )


async def _replay_states(call: Call, position: int) -> Missed:
    device = call.ids.get("device")
    query = call.query if device is None else StateStream()
    now_ms = call.service.system.clock.wall_ms()
    return await _missed(call, GetMissedStates, position, device=device, query=query, now_ms=now_ms)


async def _replay_changes(call: Call, position: int) -> Missed:
    return await _missed(call, GetMissedChanges, position)


async def _replay_commands(call: Call, position: int) -> Missed:
    now_ms = call.service.system.clock.wall_ms()
    return await _missed(call, ReplayCommands, position, device=call.ids["device"], now_ms=now_ms)


async def _replay_runs(call: Call, position: int) -> Missed:
    return await _missed(call, GetMissedRuns, position, flow=call.ids["flow"])


async def _missed(call: Call, message: type[Message], position: int, **more: Any) -> Missed:
    """A page of what a stream has missed. `more` are the fields of the message that only it has."""
    limits = call.service.system.limits
    replay = message(
        application=call.application,
        position=position,
        limit=limits.stream_replay_max,
        bytes_max=limits.stream_buffer_bytes_max,
        **more,
    )
    missed: Missed = await call.service.read_message(replay)
    return missed
