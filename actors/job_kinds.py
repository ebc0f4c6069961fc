"""The kinds of jobs that this server does."""

from __future__ import annotations

from trunkline.actors.device_export import DEVICE_EXPORT
from trunkline.actors.jobs import JobKind

JOB_KINDS: tuple[JobKind, ...] = (DEVICE_EXPORT,)
