"""How rare states are counted: a promise that was never near its edge was not tested.

`RARE` are the states that the seeds of a long run must all have reached: `python -m tests.simulation --seeds
100001..101000` prints how often each was, and names those that were not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from trunkline.actors.core.runtime.system import System
from trunkline.actors.maintenance.retention import Retention
from trunkline.store import keys
from trunkline.store.flusher import Flusher

AT_A_CUT: Final[Mapping[str, Callable[[System], bool]]] = {
    "a compaction was under way": lambda system: system.component(Flusher)._compaction is not None,
    "a window was being flushed": lambda system: len(system.store.arrivals.windows) > 1,
    "reports were in no run yet": lambda system: bool(system.store.arrivals.windows[-1].buffers),
    "runs waited": lambda system: _has_triggers(system),
    "a stream was open": lambda system: len(system.streams) > 0,
}
"""What may be so when the power is cut."""

OVER_WIRES: Final = tuple(f"a call was answered over HTTP/{version}" for version in ("1.1", "2"))
RARE: Final = (
    "500 for a failed commit",
    "507 for a failed commit",
    *OVER_WIRES,
    "a client left",
    "a command came again",
    "a command to many",
    "a content was uploaded",
    "a device was silent",
    "a directory was deleted",
    "a member was refused",
    "a member was served",
    "a press was cancelled",
    "a command waited for its link",
    "a connection stalled",
    "a connection was cut within a request",
    "a connection was cut within a response",
    "a frame was refused for a failed commit",
    "a frame was sent again",
    "a frame was throttled",
    "a link ended with 4401",
    "a link ended with 4404",
    "a link ended with 4410",
    "a link was cut",
    "a message came again",
    "a message was refused for a failed commit",
    "a message with QoS 2 was sent again",
    "a release was sent again",
    "a release was sent again after a power cut",
    "a repetition got the first answer",
    "a repetition was the first to be stored",
    "a retained message was read",
    "a retained message was removed",
    "a shared message came again",
    "a request of HTTP/2 was reset",
    "a request was pipelined",
    "a revoked token was refused",
    "a stream came back",
    "a stream was told that it missed something",
    "a throttle",
    "a timer missed moments",
    "a turn found no memory",
    "a welcome said that a frame is stored",
    "a will was to be published",
    "an MQTT connection was cut",
    "an MQTT connection was taken over",
    "an export was read",
    "damage was refused at the start",
    "damage was refused by a read",
    "deleted things were swept",
    "old states were removed",
    "points were compacted",
    "points were flushed",
    "the clock was set",
    "the map grew",
    "the quota was full",
    "what was too old is young again",
    *(f"power cut: {how}" for how in ("before", "torn", "after", "idle")),
    *(f"power cut while {what}" for what in AT_A_CUT),
)

RARE_OF_PROCESSES: Final = (
    "502 as a process was away",
    "503 as a process was away",
    *OVER_WIRES,
    "a content was uploaded",
    "a link was cut",
    "a member was refused",
    "a member was served",
    "a name of the server was taken",
    "a name was being claimed",
    "a process died",
    "a process died after a commit",
    "a process died before a commit",
    "a process died between commits",
    "a repetition got the first answer",
    "a request of HTTP/2 was reset",
    "a request was pipelined",
    "a revoked token was refused",
    "a shared message came again",
    "a stream came back",
    "a will was to be published",
    "an MQTT connection was cut",
    "applications of several partitions were given",
    "damage was refused at the start",
    *(f"power cut: {how}" for how in ("before", "torn", "after", "idle")),
)
"""The same for seeds with several partitions."""

RARE_OF_MOVES: Final = (
    "503 as an application was moved",
    "a link ended with 4503",
    "a move was refused",
    "an application was moved",
    "an application was moved, and a process died meanwhile",
    "power cut while an application was moved",
)
"""What seeds with moves must reach as well."""

RARE_OF_TIMES: Final = (
    "a device was silent",
    "a press was cancelled",
    "a timer missed moments",
    "deleted things were swept",
    "old states were removed",
    "the quota was full",
    "what was too old is young again",
)
"""What seeds with several partitions and with due times and removals must reach as well."""

RARE_OF_MACHINES: Final = (
    "503 as a process was away",
    "a message came again",
    "a repetition got the first answer",
    "a stream came back",
    "a welcome said that a frame is stored",
    "a will was to be published",
    "deleted things were swept",
    "nobody knew whether a call was stored",
    *(
        f"a machine ended: {how}"
        for how in (
            "Fenced",
            "LogUnreachable",
            "StoreLost",
            "after a commit",
            "before a commit",
            "between commits",
            "in order",
        )
    ),
    *(f"power cut: {how}" for how in ("before", "torn", "after", "idle")),
)
"""What seeds with several machines must reach."""

RARE_OF_SPREAD: Final = (
    "503 as a process was away",
    "a copy was not fresh",
    "a link was cut",
    "a machine was cut off",
    "a machine was ended",
    "a machine was killed",
    "a name of the server was taken",
    "a process gave its partition",
    "a process was cut off",
    "a process was ended",
    "a process was killed",
    "a repetition got the first answer",
    "a revoked token was refused",
    "a stream came back",
    "applications of several partitions were given",
    "nobody knew whether a call was stored",
    "what passed between machines was cut",
    *(
        f"a process of a machine ended: {how}"
        for how in ("Fenced", "after a commit", "before a commit", "between commits", "in order")
    ),
    *(f"power cut: {how}" for how in ("before", "torn", "after", "idle")),
)
"""What seeds with several partitions on several machines must reach."""

RARE_OF_DOORS: Final = ("a door died",)
"""What seeds with doors must reach as well."""


def _has_triggers(system: System) -> bool:
    with system.store.snapshot() as snapshot:
        return any(True for _ in snapshot.keys(keys.TRIGGERS, b"", None))


def at_cut(system: System) -> list[str]:
    """What is so now, when the power is cut."""
    return [f"power cut while {what}" for what, is_so in AT_A_CUT.items() if is_so(system)]


def of_life(system: System) -> list[str]:
    """What has happened in a life."""
    flusher = system.component(Flusher)
    happened = {
        "points were flushed": flusher.flushed_rows,
        "points were compacted": flusher.compacted_rows,
        "the map grew": system.journal.statistics.growths,
        "old states were removed": system.component(Retention).removed["state"],
    }
    return [what for what, count in happened.items() if count]
