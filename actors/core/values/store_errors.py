"""The errors of the store that the rest of the server names: for the command line, and for callers.

`http` does not import the store.
"""

from __future__ import annotations

from trunkline.actors.core.values.errors import Overloaded
from trunkline.store.errors import CopyOutdated, DirectoryInUse, StoreError

__all__ = ["DirectoryInUse", "Outdated", "StoreError", "outdated"]


class Outdated(Overloaded, CopyOutdated):
    """Something needs a partition that another machine owns, which is not heard. Nothing was done."""


def outdated(number: int) -> Outdated:
    """The refusal of what needs partition `number`."""
    return Outdated(
        f"This needs partition {number} of the data, whose machine is not heard just now. Nothing was done; try again "
        "in a second.",
        reason="outdated",
    )
