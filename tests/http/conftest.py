"""Fixtures of the tests of `http`: the captured log, and one that must stay empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog


@pytest.fixture
def log() -> Iterator[list[dict[str, Any]]]:
    """The log entries of our own code while the test runs; they are not printed."""
    with structlog.testing.capture_logs() as entries:
        yield entries  # type: ignore[misc]


@pytest.fixture
def silent(log: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Like `log`; fails the test if anything was logged."""
    yield log
    assert log == []
