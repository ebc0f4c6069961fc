"""The errors of the store that the command line tells operators, for `http`, which does not import the store."""

from __future__ import annotations

from trunkline.store.errors import DirectoryInUse, StoreError

__all__ = ["DirectoryInUse", "StoreError"]
