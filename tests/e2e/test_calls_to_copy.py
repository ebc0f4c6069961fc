"""The calls to copy of docs/guides/api.md work as they stand, in every shell and language they are for."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.server_process import serving
from tests.e2e.shells import SHELLS, pasted, path_with_curl, with_owner

pytestmark = pytest.mark.slow


def blocks(
    checkout: Path, language: str, page: str = "guides/api.md", title: str = "Calls to copy"
) -> list[str]:
    """The blocks of a section in a language, in order."""
    section = (checkout / "docs" / page).read_text("utf-8").partition(f"\n## {title}\n")[2]
    return re.findall(rf"^```{language}\n(.*?)^```$", section.partition("\n## ")[0], re.M | re.S)


async def test_the_calls_to_copy_work_as_they_stand(tmp_path: Path, checkout: Path) -> None:
    path = path_with_curl(tmp_path)
    *calls, watch = blocks(checkout, "sh")
    (queries,) = blocks(checkout, "sh", "reference/query.md", "In a URL")
    programs = {"call.py": (sys.executable, blocks(checkout, "python"))}
    if (node := shutil.which("node")) is not None:
        programs["call.mjs"] = (node, blocks(checkout, "js"))
    for name, (_, (program,)) in programs.items():
        (tmp_path / name).write_text(program, encoding="utf-8")
    async with serving(tmp_path / "data") as server:
        for shell in SHELLS:
            lines = with_owner("".join(calls), server.url).splitlines()
            found = (
                await pasted([*lines, "echo QUERIES", queries], path, shell_name=shell, cwd=tmp_path)
            ).decode()
            assert found.partition("QUERIES")[2].count('"name":"pump"') == queries.count("api ") == 2, found
            said = found.partition("QUERIES")[0]
            assert '"message"' not in said, (shell, said)
            for expected in (
                '"level":{"value":55.5',
                '"name":"pump"',
                '"aggregation":"MEAN"',
                '"state":"acknowledged"',
                '"pieces":7',
            ):
                assert expected in said, (shell, expected, said)
            assert said.count("The pump was oiled.") == 2, (shell, said)
            exported = (tmp_path / "states.csv").read_text("utf-8")
            assert len(exported.splitlines()) == 4, (shell, exported)
        lines.append("export APP DEVICE TOKEN")
        for name, (program_path, _) in programs.items():
            said = (await pasted([*lines, f"{program_path} {name}"], path, cwd=tmp_path)).decode()
            assert re.search(r"level'?: 5[67]", said), (name, said)
        shown = await pasted([*lines, "echo STREAM", watch], path, until=b"STREAM\n:", cwd=tmp_path)
        assert b"STREAM\n:" in shown, "the first comment of the stream"
