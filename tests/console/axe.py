"""Look for faults of accessibility with axe-core on every page of the console, light and dark, wide and narrow.

    .venv/bin/python -m tests.console.axe             all pages
    .venv/bin/python -m tests.console.axe devices     the pages whose names have this text

It fails if a fault is serious or critical. axe-core is for development only: it is fetched from the npm registry into a
cache of the user and its integrity is compared; nothing of it is in this project.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from tests.console.console_page import ConsolePage
from tests.console.npm_package import fetch
from tests.console.tour import SCHEMES, WINDOWS, demo_console, tour

VERSION: Final = "4.14.1"
INTEGRITY: Final = (
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
PLACES_MAX: Final = 5
"""Of how many elements a fault is told."""
GRAVE: Final = ("serious", "critical")
_RUN: Final = """axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(
    ({ id, impact, help, nodes }) => ({ id, impact, help, places: nodes.map((node) => node.target.join(" ")) })))"""


def axe_source() -> str:
    """The program, from the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trunkline"
    file = cache / f"axe-core-{VERSION}.js"
    if not file.exists():
        source = fetch("axe-core", VERSION, INTEGRITY).files["axe.min.js"]
        cache.mkdir(parents=True, exist_ok=True)
        file.write_bytes(source)
    return file.read_text(encoding="utf-8")


async def faults(page: ConsolePage, source: str) -> list[dict[str, Any]]:
    """The faults of the page as it is shown."""
    if not await page.run("'axe' in window"):
        await page.run(f"(() => {{ {source} }})()")
    found: list[dict[str, Any]] = await page.run(_RUN)
    return found


async def main(wanted: str = "") -> int:
    """Print the faults of each page; returns how many are grave."""
    source, grave = axe_source(), 0
    with tempfile.TemporaryDirectory() as folder:
        async with demo_console(Path(folder), patience_s=3600) as (demo, page):
            async for stop in tour(page, demo):
                if wanted not in stop.name:
                    continue
                told: dict[str, list[str]] = {}
                for size, (width, height) in WINDOWS.items():
                    await page.viewport(width, height, mobile=size == "narrow")
                    for scheme in SCHEMES:
                        await page.scheme(scheme)
                        await page.settled()
                        for fault in await faults(page, source):
                            places = json.dumps(fault["places"][:PLACES_MAX])
                            text = f"{fault['impact']}: {fault['id']}: {fault['help']}: {places}"
                            told.setdefault(text, []).append(f"{size} {scheme}")
                            grave += fault["impact"] in GRAVE
                print(f"{stop.name}: {'no fault' if not told else ''}", flush=True)  # noqa: T201
                for text, where in told.items():
                    print(f"  {text} ({', '.join(where)})", flush=True)  # noqa: T201
    print(f"{grave} serious or critical faults")  # noqa: T201
    return grave


if __name__ == "__main__":
    sys.exit(bool(trio.run(partial(main, *sys.argv[1:]))))
