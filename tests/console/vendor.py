"""The libraries of the console: fetch them from the npm registry and write `http/console/vendor/`.

    .venv/bin/python -m tests.console.vendor             the versions of vendor.json, with the same integrity
    .venv/bin/python -m tests.console.vendor --newest    the newest versions

The files are those of the packages with three changes: bare imports name the file beside them, because a page with a
strict policy can have no import map; comments that name source maps are left out; and the minified uPlot, which is
published as a script only, gets an export. `test_vendor.py` compares the files with `vendor.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.console.npm_package import NpmPackage, fetch

VENDOR: Final = Path(__file__).parents[2] / "http" / "console" / "vendor"
LIST: Final = VENDOR / "vendor.json"

FILES: Final = {
    "preact": {"preact.mjs": "dist/preact.mjs", "hooks.mjs": "hooks/dist/hooks.mjs"},
    "htm": {"htm.mjs": "dist/htm.mjs"},
    "@preact/signals-core": {"signals-core.mjs": "dist/signals-core.mjs"},
    "@preact/signals": {"signals.mjs": "dist/signals.mjs"},
    "uplot": {"uplot.mjs": "dist/uPlot.iife.min.js", "uplot.css": "dist/uPlot.min.css"},
}
"""The files of each package, by the names that they get."""

IMPORTS: Final = {
    "preact": "./preact.mjs",
    "preact/hooks": "./hooks.mjs",
    "@preact/signals-core": "./signals-core.mjs",
}


def main(*arguments: str) -> None:
    """Write the folder anew."""
    known = {each["name"]: each for each in json.loads(LIST.read_text())} if LIST.exists() else {}
    if arguments == ("--newest",) or not known:
        packages = [fetch(name, "latest") for name in FILES]
    else:
        packages = [fetch(name, known[name]["version"], known[name]["integrity"]) for name in FILES]
    VENDOR.mkdir(parents=True, exist_ok=True)
    for file in VENDOR.iterdir():
        file.unlink()
    LIST.write_text(json.dumps([_written(package) for package in packages], indent=2) + "\n")


def _written(package: NpmPackage) -> dict[str, Any]:
    """Write the files of a package; its entry in `vendor.json`."""
    described = json.loads(package.files["package.json"])
    files = []
    for name, source, content in _contents(package):
        (VENDOR / name).write_bytes(content)
        files.append({"file": name, "source": source, "sha256": hashlib.sha256(content).hexdigest()})
    return {
        "name": package.name,
        "version": package.version,
        "integrity": package.integrity,
        "license": described["license"],
        "files": files,
    }


def _contents(package: NpmPackage) -> Iterator[tuple[str, str, bytes]]:
    """The name of each file, its path in the package, and its content."""
    for name, source in FILES[package.name].items():
        text = package.files[source].decode()
        if name.endswith(".mjs"):
            text = re.sub(r"\s*//# sourceMappingURL=.*\s*$", "\n", text)
            text = re.sub(
                r'(from|import)"([^"./][^"]*)"', lambda found: f'{found[1]}"{IMPORTS[found[2]]}"', text
            )
        if source.endswith(".iife.min.js"):
            (variable,) = re.findall(r"^var (\w+)=function\(\)\{", text, re.MULTILINE)
            text = f"{text.rstrip()}\nexport default {variable};\n"
        yield name, source, text.encode()
    short = package.name.rpartition("/")[2]
    yield f"{short}.LICENSE.txt", "LICENSE", package.files["LICENSE"]


if __name__ == "__main__":
    main(*sys.argv[1:])
