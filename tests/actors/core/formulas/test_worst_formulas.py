"""Whatever a payload holds, no template and no expression holds the event loop for long: the short form.

The long form is `python -m tests.actors.core.formulas.worst_formulas`.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import pytest

from tests.actors.core.formulas.worst_formulas import Case, cases
from tests.actors.core.formulas.worst_values import GENEROUS, LIMIT_MS, held, measuring

THREAD_S = 0.02
"""What is looked at of a computation in a thread."""
ONE_OF = 3
"""Of the cases that the long form feeds with one partner."""
CASES: dict[str, list[Case]] = {}
for _case in cases(("key",)):
    if crc32(f"{_case.name} {_case.label}".encode()) % ONE_OF == 0:
        CASES.setdefault(_case.name, []).append(_case)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _measuring() -> Iterator[None]:
    with measuring():
        yield


@pytest.mark.parametrize("name", CASES)
def test_the_worst_values_do_not_hold_the_loop(name: str) -> None:
    for case in CASES[name]:
        took = held(case.work, THREAD_S)
        assert took.worst_ms < GENEROUS * LIMIT_MS, case.label
