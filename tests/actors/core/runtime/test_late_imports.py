"""Modules that are imported at their first use."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from trunkline.actors.core.runtime.late_imports import load, put_off

NAME = "a_library_of_this_test"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a library that counts how often it is imported."""
    source = (
        "import builtins\nbuiltins.imported_here = getattr(builtins, 'imported_here', 0) + 1\nvalue = 7\n"
    )
    (tmp_path / f"{NAME}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.imported_here", 0, raising=False)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    return NAME


def times_imported() -> int:
    count: int = vars(sys.modules["builtins"])["imported_here"]
    return count


async def test_load_imports_once(library: str) -> None:
    await load(library)
    await load(library)
    assert times_imported() == 1


async def test_a_library_that_is_put_off_is_imported_by_the_first_use(library: str) -> None:
    put_off(library)
    late = import_module(library)
    assert times_imported() == 0
    assert late.value == 7
    assert times_imported() == 1
    assert type(late) is ModuleType, "from then on it costs what any module costs"


async def test_load_completes_what_was_put_off(library: str) -> None:
    put_off(library)
    late = import_module(library)
    await load(library)
    assert times_imported() == 1
    assert vars(late)["value"] == 7


def test_threads_that_use_it_at_once_import_it_once(library: str) -> None:
    put_off(library)
    late = import_module(library)
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(late.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [7] * 8
    assert times_imported() == 1


def test_what_is_there_is_not_put_off() -> None:
    put_off("json")
    assert type(sys.modules["json"]) is ModuleType
