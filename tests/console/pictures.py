"""Take pictures of the pages of the console on the demo.

    .venv/bin/python -m tests.console.pictures                     those that documents show, into docs/pictures/
    .venv/bin/python -m tests.console.pictures --all FOLDER        every page, light and dark, wide and narrow
    .venv/bin/python -m tests.console.pictures --all FOLDER devices    the pages whose names have this text

The repository has only those that documents show. Whoever takes them looks at them: nothing is cut off, nothing
overlaps.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Final

import trio

from tests.console.tour import SCHEMES, WINDOWS, demo_console, tour

CHECKOUT: Final = Path(__file__).parents[2]
FOLDER: Final = CHECKOUT / "docs" / "pictures"
QUALITY: Final = 45
LIVE: Final = frozenset({"overview", "device", "server"})
LIVE_S: Final = 20
"""These pages are open for so long before their pictures, so that their charts have something to show."""

COVER: Final = """{
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode());) {
        const covered = text.data.replace(/[0-9a-f]{48}[\\w-]{10,}/g, "\\u2026");
        if (covered !== text.data) text.data = covered;
    }
}"""
"""The address of a webhook is a secret, so pictures do not show it."""


def shown() -> set[str]:
    """The names of the pictures that the documents show."""
    documents = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    return {
        name
        for each in documents
        for name in re.findall(r"pictures/([\w-]+\.webp)\)", each.read_text("utf-8"))
    }


async def main(folder: Path, names: set[str] | None, wanted: str) -> None:
    """Write the pictures of these names, or all of pages whose names have `wanted`, and print what was written."""
    written: set[Path] = set()
    with tempfile.TemporaryDirectory() as scratch:
        async with demo_console(Path(scratch), patience_s=3600) as (demo, page):
            await page.command("Emulation.setScrollbarsHidden", hidden=True)
            async for stop in tour(page, demo):
                forms = [
                    (size, scheme, f"{stop.name}-{scheme}-{size}.webp")
                    for size in WINDOWS
                    for scheme in SCHEMES
                ]
                forms = [
                    each for each in forms if (wanted in stop.name if names is None else each[2] in names)
                ]
                if forms and stop.name in LIVE:
                    await trio.sleep(LIVE_S)
                for size, scheme, name in forms:
                    await page.viewport(*WINDOWS[size], mobile=size == "narrow")
                    await page.scheme(scheme)
                    await page.settled()
                    await page.run(COVER)
                    await page.picture(folder / name, quality=QUALITY)
                    written.add(folder / name)
                print(stop.name, len(forms), flush=True)  # noqa: T201
    total = sum(file.stat().st_size for file in written)
    print(f"{len(written)} pictures, {total // 1000} kB")  # noqa: T201
    if names is not None and names != {file.name for file in written}:
        raise SystemExit(f"no page has the names {sorted(names - {file.name for file in written})}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every page, into this folder")
    parser.add_argument("page", nargs="?", default="", help="with --all: a part of the names of pages")
    given = parser.parse_args()
    (given.all or FOLDER).mkdir(parents=True, exist_ok=True)
    trio.run(main, given.all or FOLDER, None if given.all else shown(), given.page)
