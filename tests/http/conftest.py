"""What the tests of the wire share: a log that must stay silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog


@pytest.fixture
def log() -> Iterator[list[dict[str, Any]]]:
    """What our own code logs while the test runs, instead of printing it."""
    with structlog.testing.capture_logs() as entries:
        yield entries  # type: ignore[misc]


@pytest.fixture
def silent(log: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The same, and nothing may have been logged when the test is over."""
    yield log
    assert log == []
