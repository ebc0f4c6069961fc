"""The device actor: the only writer of a device's record, state, commands and connection log.

State, commands and the connection are here, the record in `record.py`, removals in `removal.py`.

A handler changes the state in memory and stages what is to be stored; the answer is sent when the batch is on
disk. States and commands are published to streams right after that commit, in the same turn of the event loop, so
no client sees data that a power failure could undo.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, Overloaded, PayloadTooLarge, TooManyRequests
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.plain_json import check_json
from trunkline.actors.fleet.devices.actor.connection import DeviceConnection
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC, StateFeed
from trunkline.actors.fleet.devices.record.attributes import FLOW_VERSION, META, Attributes
from trunkline.actors.fleet.devices.record.messages import (
    SendBacklog,
    SendKnownState,
    SendState,
    StateOrStates,
    StateReport,
)
from trunkline.actors.fleet.devices.state.array_columns import COLUMNS_FROM, columns_of
from trunkline.actors.fleet.devices.state.column_coercion import coerced
from trunkline.actors.fleet.devices.state.head import STATE_COUNT
from trunkline.actors.fleet.devices.state.link_messages import (
    REFUSED_MAX,
    Columns,
    ReportFrame,
    SendColumns,
    report_time,
)
from trunkline.actors.fleet.devices.state.state_triggers import (
    Told,
    stage_refused_states,
    stage_state,
    stage_states,
)
from trunkline.actors.workflows.triggers.index import FlowIndex, Triggers, Watcher
from trunkline.actors.workflows.triggers.of_devices import watchers_of_device
from trunkline.store import state_columns
from trunkline.store.codec import encode_numbered
from trunkline.store.report_items import BACKLOG, head_item, link_item
from trunkline.store.state_columns import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRIVAL_MS = 10_000
"""A report that is older when it arrives does not tell when that was: it stores the time."""
_AHEAD_MS = 1000
"""So does one that is further ahead of the clock."""

_GIVEN_AHEAD_MS = 10_000
"""How far the times that are given to states may be ahead of the clock, where more than one comes in a millisecond."""


class Device(DeviceConnection):
    """One device of one application. `ref.parent` is the application's id."""

    __slots__ = (
        "_feed",
        "_flows",
        "_given_at_ms",
        "_given_ms",
        "_head_deferred",
        "_triggers",
        "_watchers",
    )

    def __init__(self, system: Any, ref: Ref) -> None:
        self._head_deferred = False
        self._flows: FlowIndex = system.component(FlowIndex)
        self._feed: StateFeed = system.component(StateFeed)
        self._triggers: Triggers | None = None
        self._watchers: tuple[Watcher, ...] = ()
        self._given_ms = self._given_at_ms = -1
        super().__init__(system, ref)

    def flush(self) -> None:
        if self._head_deferred:
            self._head_deferred = False  # the head follows from the stored head and the point of this turn
        elif self.exists:
            self.writes().report_head(self.ref.id, head_item(self.head.encoded()))

    # State.

    def on_report_frame(self, message: ReportFrame) -> bool:
        """Store the states of a frame, all or none, and its number; False if they were stored before."""
        session, n, backlog = message.session, message.n, message.backlog
        mark = self.head.link
        if mark.has(session, n, backlog=backlog):
            if n in mark.refused:
                raise Overloaded(
                    f"Frame {n} was refused before; send its states again under a new number.",
                    retry_after_s=0,
                )
            return False
        link = mark.after(session, n, message.refused, backlog=backlog, answered=message.answered)
        if len(link.refused) > REFUSED_MAX:
            raise Overloaded(
                f"{len(link.refused)} frames of this session were refused, and their answers may be lost. Send the "
                "states again under a new number.",
                retry_after_s=1,
            )
        if isinstance(message.body, Columns):
            self._store_columns(message.body, message.origin, is_backlog=backlog)
        else:
            self.on_send_state(SendState(body=message.body, origin=message.origin), is_backlog=backlog)
        self.head.link = link
        if self._head_deferred:
            self.writes().report_item(self.ref.id, link_item(link.plain))
        return True

    def on_send_columns(self, message: SendColumns) -> None:
        self._store_columns(message.body, message.origin)

    def on_send_backlog(self, message: SendBacklog) -> None:
        """Store states of the past, all or none. See `SendBacklog` for what does not hear of them."""
        self.on_send_state(message, is_backlog=True)

    def on_send_known_state(self, message: SendKnownState) -> tuple[list[str], list[str]]:
        """See `SendKnownState`."""
        reports = message.body if isinstance(message.body, list) else [message.body]
        kept, undeclared, empty = self.attributes.without_unknown(reports)
        if kept:
            body = kept if isinstance(message.body, list) else kept[0]
            self.on_send_state(SendState(body=body, origin=message.origin))
        return sorted(undeclared), sorted(empty)

    def on_send_state(self, message: SendState, *, is_backlog: bool = False) -> None:
        """Store the states, all or none, and publish them to the state streams."""
        body = message.body
        now_ms = self.system.clock.wall_ms()
        head, id = self.head, self.ref.id
        triggers = self._flows.of(self.ref.parent)
        if triggers is not self._triggers:
            self._watch(triggers)
        if isinstance(body, list) and len(body) >= COLUMNS_FROM:
            columns = self._as_columns(body, now_ms)
            if columns is not None:
                self._keep_columns(*columns, message.origin, now_ms, is_backlog=is_backlog)
                return
        try:
            if is_backlog:
                _check_times(body)
            checked = self._checked(body, now_ms) if isinstance(body, list) else [self._check(body, now_ms)]
        except Invalid:
            named = msgspec.UNSET if isinstance(body, list) else body.flow_version
            watchers = self._watchers_in(None if named is msgspec.UNSET else named)
            stage_refused_states(self, watchers, message, now_ms)
            raise
        if not checked:
            return
        writes = self.writes()
        if is_backlog:
            writes.report(id, checked[0][0], BACKLOG)
        for time_ms, point in checked:
            writes.report(id, time_ms, encode_numbered(point))
        if self._alarms is not None and not is_backlog:
            self._judge(self._alarms, checked, now_ms)
        if len(checked) == 1:
            ((time_ms, point),) = checked
            if time_ms > head.newest_ms and not is_backlog:
                self._head_deferred = self._tells_arrival(time_ms, now_ms) and head.can_defer_write(now_ms)
                head.points_ahead += self._head_deferred
            head.report(time_ms, point)
            names_version = FLOW_VERSION in point
        else:
            head.report_all(checked)
            names_version = any(FLOW_VERSION in point for _, point in checked)
        self._count(STATE_COUNT, len(checked), now_ms)
        if self._watchers or names_version:
            self._trigger(checked, message.origin, now_ms, is_batch=isinstance(body, list))
        self._stored(len(checked), now_ms, is_backlog=is_backlog)

    def _store_columns(self, body: Columns, origin: Origin | None, *, is_backlog: bool = False) -> None:
        """The same as `on_send_state`; for many states without work for each of them."""
        if len(body) < COLUMNS_FROM:
            self.on_send_state(SendState(body=body.reports(), origin=origin), is_backlog=is_backlog)
            return
        now_ms = self.system.clock.wall_ms()
        triggers = self._flows.of(self.ref.parent)
        if triggers is not self._triggers:
            self._watch(triggers)
        try:
            columns = self._checked_columns(body, now_ms)
        except Invalid:
            if self._watchers:
                refused = SendState(body=body.reports(), origin=origin)
                stage_refused_states(self, self._watchers, refused, now_ms)
            raise
        self._keep_columns(body.times, columns, origin, now_ms, is_backlog=is_backlog)

    def _as_columns(
        self, reports: list[StateReport], now_ms: int
    ) -> tuple[NDArray[np.int64], dict[int, Values]] | None:
        """The times and the stored values of an array; None if it must be looked at state by state.

        That is so too if something in it is to be refused: a refusal names the first state at fault.
        """
        if len(reports) > self.system.limits.states_per_call_max:
            return None
        try:
            body = columns_of(reports, now_ms, self._time)
            if body is None:
                return None
            return body.times, coerced(self.attributes, body, self.system.limits.string_bytes_max)
        except Invalid:
            return None

    def _keep_columns(
        self,
        times: NDArray[np.int64],
        columns: dict[int, Values],
        origin: Origin | None,
        now_ms: int,
        *,
        is_backlog: bool,
    ) -> None:
        writes, id = self.writes(), self.ref.id
        if is_backlog:
            writes.report(id, int(times[0]), BACKLOG)
        writes.report_item(id, state_columns.encoded(times, columns))
        if self._alarms is not None and not is_backlog:
            self._judge(self._alarms, state_columns.rows(times, columns), now_ms)
        self.head.report_columns(times, columns)
        self._count(STATE_COUNT, len(times), now_ms)
        if self._watchers or FLOW_VERSION in columns:
            rows = state_columns.rows(times, columns)
            self._trigger(rows, origin, now_ms, is_batch=True)
        self._stored(len(times), now_ms, is_backlog=is_backlog)

    def _stored(self, states: int, now_ms: int, *, is_backlog: bool) -> None:
        """The device has reported so many states. If they are new, that is a sign of life, and streams hear of them."""
        if is_backlog:
            self.after_commit(partial(self._count_states, states))
            return
        head = self.head
        head.arrived_ms = now_ms
        if head.is_silent:
            head.is_silent = False
            self._end_silence()
            self._tell_inactivity()
        self.after_commit(partial(self._announce_states, states, self.attributes))

    def _trigger(
        self, checked: list[tuple[int, dict[int, Any]]], origin: Origin | None, now_ms: int, *, is_batch: bool
    ) -> None:
        """Stage the triggers of states. Those that name a version trigger that version, the others the default one."""
        if not is_batch:
            ((time_ms, point),) = checked
            watchers = self._watchers_in(point.get(FLOW_VERSION))
            stage_state(self, watchers, self._told(time_ms, point), origin=origin, now_ms=now_ms)
            return
        told: dict[str | None, list[Told]] = {}
        for time_ms, point in checked:
            told.setdefault(point.get(FLOW_VERSION), []).append(self._told(time_ms, point))
        for version, reports in told.items():
            stage_states(self, self._watchers_in(version), reports, origin=origin, now_ms=now_ms)

    def _told(self, time_ms: int, point: dict[int, Any]) -> Told:
        """What a run is told of a report."""
        names = self.attributes.names
        data = {names[number]: value for number, value in point.items() if number >= 0}
        return time_ms, data, {"meta": point[META]} if META in point else {}

    def _watchers_in(self, version: str | None) -> tuple[Watcher, ...]:
        """Who waits for states that name this version."""
        return (
            self._watchers if version is None else self._watchers_of(self._flows.of(self.ref.parent, version))
        )

    def _watch(self, triggers: Triggers) -> None:
        """Note who waits for the states of this device. What is noted holds until a workflow or the record changes."""
        self._triggers = triggers
        self._watchers = self._watchers_of(triggers)
        self._watch_alarms()

    def _watchers_of(self, triggers: Triggers) -> tuple[Watcher, ...]:
        return watchers_of_device(triggers, "", self.ref.id, self.doc["tags"]) if triggers else ()

    def _store(self, doc: Doc) -> None:
        super()._store(doc)
        self._triggers = None
        self._tell_inactivity()
        self._mark_caused()

    def _end_alarms(self) -> None:
        super()._end_alarms()
        self._triggers = None  # a device that is restored looks again

    def _tells_arrival(self, time_ms: int, now_ms: int) -> bool:
        """Whether the time of a report tells when it arrived, and the device was not silent before."""
        return not self.head.is_silent and -_AHEAD_MS <= now_ms - time_ms < _ARRIVAL_MS

    def _count_states(self, states: int) -> None:
        self._traffic.of(self.ref.parent).count_states(states, self.system.clock.wall_ms())

    def _announce_states(self, states: int, attributes: Attributes) -> None:
        """Count states after the commit, and tell their streams, with the attribute names of the time of the report.

        The subscribers are those after the commit, not those of the turn. Otherwise a client that opens a stream
        and then reads the stored states could miss a state that was handled before the one and committed after
        the other.
        """
        self._count_states(states)
        if self.ref.parent in self._feed.selections or self.system.has_subscribers(self.ref, STATE_TOPIC):
            self._feed.note(self.ref, self.doc, attributes)

    def _check_count(self, states: int) -> None:
        states_max = self.system.limits.states_per_call_max
        if states > states_max:
            raise PayloadTooLarge(f"{states} states in one call; send at most {states_max} a call.")

    def _checked_columns(self, body: Columns, now_ms: int) -> dict[int, Values]:
        """Return the values as they will be stored, by attribute number. Raises `Invalid`."""
        self._check_count(len(body))
        last_ms = now_ms + round(self.system.limits.future_state_max_s * 1000)
        if body.times.max() > last_ms:
            at = int((body.times > last_ms).argmax())
            self._time(report_time(int(body.times[at])), now_ms, f"[{at}].time")
        return coerced(self.attributes, body, self.system.limits.string_bytes_max)

    def _checked(self, reports: list[StateReport], now_ms: int) -> list[tuple[int, dict[int, Any]]]:
        self._check_count(len(reports))
        checked: list[tuple[int, dict[int, Any]]] = []
        given = self._given_ms, self._given_at_ms
        try:
            for report in reports:
                checked.append(self._check(report, now_ms))  # noqa: PERF401 - how many passed is part of the refusal
        except Invalid as refusal:
            self._given_ms, self._given_at_ms = given  # what is refused takes no time
            raise Invalid(f"[{len(checked)}].{refusal.message}") from None
        return checked

    def _check(self, report: StateReport, now_ms: int) -> tuple[int, dict[int, Any]]:
        """Return the report as it will be stored. Raises `Invalid`."""
        time_ms = None if report.time is None else self._time(report.time, now_ms)
        point = self.attributes.point(report.data, self.system.limits.string_bytes_max)
        if report.meta is not msgspec.UNSET:
            check_json(report.meta, "meta")
            point[META] = report.meta
        if report.flow_version is not msgspec.UNSET:
            point[FLOW_VERSION] = report.flow_version
        return self._given_time(now_ms) if time_ms is None else time_ms, point

    def _given_time(self, now_ms: int) -> int:
        """The time of a state that has none: when it arrives, or the first millisecond after the newest state.

        So states that come within one millisecond are all kept, in their order. A newest state that is far ahead of
        the clock has a time that the device gave, or the clock was set back; it does not count. Raises
        `TooManyRequests` if the times that are given here would be as far ahead.
        """
        before_ms = self._given_ms if now_ms >= self._given_at_ms else -1
        last_ms = now_ms + _GIVEN_AHEAD_MS
        self._given_at_ms = now_ms
        if before_ms < self.head.newest_ms < last_ms:
            before_ms = self.head.newest_ms
        if before_ms < now_ms:
            self._given_ms = now_ms
            return now_ms
        if before_ms >= last_ms:
            raise TooManyRequests(
                "More states without a time came than there were milliseconds; give each its time, or send fewer.",
                bucket="send_state",
                retry_after_s=(before_ms + 1 - last_ms) / 1000,
            )
        self._given_ms = before_ms + 1
        return self._given_ms


def _check_times(body: StateOrStates) -> None:
    """Raise unless each state of a backlog has a time."""
    for number, report in enumerate(body if isinstance(body, list) else [body]):
        if report.time is None:
            place = f"[{number}]." if isinstance(body, list) else ""
            raise Invalid(
                f"{place}time: is missing; a state of a backlog needs the time when it was measured."
            )
