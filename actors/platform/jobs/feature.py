"""What jobs add to the server. The kinds of jobs are listed by the packages whose work they do.

The component that does jobs needs all kinds of them, so `actors/boot.py` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.platform.jobs import reads
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import JOB_LOG_FIELDS, GetJobLog, ListJobLogs
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.platform.jobs.runner import Jobs


def _parts(start: Start) -> Iterator[object]:
    yield Results(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(Jobs,),
    stops=(Jobs,),
    moved=(Jobs,),
    kinds=(JOB,),
    fields=(JOB_LOG_FIELDS,),
    readers={
        GetJobLog: reads.get_job_log,
        ListJobLogs: reads.list_job_logs,
    },
)
