"""A test whose event loop is cut off by its timeout takes no other test with it."""

from __future__ import annotations

import signal
from types import FrameType

import pytest
import trio

from tests.cut_runs import end_cut_runs


class Cut(BaseException):
    pass


def cut(_number: int, _frame: FrameType | None) -> None:
    raise Cut


@pytest.mark.timeout(0)  # its alarm is the one that the test needs
def test_a_run_that_was_cut_off_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        await trio.sleep_forever()

    before = signal.signal(signal.SIGALRM, cut)
    try:
        with pytest.raises(Cut) as failure:
            trio.run(wait)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(RuntimeError, match="inside a run"):
        trio.run(trio.lowlevel.checkpoint)
    end_cut_runs(failure.tb)
    trio.run(trio.lowlevel.checkpoint)
    end_cut_runs(failure.tb)
    trio.run(trio.lowlevel.checkpoint)
