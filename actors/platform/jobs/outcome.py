"""What an attempt to do a job came to.

Owns its form, and that of its errors in the log of jobs. Does not own when there is another attempt (`runner.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.platform.jobs.messages import JobStatus


class Outcome(NamedTuple):
    """The outcome of a run. `retry`: another attempt may succeed."""

    status: JobStatus
    output: Doc | None = None
    error: dict[str, str] | None = None
    retry: bool = False


def refused(refusal: DomainError) -> Outcome:
    """The outcome of a job that was refused: another attempt would be refused as well."""
    return Outcome("errored", output=refusal.details, error=error_of(refusal.type, refusal.message))


def error_of(name: str, message: str) -> dict[str, str]:
    """An error as the log of jobs has it."""
    return {"name": name, "message": message}
