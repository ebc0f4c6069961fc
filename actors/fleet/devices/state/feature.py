"""What the states of devices add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.actors.fleet.devices.state import history
from trunkline.actors.fleet.devices.state.backlog import BacklogLane, holds_backlog
from trunkline.actors.fleet.devices.state.head import encoded_after
from trunkline.actors.fleet.devices.state.retention import ExpireData, search_devices
from trunkline.actors.fleet.devices.state.traffic import Traffic
from trunkline.store.flusher import Flusher


def _parts(start: Start) -> Iterator[object]:
    system = start.system
    yield Flusher(system.store, encoded_after, system.limits.arrival_flush_s)
    yield Traffic(system)
    is_held, owner_of = partial(holds_backlog, system), system.component(Owners).of
    yield BacklogLane(system.limits, system.clock, is_held, owner_of)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(BacklogLane,),
    expiries=(Expiry(search_devices, {ExpireData: ("state", "command", "logEntry", "payloadCount")}),),
    readers={
        read_messages.GetState: history.get_state,
        read_messages.GetCommand: history.get_command,
        read_messages.GetLogEntries: history.get_log_entries,
        read_messages.GetCompositeState: history.get_composite_state,
        read_messages.ReplayCommands: history.replay_commands,
    },
)
