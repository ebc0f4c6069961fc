"""Stores in temporary directories, closed when the test ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from trunkline.store.env import Store

KIB = 1024


class OpenStore(Protocol):
    """Opens a store in the test's directory, with a small map by default."""

    def __call__(self, **options: Any) -> Store: ...


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    with ExitStack() as stack:

        def opened(**options: Any) -> Store:
            settings = {"directory": tmp_path / "data", "map_size_bytes": 1024 * KIB, **options}
            return stack.enter_context(Store.open(**settings))

        yield opened


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()
