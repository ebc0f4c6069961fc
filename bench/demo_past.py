"""What happened in the demo before it was looked at: a day of states, events, commands, rows and runs of a workflow.

Owns what is made once, when the application has no event yet, so that charts and lists show something at the first
start. Does not own the records that each start makes again (`demo_records`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

import trio

from trunkline.bench.demo_devices import DEMO_DEVICES, DemoDevice
from trunkline.bench.history import to_iso
from trunkline.bench.session import Json, Session

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_PAST_H: Final = 24
_CLOSE_H: Final = 1
"""The last hours have a state each minute, those before them one each five minutes."""

_STEP_S: Final = 15
"""Seconds: with longer steps the models swing."""

SILENT_DEVICE: Final[Json] = {
    "name": "orchard-valve",
    "description": "A valve whose battery is empty.",
    "attributes": [{"name": "open", "dataType": "boolean"}, {"name": "moisture", "dataType": "number"}],
    "tags": [{"key": "demo", "value": "yes"}, {"key": "place", "value": "orchard"}],
}
_SILENT_H: Final = 5
"""Since so many hours the silent device has reported nothing."""

_EVENTS: Final[tuple[tuple[float, str, Json, tuple[Json, ...]], ...]] = (
    (
        22,
        "workshop-meter",
        {"level": "info", "subject": "The meter was read", "message": "For the invoice of the month."},
        ({"state": "resolved", "comment": "The invoice is sent."},),
    ),
    (
        17,
        "well-pump",
        {"level": "error", "subject": "The pump ran dry", "message": "There was no flow for two minutes."},
        (
            {"state": "acknowledged", "comment": "I am on my way."},
            {"state": "resolved", "comment": "The filter was clogged."},
        ),
    ),
    (
        9,
        "orchard-valve",
        {"level": "critical", "subject": "The battery is nearly empty", "data": {"volts": 2.9}},
        (),
    ),
    (
        6,
        "weather-mast",
        {"level": "warning", "subject": "Gusts above 20 metres a second"},
        ({"state": "acknowledged", "comment": "The awnings are in."},),
    ),
    (
        3,
        "delivery-van-7",
        {"level": "info", "subject": "A delivery was late", "message": "By a quarter of an hour."},
        (),
    ),
)
"""How many hours ago, about which device, what, and what happened to it since."""

_COMMANDS: Final[Mapping[str, Json]] = {
    "greenhouse-north": {"name": "setTarget", "payload": {"value": 25}},
    "well-pump": {"name": "switch", "payload": {"on": True}},
    "cold-store-2": {"name": "setTarget", "payload": {"value": 3}},
    "weather-mast": {"name": "beep"},
}
_PRESSES: Final[tuple[Json, ...]] = ({"temperature": 4.2}, {"temperature": 11.5}, {"humidity": 80})
"""What the workflow of the cold store is tried with: well, too warm, and no temperature, which is an error."""


async def make_past(
    session: Session, application: str, device_ids: Mapping[str, str], table: str, flow: str
) -> None:
    """Make the past of the demo; `table` and `flow` are the ids of its data table and of its second workflow."""
    now_ms = time.time_ns() // 1_000_000
    chance = Random(now_ms)
    made = await session.call("POST", f"{application}/devices", SILENT_DEVICE)
    ids = {**device_ids, SILENT_DEVICE["name"]: str(made["id"])}
    for kind in DEMO_DEVICES:
        await _report(session, f"{application}/devices/{ids[kind.name]}", past_states(kind(chance), now_ms))
    silent = f"{application}/devices/{ids[SILENT_DEVICE['name']]}"
    await _report(session, silent, _last_signs(now_ms))
    for status in (
        {"status": "connected", "connectedAt": to_iso(now_ms - _PAST_H * _HOUR_MS)},
        {
            "status": "disconnected",
            "disconnectedAt": to_iso(now_ms - _SILENT_H * _HOUR_MS),
            "disconnectReason": "The battery is empty.",
        },
    ):
        await session.call("POST", f"{silent}/setConnectionStatus", status)
    for hours, name, event, updates in _EVENTS:
        body = {**event, "deviceId": ids[name], "creationDate": to_iso(now_ms - round(hours * _HOUR_MS))}
        made = await session.call("POST", f"{application}/events", body)
        for update in updates:
            await session.call("PATCH", f"{application}/events/{made['id']}", update)
    for name, command in _COMMANDS.items():
        await session.call("POST", f"{application}/devices/{ids[name]}/command", command)
    for payload in _PRESSES:
        press = {"key": f"{flow}-reading", "payload": payload}
        await session.call("POST", f"{application}/flows/{flow}/virtualButton", press)
    await session.call("POST", f"{application}/events/export", {"format": "csv"})
    await session.call("POST", f"{application}/data-tables/{table}/rows/export", {})


async def _report(session: Session, device: str, states: Iterator[Json]) -> None:
    """Send states of the past as a backlog, which takes nothing from the throttle of live states.

    They are computed in a thread: the demo may run in the event loop of a server.
    """
    made = await trio.to_thread.run_sync(list, states)
    await session.call("POST", f"{device}/state", made, query={"backlog": "true"})


def past_states(model: DemoDevice, now_ms: int) -> Iterator[Json]:
    """The states of a day: one each five minutes, and one each minute of the last hour."""
    at_ms = now_ms - _PAST_H * _HOUR_MS
    while at_ms < now_ms - _MINUTE_MS:
        minutes = 5 if at_ms < now_ms - _CLOSE_H * _HOUR_MS else 1
        for _ in range(minutes * 60 // _STEP_S):
            state = model.step(_STEP_S)
        yield {"time": to_iso(at_ms), "data": state}
        at_ms += minutes * _MINUTE_MS


def _last_signs(now_ms: int) -> Iterator[Json]:
    """The states of the device that is silent now."""
    for hours in range(_PAST_H, _SILENT_H - 1, -1):
        data = {"open": hours % 6 == 0, "moisture": 20.0 + hours}
        yield {"time": to_iso(now_ms - hours * _HOUR_MS), "data": data}
