"""Stored values that cannot be read: background work logs each of them once, passes over it and goes on."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import structlog

UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError)
"""What decoding a damaged value raises, or using one that decodes to something else."""

_log = structlog.get_logger("trunkline.actors")


@lru_cache(maxsize=1024)
def log_unreadable(db: str, key: bytes) -> None:
    """Log the key of an unreadable value. The same key is logged again only after a thousand others."""
    _log.error("stored value cannot be read", database=db, key=key.hex())
