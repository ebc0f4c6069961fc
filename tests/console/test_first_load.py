"""What the first page of the console loads: every module that it needs is asked for at once, not file after file."""

from __future__ import annotations

import re
from pathlib import Path

from trunkline.http.site.site import CONSOLE

_IMPORT = re.compile(r"\bfrom\s*[\"'](\.{1,2}/[^\"']+)[\"']")
"""Also one of several in a line, as files of others have them."""


def modules_of(file: Path, found: set[Path]) -> set[Path]:
    """A module and all that it imports before it runs."""
    if file not in found:
        found.add(file)
        for place in _IMPORT.findall(file.read_text()):
            modules_of((file.parent / place).resolve(), found)
    return found


def test_all_modules_of_the_start_are_loaded_at_once() -> None:
    main = (CONSOLE / "main.js").resolve()
    needed = {f"/console/{file.relative_to(CONSOLE.resolve())}" for file in modules_of(main, set()) - {main}}
    page = (CONSOLE / "index.html").read_text()
    assert set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)) == needed
