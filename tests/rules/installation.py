"""Build the sdist and the wheel as a user gets them, install the wheel in a fresh environment, and start it once.

    .venv/bin/python -m tests.rules.installation [--keep DIR]

The wheel is built from the sdist, so both are complete. No extra is installed: `trunkline --version` and
`trunkline serve` must do without. The libraries come from the index of pip.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = 300

BUILD: Final = """
import sys
from setuptools.build_meta import {kind}
print({kind}(sys.argv[1]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command. If it fails, its errors end this program."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if done.returncode:
        raise SystemExit(f"{command}:\n{done.stdout}{done.stderr}")
    return done.stdout


def source(folder: Path) -> Path:
    """A copy of the files that git has, so that nothing of an earlier build gets in."""
    copy = folder / "source"
    for name in run(
        "git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=CHECKOUT
    ).splitlines():
        if (CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, copy / name)
    return copy


def built(kind: str, folder: Path, target: Path) -> Path:
    """The sdist or the wheel of a folder."""
    target.mkdir(exist_ok=True)
    return target / run(sys.executable, "-c", BUILD.format(kind=kind), target, cwd=folder).splitlines()[-1]


def unpacked(sdist: Path, folder: Path) -> Path:
    """The sources in an sdist."""
    shutil.unpack_archive(sdist, folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def serve_once(trunkline: Path, folder: Path) -> str:
    """Start a server, ask whether it is ready, and stop it. The answer is its address."""
    command = [str(trunkline), "serve", "--data", str(folder / "data"), "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        said = ""
        try:
            for line in server.stdout or ():
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    with urllib.request.urlopen(f"{found[0]}/readyz", timeout=60) as answer:
                        assert answer.status == 200
                    break
            else:
                raise SystemExit(f"the server ended:\n{said}")
        finally:
            server.send_signal(signal.SIGTERM)
    assert server.returncode == 0, said
    return found[0]


def main(keep: Path | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = folder / "dist" if keep is None else keep.resolve()
        sdist = built("build_sdist", source(folder), files)
        wheel = built("build_wheel", unpacked(sdist, folder / "unpacked"), files)
        environment = folder / "environment"
        venv.create(environment, with_pip=True)
        run(environment / "bin" / "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=folder)
        trunkline = environment / "bin" / "trunkline"
        version = run(trunkline, "--version", cwd=folder).strip()
        address = serve_once(trunkline, folder)
        print(f"{sdist.name} and {wheel.name}: {version} served {address}")  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, help="the folder for the sdist and the wheel")
    main(parser.parse_args().keep)
