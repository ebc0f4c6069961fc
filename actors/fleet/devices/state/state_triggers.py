"""Which workflows a call with states triggers, and what their runs are told.

Owns the filters of the triggers `deviceId` and `deviceTag`. A call with one state is an individual report, one with an
array is a batch. A batch triggers once for each report, or once with all of them; then the filters by attributes and
by age do not apply. `maxAge` is in seconds, 0 is no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.plain_json import as_json
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.messages import SendState
from trunkline.actors.workflows.triggers.index import Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage, stage_refused

_ONE: Final = ("both", "individual")
_MANY: Final = ("both", "batch")


Told = tuple[int, Doc, Doc]
"""What a run is told of a report: its time, its data, and its `meta`, if it has one."""


def stage_state(
    actor: Actor, watchers: Iterable[Watcher], report: Told, *, origin: Origin | None, now_ms: int
) -> None:
    """Stage the triggers of an individual report, in the turn of the device."""
    time_ms, data, more = report
    chosen = [
        watcher
        for watcher in watchers
        if (watcher.config.get("triggerOn") or "both") in _ONE
        and _matches(watcher.config, data, now_ms - time_ms)
    ]
    if chosen:
        device = actor.ref.id
        stage(actor, chosen, Cause(device.hex(), data, time_ms, more, origin, device=device))


def stage_states(
    actor: Actor, watchers: Iterable[Watcher], reports: Sequence[Told], *, origin: Origin | None, now_ms: int
) -> None:
    """Stage the triggers of a batch of reports, in the turn of the device."""
    device = actor.ref.id
    once: list[Watcher] = []
    each: list[Watcher] = []
    for watcher in watchers:
        if (watcher.config.get("triggerOn") or "both") in _MANY:
            (once if watcher.config.get("batchBehavior") == "once" else each).append(watcher)
    if once:
        all = [{"data": data, "time": iso(time_ms), **more} for time_ms, data, more in reports]
        stage(actor, once, Cause(device.hex(), all, now_ms, origin=origin, device=device))
    if not each:
        return
    for time_ms, data, more in reports:
        chosen = [watcher for watcher in each if _matches(watcher.config, data, now_ms - time_ms)]
        if chosen:
            stage(actor, chosen, Cause(device.hex(), data, time_ms, more, origin, device=device))


def stage_refused_states(actor: Actor, watchers: Iterable[Watcher], message: SendState, now_ms: int) -> None:
    """Store the triggers that want a call whose states are refused: it is stored nowhere, so they get it as it came."""
    wanted = _MANY if isinstance(message.body, list) else _ONE
    chosen = [
        watcher
        for watcher in watchers
        if watcher.config.get("allowInvalid") and (watcher.config.get("triggerOn") or "both") in wanted
    ]
    if chosen:
        device = actor.ref.id
        more = {"original": as_json(msgspec.to_builtins(message.body, enc_hook=lambda _: None))}
        stage_refused(actor, chosen, Cause(device.hex(), None, now_ms, more, message.origin, device=device))


def _matches(config: Doc, data: Doc, age_ms: int) -> bool:
    """Whether a trigger wants a report with these attributes and of this age."""
    wanted, unwanted = config.get("attributeWhitelist"), config.get("attributeBlacklist")
    if wanted and data.keys().isdisjoint(wanted):
        return False
    if unwanted and data.keys() <= set(unwanted):
        return False
    age_max_s = config.get("maxAge")
    return not age_max_s or age_ms <= 1000 * age_max_s
