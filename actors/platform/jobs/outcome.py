"""What an attempt to do a job came to.

Owns its form, and that of its errors in the log of jobs. Does not own when there is another attempt (`runner.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import DomainError, Overloaded, StorageFull
from trunkline.actors.platform.jobs.messages import JobStatus
from trunkline.store.errors import StoreBroken, StoreError, StoreFull


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


def error_of_store(refusal: StoreError) -> dict[str, str]:
    """What the log of a job says: it is read by people who may not know the files of the server."""
    if isinstance(refusal, StoreFull):
        return error_of(StorageFull.type, "The disk of the server, or its quota, is full.")
    sentence = "The server could not read or write a file; its log says why."
    return error_of(Overloaded.type, sentence if isinstance(refusal, StoreBroken) else str(refusal))
