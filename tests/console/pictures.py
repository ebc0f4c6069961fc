"""Take pictures of every page of the console on the demo, light and dark, wide and narrow.

    .venv/bin/python -m tests.console.pictures              all pages, into docs/pictures/
    .venv/bin/python -m tests.console.pictures devices      the pages whose names have this text

Whoever takes them looks at them: nothing is cut off, nothing overlaps.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.console.tour import SCHEMES, WINDOWS, demo_console, tour

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
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


async def main(wanted: str = "") -> None:
    """Write the pictures, and print their names and sizes. Without `wanted` those of others are removed."""
    written: set[Path] = set()
    with tempfile.TemporaryDirectory() as folder:
        async with demo_console(Path(folder), patience_s=3600) as (demo, page):
            await page.command("Emulation.setScrollbarsHidden", hidden=True)
            async for stop in tour(page, demo):
                if wanted not in stop.name:
                    continue
                if stop.name in LIVE:
                    await trio.sleep(LIVE_S)
                for size, (width, height) in WINDOWS.items():
                    await page.viewport(width, height, mobile=size == "narrow")
                    for scheme in SCHEMES:
                        await page.scheme(scheme)
                        await page.settled()
                        await page.run(COVER)
                        file = FOLDER / f"{stop.name}-{scheme}-{size}.webp"
                        await page.picture(file, quality=QUALITY)
                        written.add(file)
                print(stop.name, flush=True)  # noqa: T201
    if not wanted:
        for file in set(FOLDER.glob("*.webp")) - written:
            file.unlink()
    total = sum(file.stat().st_size for file in written)
    print(f"{len(written)} pictures, {total // 1000} kB")  # noqa: T201


if __name__ == "__main__":
    trio.run(partial(main, *sys.argv[1:]))
