"""Who caused something: an API caller, or the run of a workflow, which may have been caused by another run."""

from __future__ import annotations

from typing import Final

import msgspec

HOPS_MAX: Final = 32
"""Runs that cause each other: the trigger that would begin the next one is dropped, which the errors tell."""


class Origin(msgspec.Struct, frozen=True):
    """Who caused something. `hops` is the number of runs of workflows that led to it, one after the other."""

    id: str
    type: str
    hops: int = 0


PUBLIC: Final = Origin("0" * 24, "public")
"""Somebody without an account: a caller of a webhook, or a visitor who has not logged in."""
