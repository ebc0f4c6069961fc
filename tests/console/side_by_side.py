"""Put pictures of the twelve most used pages of the console side by side: how they were, and how they are.

    .venv/bin/python -m tests.console.pictures --all AFTER         in this checkout
    .venv/bin/python -m tests.console.pictures --all BEFORE        in a checkout of the commit before
    .venv/bin/python -m tests.console.side_by_side BEFORE AFTER    writes docs/pictures/before-after/

A page of which a folder has no picture is shown as absent there.
"""

from __future__ import annotations

import argparse
import base64
import tempfile
from html import escape
from pathlib import Path
from typing import Final

import trio

from tests.console.console_page import ConsolePage
from tests.console.pictures import FOLDER
from tests.e2e.browser import opened

PAGES: Final = {
    "overview": "Overview",
    "applications": "Applications",
    "devices": "Devices",
    "device": "A device",
    "device-states": "The history of a device",
    "dashboard": "A dashboard",
    "dashboard-edit": "Changing a dashboard",
    "events": "Events",
    "alarms": "Alarms",
    "workflows": "Workflows",
    "flow-edit": "Changing a workflow",
    "table": "A data table",
}
"""The pages, by the names that `pictures.py` gives them."""
PAGES_PER_FILE: Final = 4
FORM: Final = "light-wide"
WIDTH_PX: Final = 680
QUALITY: Final = 52
STYLE: Final = f"""
    body {{ margin: 0; padding: 8px; width: {2 * WIDTH_PX + 8}px; background: #888; font: 600 15px sans-serif; }}
    main {{ display: grid; grid-template-columns: 1fr 1fr; gap: 8px; }}
    figure {{ margin: 0; background: #fff; }}
    figcaption {{ padding: 4px 8px; }}
    img {{ display: block; width: {WIDTH_PX}px; }}
    p {{ margin: 0; padding: 96px 8px; text-align: center; font-weight: 400; }}
"""


def sheet_of(names: list[str], before: Path, after: Path) -> str:
    """A page with the pictures of these pages, each with the one before at its left."""
    figures = [
        _figure(f"{PAGES[name]}, {when}", folder / f"{name}-{FORM}.webp")
        for name in names
        for when, folder in (("before", before), ("now", after))
    ]
    return f"<!doctype html><style>{STYLE}</style><main>{''.join(figures)}</main>"


def _figure(caption: str, file: Path) -> str:
    picture = "<p>There was no such page.</p>"
    if file.exists():
        picture = f'<img alt="" src="data:image/webp;base64,{base64.b64encode(file.read_bytes()).decode()}">'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture}</figure>"


async def main(sheets: list[Path], folder: Path) -> None:
    """Write a picture of each sheet."""
    with tempfile.TemporaryDirectory() as scratch:
        async with opened(Path(scratch), ConsolePage) as page:
            for sheet in sheets:
                await page.viewport(2 * WIDTH_PX + 24, 100)
                await page.command("Page.navigate", ends_with="Page.loadEventFired", url=sheet.as_uri())
                await page.run("Promise.all([...document.images].map((each) => each.decode()))")
                await page.viewport(2 * WIDTH_PX + 24, await page.run("document.body.scrollHeight"))
                await page.picture(folder / f"{sheet.stem}.webp", quality=QUALITY)


def write(before: Path, after: Path, folder: Path) -> None:
    """Write the files, and print how large they are."""
    with tempfile.TemporaryDirectory() as scratch:
        sheets = []
        for number, first in enumerate(range(0, len(PAGES), PAGES_PER_FILE), 1):
            names = list(PAGES)[first : first + PAGES_PER_FILE]
            sheets.append(Path(scratch) / f"{number}.html")
            sheets[-1].write_text(sheet_of(names, before, after), encoding="utf-8")
        trio.run(main, sheets, folder)
    sizes = [file.stat().st_size for file in folder.glob("*.webp")]
    print(f"{len(sizes)} pictures, {sum(sizes) // 1000} kB")  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    write(given.before, given.after, FOLDER / "before-after")
