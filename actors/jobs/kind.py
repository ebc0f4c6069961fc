"""The kind of job records."""

from __future__ import annotations

from typing import Final

from trunkline.actors.records.kind import Kind

JOB: Final = Kind(name="job", noun="job", indexes=())
