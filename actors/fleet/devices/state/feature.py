"""What the states of devices add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.actors.fleet.devices.state import history

FEATURE: Final = Feature(
    readers={
        read_messages.GetState: history.get_state,
        read_messages.GetCommand: history.get_command,
        read_messages.GetLogEntries: history.get_log_entries,
        read_messages.GetCompositeState: history.get_composite_state,
        read_messages.ReplayCommands: history.replay_commands,
    },
)
