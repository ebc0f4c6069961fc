"""What a command looks at before it uses a data directory, for `http`, which does not import the store."""

from __future__ import annotations

from trunkline.store.directory import check_not_lost, has_data

__all__ = ["check_not_lost", "has_data"]
