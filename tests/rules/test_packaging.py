"""The contents of an installation: every file of the rooms, and no `http` that hides the standard library's.

The wheel is built from a copy of the checkout, because setuptools keeps a `build/` directory beside the
sources and would carry a deleted module from there into the next wheel.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PAPERS = ("pyproject.toml", "README.md", "LICENSE")

# Names and files of all modules are printed, so that the caller can see from where they were imported.
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    print(name, module.__file__, sep="\\t")
"""

STANDARD_HTTP = """
import http, http.client, http.server, sysconfig
standard = sysconfig.get_path("stdlib")
for module in (http, http.client, http.server):
    assert module.__file__.startswith(standard), module.__file__
"""


def run(*arguments: str, cwd: Path) -> str:
    """The output of this interpreter with these arguments; if it fails, the test fails with its errors."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def room_files(rooms: tuple[str, ...], project_files: list[PurePosixPath]) -> list[PurePosixPath]:
    """Every file of a room. An installation must contain them all."""
    return [file for file in project_files if file.parts[0] in rooms]


@pytest.fixture(scope="module")
def wheel(checkout: Path, room_files: list[PurePosixPath], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout, built without a network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for file in (*room_files, *map(PurePosixPath, PAPERS)):
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkout / file, source / file)
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q")
    run("-m", "pip", "wheel", *offline, "-w", str(target), str(source), cwd=source)
    (built,) = target.glob("trunkline-*.whl")
    return built


@pytest.fixture(scope="module")
def contents(wheel: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_rooms(contents: set[str], room_files: list[PurePosixPath]) -> None:
    expected = {f"trunkline/{file}" for file in room_files}
    lacking = sorted(expected - contents)
    hint = "list a new package under [tool.setuptools] packages, a new kind of data file under package-data"
    assert not lacking, f"{hint}: {lacking}"


def test_the_wheel_holds_nothing_else(contents: set[str], room_files: list[PurePosixPath]) -> None:
    expected = {f"trunkline/{file}" for file in room_files}
    extra = {name for name in contents - expected if ".dist-info/" not in name}
    assert not extra, extra
    assert "trunkline/http/__init__.py" not in contents


def test_an_installation_imports_every_module(wheel: Path, contents: set[str], tmp_path: Path) -> None:
    """Started in an empty directory, with the installation before everything else on the path."""
    site = tmp_path / "site"
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "-q")
    run("-m", "pip", "install", *offline, "--target", str(site), str(wheel), cwd=tmp_path)
    sources = [PurePosixPath(name) for name in sorted(contents) if name.endswith(".py")]
    dotted = [".".join(source.with_suffix("").parts).removesuffix(".__init__") for source in sources]
    modules = [name for name in dotted if not name.endswith("__main__")]
    first = f"import sys; sys.path.insert(0, {str(site)!r})"
    report = run("-c", first + IMPORT_ALL, *modules, cwd=tmp_path)
    places = dict(line.split("\t") for line in report.splitlines())
    assert set(places) == set(modules)
    elsewhere = {name: place for name, place in places.items() if not Path(place).is_relative_to(site)}
    assert not elsewhere, elsewhere


@pytest.mark.parametrize("start", ["checkout", "linked_tree"])
def test_the_standard_library_keeps_its_http(start: str, request: pytest.FixtureRequest) -> None:
    """Python started in the checkout has it first on its path, `http/` included."""
    directory: Path = request.getfixturevalue(start)
    run("-c", STANDARD_HTTP, cwd=directory)


def test_the_linked_tree_needs_no_installation(
    linked_tree: Path, rooms: tuple[str, ...], tmp_path: Path
) -> None:
    """The linked tree gives every room by itself: -I -S leaves out site-packages and every installation."""
    program = (
        "import sys; from importlib.util import find_spec; sys.path.insert(0, sys.argv[1])\n"
        "print(*(list(find_spec('trunkline.' + room).submodule_search_locations) for room in sys.argv[2:]))"
    )
    places = run("-I", "-S", "-c", program, str(linked_tree), *rooms, cwd=tmp_path)
    assert places.split() == [str([str(linked_tree / "trunkline" / room)]) for room in rooms]
