"""Failed logins are logged, but not more lines than an operator wants to have."""

from __future__ import annotations

from typing import Any

import structlog.testing

from trunkline.actors.core.values.errors import Unauthorized
from trunkline.http.calls.login_failures import LoginFailures


def note(failures: LoginFailures, now_s: float) -> list[dict[str, Any]]:
    """The lines that a failed login writes."""
    with structlog.testing.capture_logs() as lines:
        failures.note("auth.authenticateUser", "192.0.2.7", "ab" * 12, Unauthorized("Wrong."), now_s)
    return [dict(line) for line in lines]


def test_so_many_lines_a_minute_and_the_others_are_counted() -> None:
    failures = LoginFailures(2)
    assert [len(note(failures, at_s)) for at_s in (0.0, 1.0, 2.0, 3.0)] == [1, 1, 0, 0]
    (line,) = note(failures, 60.5)
    assert line == {
        "event": "login failed",
        "log_level": "warning",
        "operation": "auth.authenticateUser",
        "client": "192.0.2.7",
        "subject": "ab" * 12,
        "reason": "Unauthorized",
        "message": "Wrong.",
        "left_out": 2,
    }
    assert "left_out" not in note(failures, 61.5)[0]
    assert failures.count == 6
