"""The result of a replay as the record of which all reports of the bench are made.

Owns what the counts of a replay mean in such a record. Does not own the counts, nor their layout in the terminal.
"""

from __future__ import annotations

from typing import NamedTuple

from trunkline.bench.measurements import Measurements
from trunkline.bench.replay import Replay
from trunkline.bench.result import AuditResult, Figure, Result, Server, Stage, machine, shown_settings
from trunkline.bench.server_monitor import ServerMonitor, Usage


class Look(NamedTuple):
    """Processor time of the generator in seconds, and the usage of the server if its process was found."""

    cpu_s: float
    server: Usage | None


def replay_result(
    replay: Replay,
    found: Measurements,
    *,
    begun: str,
    settings: dict[str, object],
    monitor: ServerMonitor | None,
    before: Look,
    after: Look,
) -> Result:
    """The result of a replay that was sent and compared; without figures if anything acknowledged is different.

    ``before`` and ``after`` were taken around the sending.
    """
    counts = replay.counts
    elapsed_s = max(counts.elapsed_s, 1e-6)
    server_cpu, server = None, None
    if monitor and before.server and after.server:
        server_cpu = (after.server.cpu_s - before.server.cpu_s) / elapsed_s
        server = Server(
            pids=monitor.pids,
            begin_bytes=before.server.bytes,
            begin_private_bytes=before.server.private_bytes,
            end_bytes=after.server.bytes,
            end_private_bytes=after.server.private_bytes,
            peak_bytes=monitor.peak_bytes,
        )
    stage = Stage(
        name="replay",
        elapsed_s=elapsed_s,
        figures=[
            Figure(name="rows in the files", value=found.rows_read),
            Figure(name="rows left out", value=sum(found.skipped.values())),
            Figure(name="devices", value=len(found.series)),
            Figure(name="rows acknowledged", value=counts.acknowledged),
            Figure(name="rows refused", value=counts.refused),
            Figure(name="acknowledged", value=counts.acknowledged / elapsed_s, unit="a second"),
            Figure(name="calls", value=counts.calls),
            Figure(name="calls that were throttled and sent again", value=counts.throttled_calls),
            Figure(name="calls without an answer, sent again", value=counts.repeated_calls),
            Figure(name="values read back equal", value=counts.values_equal),
        ],
        generator_cpu=(after.cpu_s - before.cpu_s) / elapsed_s,
        server_cpu=server_cpu,
    )
    if not counts.equal:
        stage = stage.withheld("Something that was acknowledged was lost.")
    return Result(
        scenario="replay",
        title="Replay of measurements",
        begun=begun,
        machine=machine(),
        settings=shown_settings(
            {"server": replay.session.url, "application": replay.application_id, **settings}
        ),
        stages=[stage],
        server=server,
        audit=AuditResult(
            acknowledged=counts.points,
            read=counts.points_read,
            missing=counts.missing,
            different=counts.different,
            unexpected=counts.unexpected,
            unknown=0,
            unknown_found=0,
            examples=counts.examples,
        ),
        verdict="sound" if counts.equal else "loss",
        notes=[
            *found.notes,
            *(f"{count:,} rows are refused: {reason}." for reason, count in counts.reasons.items()),
        ],
    )
