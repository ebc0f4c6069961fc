"""How long a test waits for what has to come, and how long the systems under test wait.

Long enough for a machine that is busy with other work: a test ends as soon as it has what it waits for, so
only one that fails is slow. It is below the time-out of a whole test (`timeout` in pyproject.toml), so that
the failure names the place that waited.
"""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 150

PAGE_S: Final = 500
"""For all steps of a test in a page of a browser: there are many, and each is bounded by itself."""
PAGE_TEST_S: Final = 600
"""The time-out of such a test."""

PATIENT: Final[dict[str, float]] = dict.fromkeys(
    (
        "backlog_wait_s",
        "dashboard_data_s",
        "import_wait_s",
        "job_wait_s",
        "outgoing_timeout_s",
        "run_deadline_s",
        "script_wall_s",
    ),
    PATIENCE_S,
)
"""Limits on the time of what a test expects to succeed, such as a script, whose process has the cores last."""
