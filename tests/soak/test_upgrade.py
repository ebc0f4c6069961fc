"""A store of each format that was kept opens, serves and loses nothing, with kill -9 in the middle of the upgrade.

`python -m tests.soak.upgrade --every-step` is the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.server_process import trunkline
from tests.faults.sweep import set_format
from tests.soak.kept_store import kept_formats, unpack
from tests.soak.upgrade import Upgrade, upgrade
from trunkline.store import migrations
from trunkline.store.directory import data_file

STEP_OF_THE_COPY = 30
"""A start that migrates is in the middle of its copy then; one that does not listens already, or is about to."""


def test_a_store_is_kept_of_each_format_that_opens() -> None:
    """Who changes the format keeps a store of it: `python -m tests.soak.keep_store`."""
    assert kept_formats() == sorted({*migrations.MIGRATIONS, migrations.FORMAT})


@pytest.mark.disk
@pytest.mark.parametrize("number", kept_formats())
async def test_an_upgrade_under_load_loses_nothing_by_kills(tmp_path: Path, number: int) -> None:
    outcome = await upgrade(tmp_path, Upgrade(number, STEP_OF_THE_COPY, writes=40, seed=number))
    assert outcome.has_died or number == migrations.FORMAT
    assert outcome.facts > 150


@pytest.mark.parametrize(
    "command", [("serve", "--port", "0"), ("check",), ("user", "list"), ("backup", "copy")]
)
async def test_a_program_leaves_a_store_of_a_newer_format_alone_and_says_what_to_do(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    unpack(migrations.FORMAT, data)
    set_format(data, migrations.FORMAT + 1)
    before = data_file(data).read_bytes()
    done = await trunkline(*command, "--data", str(data), cwd=tmp_path)
    assert done.returncode == 1
    assert f"is in format {migrations.FORMAT + 1}" in done.stdout + done.stderr
    assert "Use a newer program, or go back" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert data_file(data).read_bytes() == before
    assert not (tmp_path / "copy").exists()
