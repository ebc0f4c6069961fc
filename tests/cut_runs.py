"""The end of a Trio run that was cut off from outside, as the timeout of a test does by a signal.

If the signal comes while the loop waits for events, `trio.run` ends, but what it has installed in the thread stays as
long as anything refers to its frame: the next test finds itself inside a run, or loses its own in the middle.
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType

import trio


def end_cut_runs(traceback: TracebackType | None) -> None:
    """End the runs whose frames are in the traceback of a failure; those that have ended stay as they are."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_name == "run" and code.co_filename.endswith("trio/_core/_run.py"):
            cut_off = trio.TrioInternalError("the run was cut off")
            with suppress(trio.TrioInternalError):
                traceback.tb_frame.f_locals["gen"].throw(cut_off)
        traceback = traceback.tb_next
