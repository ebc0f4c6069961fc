"""Many states as columns, and the messages that bring them to a device: from its link, and from MQTT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import SECONDS_BELOW
from trunkline.actors.fleet.devices.record.messages import StateReport
from trunkline.store import state_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values = state_columns.Values

REFUSED_MAX: Final = 512
"""The refused frames that are remembered of a device: several windows, for connections that last for a few frames."""

_PLAIN: Final = frozenset({int, float, bool, str, type(None)})


class Columns(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Many states: their times in milliseconds, and for each name its values, one for each state.

    These are an array of integers or floats, or numbers, texts and booleans, where None is not reported.
    """

    names: tuple[str, ...]
    times: NDArray[np.int64]
    columns: tuple[Values, ...]
    flow_version: str | UnsetType = UNSET

    def __len__(self) -> int:
        return len(self.times)

    def reports(self) -> list[StateReport]:
        """The states, one by one."""
        values = [column.tolist() if isinstance(column, np.ndarray) else column for column in self.columns]
        return [
            StateReport(
                data={name: value for name, value in zip(self.names, row, strict=True) if value is not None},
                time=report_time(time_ms),
                flow_version=self.flow_version,
            )
            for time_ms, *row in zip(self.times.tolist(), *values, strict=True)
        ]


class ReportFrame(Message, frozen=True):
    """Store the states of a frame of the link, all or none, and its number with them, in one turn.

    The answer is whether they were stored: not if a frame with this number or a higher one of the same session was
    stored before. With `backlog` they are stored as by `SendBacklog`, and its numbers are counted apart. `refused` are
    the frames for this device that were refused on this connection, of the last ones: they are remembered with this
    one, as are those of earlier connections above `answered`, the number up to which the client has all answers. Raises
    `Overloaded` for a frame that was refused and came again after later ones were stored, and if more than
    `REFUSED_MAX` would have to be remembered.
    """

    session: int
    n: int
    body: StateReport | Columns
    backlog: bool = False
    refused: tuple[int, ...] = ()
    answered: int = 0
    origin: Origin | None = None

    @property
    def throttle(self) -> str | None:  # type: ignore[override]
        """The bucket of live states; a backlog has its own, which the lane counts."""
        return None if self.backlog else "send_state"


class SendColumns(Message, frozen=True):
    """Store many states, all or none, in one turn: what `SendState` is for states one by one."""

    throttle: ClassVar[str | None] = "send_state"
    body: Columns
    origin: Origin | None = None


def report_time(time_ms: int) -> float:
    """A time in milliseconds as a report has it, where small numbers are seconds."""
    return time_ms if time_ms >= SECONDS_BELOW else time_ms / 1000


def typed_values(values: Sequence[Any]) -> Values | None:
    """Values as an array, if all are floats or integers of 64 bits; None if one is no number, text, boolean or None."""
    types = set(map(type, values))
    if types == {float}:
        return np.array(values, np.float64)
    if types == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            return values
    return values if types <= _PLAIN else None
