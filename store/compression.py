"""Compression by Zstandard, whose only error is that it has no memory: that is a MemoryError here, as everywhere."""

from __future__ import annotations

import zstandard


def compress(compressor: zstandard.ZstdCompressor, raw: bytes) -> bytes:
    """The frame of `raw`. Raises MemoryError."""
    try:
        return compressor.compress(raw)
    except zstandard.ZstdError as error:
        raise MemoryError(str(error)) from error
