"""What a command looks at before it uses a data directory, for `http`, which does not import the store."""

from __future__ import annotations

from trunkline.store.directory import check_not_lost, has_data
from trunkline.store.directory_owner import check_access, check_owner

__all__ = ["check_access", "check_not_lost", "check_owner", "has_data"]
