"""What a log may say of an exception whose message may quote what a client has sent."""

from __future__ import annotations

import traceback
from pathlib import Path


def place_of(bug: BaseException) -> str:
    """The types of an exception, and where it was raised: what a log may show of it where its message may not be."""
    if isinstance(bug, BaseExceptionGroup):
        return ", ".join(place_of(each) for each in bug.exceptions)
    frames = traceback.extract_tb(bug.__traceback__)
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(bug).__name__} at {places}"
